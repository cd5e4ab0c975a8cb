"""`python -m gateway --config DIRECTORY`: the adapter service, until SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import socket
import stat
import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from gateway.config import read_adapter
from gateway.service import application
from models.refusal import Refusal

ENDS_S = 30
"""What running answers have to end after SIGTERM, in seconds."""


def main() -> int:
    """Serve; 2 where the configuration cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m gateway", description=__doc__)
    parser.add_argument(
        "--config",
        type=Path,
        required=True,
        help="directory with adapter.json and the demos' routes.d",
    )
    config: Path = parser.parse_args().config
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # One line for each request otherwise.
    try:
        app = application(config)
        listener = _listener(read_adapter(config).listen)
    except Refusal as error:
        print(error, file=sys.stderr)
        return 2
    asyncio.run(_serve(app, listener))
    return 0


async def _serve(app: Starlette, listener: socket.socket) -> None:
    # nginx in front writes the access log, with the role. It gives its idle connections up after
    # 60 s, and must be the first to: a request on one that closes at that moment is lost.
    settings = uvicorn.Config(
        app, access_log=False, log_config=None, server_header=False, date_header=False,
        timeout_graceful_shutdown=ENDS_S, timeout_keep_alive=75, backlog=2048,
    )  # fmt: skip
    # Without a handler SIGHUP ends the process; with it the next request finds the new routes.
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, lambda: app.state.table.refresh())
    await uvicorn.Server(settings).serve(sockets=[listener])


def _listener(address: str) -> socket.socket:
    """Bound already, so that an address in use is told before anything starts."""
    try:
        if address.startswith("unix:"):
            return _unix(address.removeprefix("unix:"))
        host, _, port = address.rpartition(":")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # The protocol is named because asyncio switches Nagle's algorithm off only there: with
        # it on, a stream's first token waited 40 ms for the client's delayed acknowledgement.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host.strip("[]"), int(port)))
    except OSError as error:
        raise Refusal(
            f"cannot listen on {address}: {error.strerror}", consequence="Nothing is served."
        ) from None
    return listener


def _unix(path: str) -> socket.socket:
    """A socket that its group may use; one that a killed process left is replaced."""
    place = Path(path)
    if place.exists() and stat.S_ISSOCK(place.stat().st_mode):
        place.unlink()
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o117)
    try:
        listener.bind(path)
    finally:
        os.umask(before)
    return listener


if __name__ == "__main__":
    sys.exit(main())
