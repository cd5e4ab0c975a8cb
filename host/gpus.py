"""GPUs of this host and who holds memory on them, as nvidia-smi lists them. Memory in MiB."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from host.command import run, whole

FIELDS = ("uuid", "index", "name", "driver_version", "memory.total", "memory.reserved",
          "memory.used")  # fmt: skip
_FORMAT = "--format=csv,noheader,nounits"
_CONTAINER = re.compile(r"[0-9a-f]{64}")


def gpus() -> dict[str, Any]:
    """GPUs, the driver's version, and what nvidia-smi said where it listed none."""
    status, said = run("nvidia-smi", f"--query-gpu={','.join(FIELDS)}", _FORMAT)
    found = []
    driver = ""
    for line in said.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(FIELDS) or not cells[0].startswith("GPU-"):
            continue
        row = dict(zip(FIELDS, cells))
        driver = row["driver_version"]
        found.append(
            {
                "uuid": row["uuid"],
                "index": whole(row["index"]),
                "name": row["name"],
                "memory_mib": whole(row["memory.total"]),
                "reserved_mib": whole(row["memory.reserved"]),
                "used_mib": whole(row["memory.used"]),
            }
        )
    answer = {"status": status, "said": "" if found else said, "found": found}
    return {"gpus": answer, "driver": driver}


def processes() -> list[dict[str, Any]]:
    """Who holds GPU memory; a process name may hold commas, so it is what stands between."""
    _, said = run("nvidia-smi", "--query-compute-apps=gpu_uuid,pid,process_name,used_memory",
                  _FORMAT)  # fmt: skip
    found = []
    for line in said.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) >= 4 and cells[0].startswith("GPU-"):
            name = ",".join(cells[2:-1])
            pid = whole(cells[1])
            found.append({"gpu": cells[0], "pid": pid, "name": name, "mib": whole(cells[-1])})
    return sorted(found, key=lambda row: (row["gpu"], row["pid"]))


def container_of(pid: int, proc: Path = Path("/proc")) -> str:
    """Id of the Docker container that a process runs in, "" if in none or if it is gone.

    Its control group says so: `…/docker-ID.scope` with systemd's driver, `…/docker/ID` with
    cgroupfs, in version 1 and 2 alike; the last id is the innermost.
    """
    try:
        text = (proc / str(pid) / "cgroup").read_text()
    except OSError:
        return ""
    ids = _CONTAINER.findall(text)
    return ids[-1] if ids else ""
