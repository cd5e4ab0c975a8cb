"""Images that were built on this host: what they hold, asked of them once and kept.

An image is asked in a container of its own that can do nothing: no network, no GPU, no mount, no
capability, read-only, bounded in memory, processes and time. Nothing of it is imported but Python's
own library: package metadata is read, and two files.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from host.command import run
from host.gpus import gpus

REPOSITORY = "berth-build"
CACHE = Path("/var/lib/berth/images.json")
"""Id of an image → what it holds; beside the ledger."""
PROBE_TIMEOUT_S = 120.0
_INSIDE_S = 90
PROGRAM = f"""\
import importlib.metadata, importlib.util, json, os, pathlib, re, threading
# The first process of a container has no default for signals: it ends itself.
clock = threading.Timer({_INSIDE_S}, os._exit, (124,))
clock.daemon = True
clock.start()
found = {{}}
for name in ("vllm", "transformers", "torch", "tensorrt_llm", "ray"):
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
triton = os.environ.get("TRITON_SERVER_VERSION", "")
if re.fullmatch(r"[0-9]+([.][0-9]+)+", triton) and os.path.exists("/opt/tritonserver"):
    found["tritonserver"] = triton
cuda = os.environ.get("CUDA_VERSION", "")
spec = None if cuda else importlib.util.find_spec("torch")
if spec and spec.origin:
    file = pathlib.Path(spec.origin).with_name("version.py")
    text = file.read_text() if file.exists() else ""
    said = re.search(r"^cuda\\b[^=\\n]*= *(None|'[0-9.]+'|\\"[0-9.]+\\")", text, re.M)
    cuda = said.group(1).strip("'\\"").replace("None", "none") if said else ""
if cuda:
    found["cuda"] = cuda
print("berth:" + json.dumps(found), flush=True)
os._exit(0)
"""


def probed(asked: Mapping[str, Any], cache: Path = CACHE) -> dict[str, Any]:
    """What an image holds, and what it is to run on.

    Args:
        asked: {"image": its id, "weights": directories of models}.
        cache: where the answer is kept, if its directory is there.

    Returns:
        {"versions": {package: version}} or {"trouble": why it cannot be told}; and "driver", and
        "model_types": weights directory's name → `model_type` of its config.json.
    """
    around = {
        "driver": gpus()["driver"],
        "model_types": {Path(each).name: _model_type(Path(each)) for each in asked["weights"]},
    }
    known = recalled(asked, cache) or _probe(str(asked["image"]), cache)
    return {**known, **around}


def recalled(asked: Mapping[str, Any], cache: Path = CACHE) -> dict[str, Any]:
    """What is known of an image already: {"versions": ...}, or nothing."""
    known = _read(cache).get(str(asked["image"]))
    return {} if known is None else {"versions": known}


def _probe(image: str, cache: Path) -> dict[str, Any]:
    name = f"berth-probe-{os.getpid()}"
    command = [
        "docker", "run", "--rm", "--name", name, "--network", "none", "--read-only",
        "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--pids-limit", "64",
        "--memory", "1g", "--user", "65534:65534", "--workdir", "/", "--log-driver", "none",
        # A host whose default runtime is NVIDIA's would hand all GPUs to an image that asks.
        "--env", "NVIDIA_VISIBLE_DEVICES=void",
        "--entrypoint", "python3", image, "-c", PROGRAM,
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        return {"trouble": "Docker is not installed"}
    except subprocess.TimeoutExpired:
        run("docker", "rm", "--force", name)
        return {"trouble": f"no answer within {PROBE_TIMEOUT_S:.0f} s"}
    for line in done.stdout.decode(errors="replace").splitlines():
        if line.startswith("berth:"):
            versions = {str(key): str(value) for key, value in json.loads(line[6:]).items()}
            _write(cache, {**_read(cache), image: versions})
            return {"versions": versions}
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return {"trouble": said[-1][:300] if said else f"its python3 ended with {done.returncode}"}


def _model_type(weights: Path) -> str:
    try:
        config = json.loads((weights / "config.json").read_text())
    except (OSError, ValueError):
        return ""
    said = config.get("model_type") if isinstance(config, dict) else None
    return said if isinstance(said, str) else ""


def built(cache: Path = CACHE) -> list[dict[str, Any]]:
    """Images here that were built from Dockerfiles of projects, with what is known of them."""
    listed = run(
        "docker", "image", "ls", "--no-trunc", "--filter", f"reference={REPOSITORY}/*",
        "--format", "{{.Repository}}:{{.Tag}} {{.ID}}",
    )  # fmt: skip
    known = _read(cache)
    rows = [line.split() for line in listed[1].splitlines()] if listed[0] == 0 else []
    return sorted(
        (
            {"reference": row[0], "id": row[1], "versions": known[row[1]]}
            for row in rows
            if len(row) == 2 and row[1] in known
        ),
        key=lambda each: str(each["reference"]),
    )


def _read(cache: Path) -> dict[str, dict[str, str]]:
    """Nothing where there is nothing, or nothing that can be read: it is asked again then."""
    try:
        known = json.loads(cache.read_text())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _write(cache: Path, known: dict[str, dict[str, str]]) -> None:
    """As a whole or not at all; a host that is not set up keeps nothing."""
    beside = cache.with_name(f".{cache.name}.{os.getpid()}")
    try:
        beside.write_text(json.dumps(known, sort_keys=True))
        beside.replace(cache)
    except OSError:
        return
