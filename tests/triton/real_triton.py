"""A real tritonserver in EXPLICIT mode, as a process of the test, and entries to load in it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from models.instance import CONTROL_HEADER
from tests.providers.local_sshd import LocalSshd, free_port
from tests.triton.unpacked import unpacked_tritonserver

STANDIN = Path(__file__).with_name("vllm_standin")
KEY = "k3y-of-the-test"
RESTRICTED = "model-repository,model-config,statistics,trace,logging,shared-memory"
GPUS = [f"GPU-00000000-0000-0000-0000-00000000000{index}" for index in range(4)]
# Prints what the stand-in models hold, as the real one does for processes that are alive.
NVIDIA_SMI = """#!/bin/sh
cd {memory} || exit 9
held() {{
  for file in *; do
    pid=${{file#*,}}; pid=${{pid%%,*}}
    [ -e "$file" ] && grep -q '^State:.[^ZX]' /proc/$pid/status 2>/dev/null && echo "$file"
  done
}}
case "$1" in
  --query-gpu=*) {{ held; for gpu in {gpus}; do echo "$gpu,0,3,"; done; }} |
    awk -F, '{{ used[$1] += $3 }} END {{ for (gpu in used) print gpu ", " used[gpu] }}' ;;
  --query-compute-apps=*) held | sed 's/,/, /g' ;;
