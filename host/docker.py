"""Docker on this host: how it can hand out GPUs, and Berth's own containers."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from host.command import run, whole

_CDI = ("/etc/cdi", "/var/run/cdi")
_TOOLKIT = (("nvidia-ctk", "--version"), ("nvidia-container-cli", "--version"))


def docker(user: str) -> dict[str, Any]:
    """Versions, whether the login user may use it, GPUs' ways in, and Berth's containers.

    Containers come with their full id as `id`, which the inventory does not keep.
    """
    status, version = run("docker", "version", "--format", "{{.Server.Version}}")
    groups = run("id", "-nG", user)[1].split()
    return {
        "installed": status != 127,
        "version": version if status == 0 else "",
        "said": "" if status == 0 else version,
        "user_may": user == "root" or "docker" in groups,
        "hook": shutil.which("nvidia-container-runtime-hook") is not None,
        "cdi": any(
            _describes_gpus(spec) for folder in _CDI for spec in Path(folder).glob("nvidia*")
        ),
        "nvidia_runtime": _toolkit(),
        "containers": _containers() if status == 0 else [],
    }


def _describes_gpus(spec: Path) -> bool:
    try:
        return "nvidia.com/gpu" in spec.read_text(errors="replace")
    except OSError:
        return False


def _toolkit() -> str:
    """The NVIDIA container toolkit's version, of whichever of its programs is there."""
    for command in _TOOLKIT:
        status, said = run(*command)
        found = re.search(r"\d+(\.\d+)+", said)
        if status == 0 and found:
            return found.group()
    return ""


def _containers() -> list[dict[str, Any]]:
    """Berth's, those that do not run too; ports as they are asked for, in use or not."""
    ids = run("docker", "ps", "-aq", "--no-trunc", "--filter", "label=berth.instance")[1].split()
    # One that goes between the two questions is left out, and told on standard error.
    said = run("docker", "inspect", "--type", "container", *ids)[1] if ids else "[]"
    try:
        found = json.loads(said)
    except ValueError:
        return []
    return sorted((_container(about) for about in found), key=lambda each: str(each["name"]))


def _container(about: dict[str, Any]) -> dict[str, Any]:
    config = about.get("Config") or {}
    labels = config.get("Labels") or {}
    return {
        "id": about.get("Id", ""),
        "name": about.get("Name", "").lstrip("/"),
        "instance": labels.get("berth.instance", ""),
        "stack": labels.get("berth.stack", ""),
        "image": config.get("Image", ""),
        "state": (about.get("State") or {}).get("Status", ""),
        "ports": _ports((about.get("HostConfig") or {}).get("PortBindings") or {}),
    }


def _ports(bindings: dict[str, Any]) -> list[dict[str, Any]]:
    found = [
        {
            "address": binding.get("HostIp") or "0.0.0.0",  # noqa: S104 (Docker's own default)
            "port": whole(binding.get("HostPort") or ""),
            "inside": whole(inside.partition("/")[0]),
        }
        for inside, all_of_it in bindings.items()
        for binding in all_of_it or []
    ]
    return sorted(found, key=lambda port: (port["port"], port["inside"], port["address"]))
