"""The gateway that runs on this host: its files, its lock, and what it says of itself."""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import json
import os
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from models.refusal import Refusal

UNTOUCHED = "Nothing was changed."
LOCK_S = 60.0
SERVED_S = 15.0
"""How long its workers have to read what is new, in seconds; they look twenty times a second."""
STARTS_S = 5.0
"""How long a gateway that was just started has to answer, in seconds."""
POLL_S = 0.02


class Gateway:
    """nginx with Berth's Lua, and the adapter beside it."""

    def __init__(
        self, etc: Path = Path("/etc/berth"), run: Path = Path("/run/berth-gateway")
    ) -> None:
        self._lock = etc / "gateway.lock"
        self._directory = etc / "gateway"
        self._socket = run / "status.sock"
        self._adapter = etc / "adapter"
        self.adapter = self._adapter / "routes.d"

    @property
    def there(self) -> bool:
        """Whether this host has been given a gateway."""
        return (self._directory / "nginx.conf").exists()

    def routes(self, demo: str) -> Path:
        """The demo's routes."""
        return self._directory / "routes.d" / f"{demo}.json"

    def adapter_routes(self, demo: str) -> Path:
        """The demo's routes in the adapter."""
        return self.adapter / f"{demo}.json"

    def adapter_keys(self, demo: str) -> Path:
        """The keys that the adapter shows to the demo's engines."""
        return self._adapter / "secrets.d" / f"{demo}.json"

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Nobody else changes the gateway in the block; the lock is the kernel's.

        Raises:
            Refusal: there is no gateway, or somebody has been changing it for a minute.
        """
        if not self.there:
            raise Refusal(
                "this host has no gateway, so clients could not reach the demo's roles",
                consequence=UNTOUCHED,
                fix="declare `gateway` for the host and `pulumi up` the host's stack.",
            )
        give_up = time.monotonic() + LOCK_S
        with self._lock.open("a") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > give_up:
                        raise Refusal(
                            f"another run has been changing the gateway for {LOCK_S:.0f} s",
                            consequence=UNTOUCHED,
                            fix=f"`fuser {self._lock}` on the host shows it; run this again.",
                        ) from None
                    time.sleep(POLL_S)
            yield

    def see_that_it_takes(self, demo: str, routes: str) -> None:
        """Ask the gateway that runs whether it can serve a demo's file.

        Raises:
            Refusal: it does not run, or cannot.
        """
        file = {"file": f"{demo}.json", "routes": routes}
        give_up = time.monotonic() + STARTS_S
        while True:
            try:
                status, said = self._asked("POST", "/check", json.dumps(file))
                break
            except Refusal:  # Perhaps its unit was started just now.
                if time.monotonic() > give_up:
                    raise
                time.sleep(POLL_S)
        if status != 200:
            raise Refusal(
                f"the gateway cannot take the routes of demo {demo}: {said.strip()}",
                consequence="It was left as it is.",
            )

    def serve(self) -> None:
        """Have what is on the disk served, by all workers, when this returns.

        Raises:
            Refusal: they do not read it.
        """
        revision = self._digest()
        written(self._directory / "revision", revision + "\n", mode=0o644)
        give_up = time.monotonic() + SERVED_S
        while self.status().get("revision") != revision:
            if time.monotonic() > give_up:
                raise Refusal(
                    "the gateway does not read the routes that were installed",
                    consequence="Clients still get the former ones.",
                    fix="`journalctl -u berth-gateway` on the host shows why; run this again.",
                )
            time.sleep(POLL_S)

    def forget(self, demo: str) -> None:
        """A demo's files gone, and no longer served if the gateway runs."""
        with self.changing():
            gone = (self.routes(demo), self.adapter_routes(demo), self.adapter_keys(demo))
            for file in gone:
                file.unlink(missing_ok=True)
                _new(file).unlink(missing_ok=True)
            if self._socket.exists():
                self.serve()

    def leads_to(self, demo: str, role: str, *, closed: bool = False) -> set[str]:
        """Ids of the replicas that a role has in the gateway that runs.

        Args:
            closed: only of those that get no more requests on purpose.
        """
        known = self.status().get("demos", {}).get(demo, {}).get(role, {})
        return {
            each["id"] for each in known.get("replicas", ()) if each.get("closed") or not closed
        }

    def left(self, replicas: Iterable[str], within_s: float) -> int:
        """Wait until nothing is under way at replicas that get no more requests.

        Args:
            replicas: their ids; one that a role still leads to is not waited for.
            within_s: bound on the wait, in seconds.

        Returns:
            Requests that were under way when the time was over.
        """
        give_up = time.monotonic() + within_s
        wanted = set(replicas)
        while wanted:
            said = self.status()
            roles = (role for demo in said.get("demos", {}).values() for role in demo.values())
            used = {each["id"] for role in roles for each in role["replicas"] if not each["closed"]}
            under_way: dict[str, int] = said.get("under_way", {})
            left = sum(int(under_way.get(each, 0)) for each in wanted - used)
            if not left or time.monotonic() >= give_up:
                return left
            time.sleep(POLL_S)
        return 0

    def drained(self, demo: str, roles: Sequence[str], within_s: float) -> int:
        """Wait until no request of these roles is under way; how many are when the time is over."""
        give_up = time.monotonic() + within_s
        while roles:
            said = self.status().get("demos", {}).get(demo, {})
            left = sum(int(said.get(role, {}).get("requests", 0)) for role in roles)
            if not left or time.monotonic() >= give_up:
                return left
            time.sleep(POLL_S)
        return 0

    def status(self) -> dict[str, Any]:
        """What it says of itself; nothing while it does not run."""
        try:
            status, said = self._asked("GET", "/status")
            found = json.loads(said) if status == 200 else {}
        except (Refusal, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for file in sorted((self._directory / "routes.d").glob("*.json")):
            digest.update(f"{file.name}\0".encode() + file.read_bytes() + b"\0")
        return digest.hexdigest()[:16]

    def _asked(self, method: str, path: str, body: str = "") -> tuple[int, str]:
        connection = _Local(self._socket)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        except OSError as error:
            raise Refusal(
                f"the gateway does not answer ({error.strerror or error})",
                consequence=UNTOUCHED,
                fix="`systemctl start berth-gateway` on the host, or `pulumi up` its stack.",
            ) from None
        finally:
            connection.close()


class _Local(http.client.HTTPConnection):
    """HTTP to a UNIX socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("gateway")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(5)
        self.sock.connect(str(self._path))


def written(file: Path, text: str, mode: int = 0o640) -> None:
    """A file in one step, on the disk when this returns; its folder's group may read it."""
    new = _new(file)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
        stream.flush()
        os.fchown(descriptor, -1, file.parent.stat().st_gid)
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    new.replace(file)


def _new(file: Path) -> Path:
    """What becomes a file once it is whole."""
    return file.with_name(f"{file.name}.new")