esac
"""
SYSTEMCTL = """#!/bin/sh
cat {place}/unit-state
"""


@dataclass
class RealTriton:
    """A server that listens on a loopback port, the sshd before it, and its repository."""

    place: Path
    sshd: LocalSshd
    port: int = field(default_factory=free_port)
    options: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        for name in ("models", "memory", "weights/any"):
            (self.place / name).mkdir(parents=True)
        (self.place / "weights" / "any" / "config.json").write_text("{}")
        self.key_file = self.place / "control-key"
        self.key_file.write_text(KEY + "\n")
        unpacked = unpacked_tritonserver()
        self.backends = self.place / "backends"
        self.backends.mkdir()
        triton = unpacked / "pytriton" / "tritonserver"
        (self.backends / "python").symlink_to(triton / "backends" / "python")
        # The backend's embedded Python does not look at PYTHONPATH, but beside the backend's model.
        (self.backends / "vllm").mkdir()
        for path in (STANDIN / "model.py", unpacked / "numpy", unpacked / "numpy.libs"):
            (self.backends / "vllm" / path.name).symlink_to(path)
        self._binary = triton / "bin" / "tritonserver"
        self._environment = {
            "PATH": os.environ["PATH"],
            "LD_LIBRARY_PATH": str(unpacked / "nvidia_pytriton.libs"),
        }
        memory = self.place / "memory"
        smi = NVIDIA_SMI.format(memory=memory, gpus=" ".join(GPUS))
        self.sshd.executable("nvidia-smi", smi)
        self.sshd.executable("systemctl", SYSTEMCTL.format(place=self.place))
        self.unit_is("active")

    def unit_is(self, state: str) -> None:
        """What systemd is to say of the unit."""
        (self.place / "unit-state").write_text(state + "\n")

    def start(self, *options: str) -> None:
        """Start it and wait until it is live (with no start-up loads: at once)."""
        with (self.place / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    self._binary,
                    f"--model-repository={self.place / 'models'}",
                    "--model-control-mode=explicit",
                    f"--backend-directory={self.backends}",
                    f"--http-port={self.port}",
                    "--http-address=127.0.0.1",
                    f"--http-restricted-api={RESTRICTED}:{CONTROL_HEADER}={KEY}",
                    "--disable-auto-complete-config",
                    "--allow-grpc=false",
                    "--allow-metrics=false",
                    "--exit-timeout-secs=2",
                    f"--backend-config=python,shm-region-prefix-name=berth{self.port}",
                    *self.options,
                    *options,
                ],
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_live(self) -> None:
        """Wait until it answers."""
        give_up = time.monotonic() + 20
        while not self.is_live():
            assert self.process is not None
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < give_up, self.log()
            time.sleep(0.02)

    def is_live(self) -> bool:
        """Whether it says so itself."""
        try:
            return self.http("GET", "/v2/health/live").status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """As a crash or a power cut ends it, its backend processes too."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def restartable(self) -> None:
        """Let `systemctl restart` end it."""
        assert self.process is not None
        self.sshd.executable(
            "systemctl",
            f'#!/bin/sh\n[ "$1" = restart ] || exec cat {self.place}/unit-state\n'
            f"echo $@ >> {self.place}/asked\nkill -KILL -{self.process.pid}\n",
        )

    def starts_again(self) -> threading.Thread:
        """As systemd does with a server that has ended, once."""
        assert self.process is not None
        ending = self.process

        def watch() -> None:
            ending.wait(60)
            self.start()

        watching = threading.Thread(target=watch)
        watching.start()
        return watching

    def log(self) -> str:
        """What it said last."""
        return (self.place / "log").read_text(errors="replace")[-4000:]

    def http(
        self, method: str, path: str, *, key: str | None = KEY, json: object = None, **more: Any
    ) -> httpx.Response:
        """Ask it directly, beside the provider."""
        headers = {CONTROL_HEADER: key} if key else {}
        url = f"http://127.0.0.1:{self.port}{path}"
        return httpx.request(method, url, headers=headers, json=json, **({"timeout": 30} | more))

    def by_hand(self, what: str, model: str, body: object = None, **more: Any) -> httpx.Response:
        """Load or unload a model as a person with curl would."""
        return self.http("POST", f"/v2/repository/models/{model}/{what}", json=body or {}, **more)

    def state(self, model: str) -> dict[str, str]:
        """The model's row of the index."""
        rows = self.http("POST", "/v2/repository/index", json={}).json()
        return next((row for row in rows if row["name"] == model), {})

    def entry(self, model: str, digest: str = "d1", **told: Any) -> None:
        """Write an entry for the stand-in engine (as a person would: without a marker)."""
        place = self.place / "models" / model
        (place / "1").mkdir(parents=True, exist_ok=True)
        told = {"place": str(self.place)} | told
        (place / "1" / "model.json").write_text(json.dumps(told))
        (place / "config.pbtxt").write_text(self.pbtxt(digest))

    @staticmethod
    def pbtxt(digest: str) -> str:
        """config.pbtxt with what the backend would add to Berth's, because asking it takes time."""
        return (
            'backend: "vllm"\nmax_batch_size: 0\nmodel_transaction_policy { decoupled: true }\n'
            "instance_group [ { count: 1, kind: KIND_MODEL } ]\n"
            'input [ { name: "text_input", data_type: TYPE_STRING, dims: [ 1 ] } ]\n'
            'output [ { name: "text_output", data_type: TYPE_STRING, dims: [ -1 ] },'
            ' { name: "finish_reason", data_type: TYPE_STRING, dims: [ -1 ] } ]\n'
            f'parameters {{ key: "berth_digest", value: {{ string_value: "{digest}" }} }}\n'
        )

    def props(self, model: str, digest: str = "d1", **changed: Any) -> dict[str, Any]:
        """A TritonModel's inputs as the engine hands them over: every number a float."""
        return {
            "ssh": self.sshd.ssh,
            "host": "sandbox",
            "instance": "triton@2",
            "unit": "triton@2.service",
            "http_port": float(self.port),
            "control_key_file": str(self.key_file),
            "model": model,
            "config_digest": digest,
            "entry_revision": "r1",
            "container_id": "c1",
            "gpus": [],
            "claim_mib": 0.0,
            "owner": "berth/dev/reference",
            "load_timeout_s": 20.0,
            "unload_timeout_s": 10.0,
            "canary_timeout_s": 5.0,
        } | changed

    def stubs(self, model: str) -> list[int]:
        """The processes that hold a model."""
        pattern = f"triton_python_backend_stub {self.place}/models/{model}/"
        found = subprocess.run(["pgrep", "-f", pattern], capture_output=True, check=False)
        return [int(pid) for pid in found.stdout.split()]

    def lifetimes(self, model: str) -> list[str]:
        """`begin` and `end` of the model's engines, in order."""
        path = self.place / "lifetimes"
        rows = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return [what for what, name, *_ in rows if name == model]
