"""Which process holds a lock on a file, from /proc/locks (proc(5))."""

from __future__ import annotations

from pathlib import Path


def lock_holder(path: Path, proc: Path = Path("/proc")) -> str:
    """`process PID (command line)` of who holds a write lock on a file, as far as it is known."""
    try:
        inode = str(path.stat().st_ino)
        lines = (proc / "locks").read_text().splitlines()
    except OSError:
        return "another process"
    for line in lines:
        cells = line.split()
        if len(cells) >= 6 and cells[3] == "WRITE" and cells[5].endswith(f":{inode}"):
            pid = cells[4]
            try:
                words = (proc / pid / "cmdline").read_bytes().replace(b"\0", b" ")
            except OSError:
                return f"process {pid}"
            return f"process {pid} ({words.decode(errors='replace').strip()[:120]})"
    return "another process"
