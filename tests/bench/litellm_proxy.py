"""LiteLLM's proxy in an environment of its own, which is made on first use."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.bench.clock import say
from tests.providers.local_sshd import free_port

ROOT = Path(__file__).parents[2]
LOCK = Path(__file__).with_name("litellm.lock")
KEY = "sk-of-the-benchmark"
START_S = 120


def version() -> str:
    """The locked one."""
    lines = LOCK.read_text().splitlines()
    return next(
        line.split()[0].partition("==")[2] for line in lines if line.startswith("litellm==")
    )


def environment() -> Path:
    """The virtual environment of the lock file, below `.berth/`: a minute and 750 MB, once."""
    place = ROOT / ".berth" / "litellm"
    wanted = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()
    made = place / "made-from"
    if made.is_file() and made.read_text() == wanted:
        return place
    say(f"installing LiteLLM {version()} into .berth/litellm (about a minute, 750 MB)")
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    pip = [str(place / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--require-hashes", "--no-deps", "-r", str(LOCK)], check=True)
    made.write_text(wanted)
    return place


def config(models: dict[str, int]) -> dict[str, Any]:
    """Models by name, each at an upstream's port; a key, but no database and no callbacks."""
    listed = [
        {
            "model_name": name,
            "litellm_params": {
                "model": "openai/served/Own-Name",
                "api_base": f"http://127.0.0.1:{port}/v1",
                "api_key": "none",
            },
        }
        for name, port in models.items()
    ]
    return {
        "model_list": listed,
        "litellm_settings": {"callbacks": [], "num_retries": 0, "request_timeout": 600},
        "general_settings": {"master_key": KEY, "disable_spend_logs": True},
    }


@contextmanager
def litellm_proxy(
    models: dict[str, int], workers: int = 1
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Its URL and its processes while it runs.

    Under uvicorn with uvloop, its default; what it would fetch or report is off, its log quiet.
    """
    installed = environment()
    say(f"LiteLLM's proxy with {workers} worker{'s' if workers > 1 else ''}")
    with tempfile.TemporaryDirectory(prefix="litellm-") as place:
        file, port = Path(place) / "config.yaml", free_port()
        file.write_text(yaml.safe_dump(config(models)))
        words = [str(installed / "bin" / "litellm"), "--config", str(file)]
        words += ["--host", "127.0.0.1", "--port", str(port), "--num_workers", str(workers)]
        # uvicorn kills a worker that is too busy to say for 5 s that it is well.
        words += ["--timeout_worker_healthcheck", "60"] if workers > 1 else []
        quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
        quiet |= {"LITELLM_TELEMETRY": "False", "NO_DOCS": "True", "HOME": place}
        with (Path(place) / "log").open("wb") as log:
            process = subprocess.Popen(
                words, env={**os.environ, **quiet}, stdout=log, stderr=log, start_new_session=True
            )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(process, url, Path(place) / "log")
            yield url, (process.pid, *_children(process.pid))
        finally:
            _end(process)


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    give_up = time.monotonic() + START_S
    while True:
        assert process.poll() is None, log.read_text()[-4000:]
        assert time.monotonic() < give_up, log.read_text()[-4000:]
        try:
            if httpx.get(f"{url}/health/liveliness", trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)


def _children(pid: int) -> list[int]:
    said = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    found = [int(each) for each in said.stdout.split()]
    return found + [below for each in found for below in _children(each)]


def _end(process: subprocess.Popen[bytes]) -> None:
    """With its workers, which live in its session."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait(10)
