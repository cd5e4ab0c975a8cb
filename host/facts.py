"""What a host is and what runs there (Python ≥ 3.9, stdlib only, run as root).

Shipped over SSH; nothing of it stays on the host. Every command is bounded, and what is missing is
an empty value: judging is the caller's.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

COMMAND_TIMEOUT_S = 15
GPU_FIELDS = "uuid,index,name,driver_version,memory.total,memory.used,memory.free"


def run(*command: str) -> tuple[int, str]:
    """Exit status and output; status 127 where the command is not there, 124 where it hung."""
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        return 127, ""
    except subprocess.TimeoutExpired:
        return 124, f"no answer within {COMMAND_TIMEOUT_S} s"
    return done.returncode, done.stdout.decode(errors="replace").strip()


def gpus() -> dict[str, Any]:
    """GPUs as nvidia-smi lists them (MiB), and what it said where it failed."""
    status, said = run("nvidia-smi", f"--query-gpu={GPU_FIELDS}", "--format=csv,noheader,nounits")
    found = []
    for line in said.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == len(GPU_FIELDS.split(",")) and cells[0].startswith("GPU-"):
            found.append(dict(zip(GPU_FIELDS.split(","), cells)))
    return {"status": status, "said": "" if found else said, "found": found}


def gpu_processes() -> list[dict[str, str]]:
    """Who holds GPU memory; a process name may hold commas, so it is what stands between."""
    _, said = run("nvidia-smi", "--query-compute-apps=gpu_uuid,pid,process_name,used_memory",
                  "--format=csv,noheader,nounits")  # fmt: skip
    found = []
    for line in said.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) >= 4 and cells[0].startswith("GPU-"):
            name = ",".join(cells[2:-1])
            found.append({"gpu": cells[0], "pid": cells[1], "name": name, "mib": cells[-1]})
    return found


def docker(user: str) -> dict[str, Any]:
    """Docker's version, how it can hand out GPUs, and Berth's own containers."""
    status, version = run("docker", "version", "--format", "{{.Server.Version}}")
    groups = run("id", "-nG", user)[1].split()
    listing = '{{.Names}}\t{{.Label "berth.instance"}}\t{{.State}}\t{{.Ports}}'
    lines = run("docker", "ps", "-a", "--filter", "label=berth.instance", "--format", listing)[1]
    return {
        "installed": status != 127,
        "version": version if status == 0 else "",
        "said": "" if status == 0 else version,
        "user_may": user == "root" or "docker" in groups,
        "hook": shutil.which("nvidia-container-runtime-hook") is not None,
        "cdi": any(
            "nvidia.com/gpu" in spec.read_text(errors="replace")
            for folder in ("/etc/cdi", "/var/run/cdi")
            for spec in sorted(Path(folder).glob("nvidia*"))
        ),
        "containers": [
            dict(zip(("name", "instance", "state", "ports"), line.split("\t")))
            for line in lines.splitlines()
            if status == 0
        ],
    }


def listening_ports() -> list[int]:
    """TCP ports that something listens on (proc(5), state 0A)."""
    ports = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if Path(table).exists():
            for line in Path(table).read_text().splitlines()[1:]:
                cells = line.split()
                if cells[3] == "0A":
                    ports.add(int(cells[1].rpartition(":")[2], 16))
    return sorted(ports)


def units() -> dict[str, str]:
    """Berth's units and their states."""
    _, said = run("systemctl", "list-units", "--all", "--plain", "--no-legend", "triton@*.service")
    rows = [line.split() for line in said.splitlines()]
    return {row[0]: row[2] for row in rows if len(row) >= 4}


def weights(data_dir: Path) -> dict[str, bool]:
    """Weights directories, and whether each has a config.json."""
    folder = data_dir / "weights"
    if not folder.is_dir():
        return {}
    return {
        entry.name: (entry / "config.json").is_file()
        for entry in sorted(folder.iterdir())
        if entry.is_dir()
    }


def free_mib(path: Path) -> int:
    """Free disk at `path`, or at its nearest parent that exists, in MiB."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free // 2**20


def main(asked: dict[str, Any]) -> dict[str, Any]:
    """`asked`: {"user": login user, "data_dir": the host's data directory}."""
    data_dir = Path(asked["data_dir"])
    return {
        "systemd": Path("/run/systemd/system").is_dir(),
        "gpus": gpus(),
        "gpu_processes": gpu_processes(),
        "docker": docker(asked["user"]),
        "ports": listening_ports(),
        "units": units(),
        "weights": weights(data_dir),
        "free_mib": free_mib(data_dir),
    }
