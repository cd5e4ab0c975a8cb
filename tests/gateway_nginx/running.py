"""A real nginx with the gateway's configuration, on loopback, with files of the test's own."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from components.renderers import gateway_config
from models.gateway import Gateway
from tests.gateway_nginx import demo_file
from tests.gateway_nginx.demo_file import DemoRoutes

NGINX = Path("/usr/sbin/nginx")


def until(holds: Callable[[], Any], what: str, within_s: float = 10) -> Any:
    """Wait until `holds()` is true, and give its value back."""
    give_up = time.monotonic() + within_s
    while not (value := holds()):
        assert time.monotonic() < give_up, f"not within {within_s} s: {what}"
        time.sleep(0.02)
    return value


class RunningGateway:
    """The gateway; every key of `routes` is a demo's file."""

    def __init__(self, gateway: Gateway, *demos: DemoRoutes) -> None:
        # Short, because a Unix socket's path may not be long; open, because workers are nobody's.
        self.place = Path(tempfile.mkdtemp(prefix="gw-", dir="/tmp"))
        self.place.chmod(0o755)
        (self.place / "run").mkdir()
        self.url = gateway.reached_at(gateway.address)
        self.port = gateway.port
        for folder in ("lua/berth", "routes.d"):
            (self.place / folder).mkdir(parents=True)
        for path, text in gateway_config.lua().items():
            (self.place / path).write_text(text)
        self.configure(gateway)
        for routes in demos:
            self.write(routes)
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def configure(self, gateway: Gateway) -> None:
        """Write nginx.conf."""
        user = "www-data" if os.geteuid() == 0 else os.environ.get("USER", "nobody")
        place = gateway_config.Place(
            run=f"{self.place}/run",
            user=user,
            access_log=f"{self.place}/access.log",
            error_log=f"{self.place}/error.log",
        )
        (self.place / "nginx.conf").write_text(gateway_config.nginx_conf(gateway, place))

    def write(self, routes: DemoRoutes) -> None:
        """Write a demo's file."""
        file = self.place / f"routes.d/{routes.demo}.json"
        new = file.with_suffix(".new")
        new.write_text(demo_file.routes(routes))
        new.rename(file)

    @property
    def command(self) -> list[str]:
        """nginx on these files."""
        return [str(NGINX), "-e", f"{self.place}/error.log", "-p", f"{self.place}/", "-c",
                "nginx.conf"]  # fmt: skip

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.process = subprocess.Popen(self.command, start_new_session=True)
        until(self._answers, "nginx answers")

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.errors()
        try:
            self.status()
        except (httpx.TransportError, OSError):
            return False
        return True

    def check(self, file: str, routes: str) -> str:
        """Why a demo's file would be left out, or nothing."""
        asked = {"file": file, "routes": routes}
        with self._local() as local:
            answer = local.post("http://gateway/check", json=asked)
        assert (answer.status_code == 200) == (answer.text == "")
        return answer.text

    def reload(self) -> None:
        """Load the configuration anew, and wait until new workers answer."""
        assert self.process is not None
        revision = secrets.token_hex(8)
        (self.place / "configuration").write_text(revision)
        self.process.send_signal(signal.SIGHUP)
        until(lambda: self.status()["configuration"] == revision, "new workers answer")

    def changed(self) -> None:
        """Say that routes have changed, and wait until they are served."""
        revision = secrets.token_hex(8)
        new = self.place / "revision.new"
        new.write_text(revision)
        new.rename(self.place / "revision")
        until(lambda: self.status()["revision"] == revision, "the new routes are served")

    def workers(self) -> list[int]:
        """Process ids of the workers."""
        assert self.process is not None
        found = subprocess.run(
            ["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=False
        )
        return [int(pid) for pid in found.stdout.split()]

    def status(self) -> Any:
        """What it says of itself."""
        with self._local() as local:
            return local.get("http://gateway/status").json()

    def _local(self) -> httpx.Client:
        socket = httpx.HTTPTransport(uds=f"{self.place}/run/status.sock")
        return httpx.Client(transport=socket, timeout=5)

    def log(self) -> list[dict[str, Any]]:
        """The access log; each line must be JSON."""
        return [json.loads(line) for line in (self.place / "access.log").read_text().splitlines()]

    def logged(self, request_id: str) -> dict[str, Any]:
        """The line of one request, which is written when the request is over."""

        def line() -> dict[str, Any] | None:
            return next((one for one in self.log() if one["request_id"] == request_id), None)

        found: dict[str, Any] = until(line, f"a line of request {request_id}")
        return found

    def errors(self) -> str:
        """The error log."""
        return (self.place / "error.log").read_text()

    def stop(self) -> None:
        """End it at once."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(10)
        shutil.rmtree(self.place)
