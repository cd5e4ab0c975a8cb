"""A sandbox host of the tests' own, as an operator sees it from a root shell."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class TestHost:
    """The host, by the name of its container."""

    __test__ = False

    name: str
    directory: Path

    @property
    def description(self) -> dict[str, Any]:
        """What the sandbox says of itself: SSH port, GPUs, image."""
        described: dict[str, Any] = json.loads((self.directory / "sandbox.json").read_text())
        return described

    def sandbox(self, *arguments: str, timeout_s: float = 1200) -> str:
        """Run the sandbox's own command."""
        command = [sys.executable, "-m", "sandbox", *arguments]
        done = subprocess.run(
            command, cwd=ROOT, text=True, capture_output=True, timeout=timeout_s, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def sh(self, script: str, *, ok: bool = True, timeout_s: float = 120) -> str:
        """Run a script as root on the host; its output, without the last line end."""
        done = subprocess.run(
            ["docker", "exec", "-i", self.name, "bash", "-eu"],
            input=script,
            text=True,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
        assert not ok or done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout.strip()

    def gpu_mib(self) -> list[int]:
        """Used memory of each GPU, in MiB."""
        said = self.sh("nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits")
        return [int(line) for line in said.splitlines()]

    def claimed_mib(self) -> list[int]:
        """Memory of each GPU that the ledger holds claims on, in MiB."""
        claimed = Counter[str]()
        for claim in json.loads(self.sh("berth-host claims"))["claims"]:
            for gpu in claim["gpus"]:
                claimed[gpu["uuid"]] += gpu["mib"]
        uuids = self.sh("nvidia-smi --query-gpu=uuid --format=csv,noheader").splitlines()
        return [claimed[uuid] for uuid in uuids]

    def control(self, instance: str, port: int, path: str) -> str:
        """POST to an instance's control API with its key, as an operator with curl would."""
        key = f"$(cat /etc/berth/instances/{instance}.key)"
        return self.sh(
            f'curl -sf -m 60 -X POST -H "X-Berth-Control: {key}" http://127.0.0.1:{port}{path}'
        )

    def loads(self, instance: str) -> int:
        """How often the instance's server has loaded a model, from its journal."""
        script = f"journalctl -u triton@{instance} -o cat | grep -c 'successfully loaded' || true"
        return int(self.sh(script))

    def answers(self, port: int, model: str) -> bool:
        """Whether a model answers an inference."""
        body = '{"text_input": "hello", "parameters": {"max_tokens": 2}}'
        url = f"http://127.0.0.1:{port}/v2/models/{model}/generate"
        return "text_output" in self.sh(f"curl -s -m 20 {url} -d '{body}' || true")

    def ours(self) -> dict[str, str]:
        """What of Berth is on the host: containers, units, files, processes."""
        return {
            "containers": self.sh("docker ps -aq --filter label=berth.instance"),
            "units": self.sh("systemctl list-units --all --plain --no-legend 'triton@*'"),
            "unit files": self.sh("ls /etc/systemd/system/ | grep -E 'triton|berth' || true"),
            "wanted": self.sh(
                "ls /etc/systemd/system/multi-user.target.wants | grep triton || true"
            ),
            "files": self.sh("find /etc/berth /data/triton -mindepth 1 -maxdepth 1 2>/dev/null"
                             " | grep -v '^/data/triton/weights$' || true"),
            "processes": self.sh("pgrep -af 'tritonserver|serve_triton|python_backend' || true"),
        }  # fmt: skip


def until(what: Callable[[], bool], within_s: float, doing: str) -> None:
    """Poll until `what` is true, or fail after `within_s` seconds."""
    deadline = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < deadline, f"{doing}: not within {within_s} s"
        time.sleep(0.2)


def free_ports(number: int) -> list[int]:
    """Ports on loopback that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def booted(kind: str, *words: str) -> Iterator[TestHost]:
    """A host for the block, named after the process, so that runs side by side do not meet.

    Args:
        kind: what it is for.
        words: further ones of `sandbox up`.
    """
    with tempfile.TemporaryDirectory() as folder:
        ssh, gateway = free_ports(2)
        made = TestHost(f"berth-{kind}-{os.getpid()}", Path(folder) / "sandbox")
        place = ("--name", made.name, "--dir", str(made.directory))
        ports = ("--ssh-port", str(ssh), "--gateway-port", str(gateway))
        try:
            made.sandbox("up", *place, *ports, *words)
            yield made
        finally:
            made.sandbox("down", *place)
