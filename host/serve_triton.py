"""Runs tritonserver in its container with a key for its control API (Python ≥ 3.9, stdlib only).

Triton takes the key on its command line and nowhere else (`--http-restricted-api`), where every
user of the host could read it in /proc. So this process adds it from a file that only root can
read, and blanks it in the server's command line as soon as the server has taken it over, which it
has when it listens. It hands signals on, and ends as the server ends.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
TAKEN_OVER_WITHIN_S = 120.0


def http_port(command: list[str]) -> int:
    """The server's own port, from its command line."""
    ports = [part.split("=", 1)[1] for part in command if part.startswith("--http-port=")]
    return int(ports[-1]) if ports else 8000


def die_with_parent() -> None:
    """A server must not outlive this process: nothing would watch it."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_until_listening(server: subprocess.Popen[bytes], port: int) -> bool:
    """True when the server accepts connections; False when it ended or took too long."""
    deadline = time.monotonic() + TAKEN_OVER_WITHIN_S
    while server.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return True
    return False


def blank_in_command_line(pid: int, secret: bytes) -> None:
    """Overwrite `secret` in the arguments that /proc/PID/cmdline shows (see proc(5), arg_start)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    with Path(f"/proc/{pid}/mem").open("r+b", buffering=0) as memory:
        memory.seek(start)
        at = memory.read(end - start).find(secret)
        if at >= 0:
            memory.seek(start + at)
            memory.write(b"*" * len(secret))


def wait_for(server: subprocess.Popen[bytes]) -> int:
    """The server's exit status, negative for a signal.

    As the container's first process it also inherits, and has to reap, what engines leave behind
    (Ray's daemons, workers whose parent was killed).
    """
    while server.poll() is None:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            break
        if pid == server.pid:
            return os.waitstatus_to_exitcode(status)
    return server.returncode if server.returncode is not None else 1


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--control-key-file", required=True, type=Path)
    options.add_argument("--control-header", required=True)
    options.add_argument("--control-apis", required=True)
    options.add_argument("command", nargs=argparse.REMAINDER)
    given = options.parse_args()
    command = [part for part in given.command if part != "--"]
    key = given.control_key_file.read_text().strip()
    if not key:
        print(f"{given.control_key_file} is empty: the control API would be open", file=sys.stderr)
        return 78
    restricted = f"--http-restricted-api={given.control_apis}:{given.control_header}={key}"
    server = subprocess.Popen([*command, restricted], preexec_fn=die_with_parent)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _: server.send_signal(received))
    if wait_until_listening(server, http_port(command)):
        try:
            blank_in_command_line(server.pid, key.encode())
        except (OSError, ValueError) as error:
            print(f"the control key stays visible to `ps` here: {error}", file=sys.stderr)
    status = wait_for(server)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
