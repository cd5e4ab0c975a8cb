"""Weights and model repository are only read by servers.

A server that could write weights could change what every later load serves; Triton's Python
backend writes `__pycache__` into an entry where it can, which makes the next load a real reload.
"""

from __future__ import annotations

import posixpath

from models.finding import Finding, wrong
from models.judged import Judged

NAME = "read-only-weights"
DESCRIPTION = "No container may write the weights or the model repository."
REMEDY = "Mount with `read_only: true`, or elsewhere."


def findings(judged: Judged) -> list[Finding]:
    """One for each mount through which they could be written."""
    found = []
    for instance in judged.own_instances:
        host = judged.hosts.get(instance.host)
        if host is None:
            continue
        for mount in instance.mounts:
            covered = [
                path
                for path in (host.weights_dir, host.repository)
                if _covers(mount.source, path) or _covers(mount.target, path)
            ]
            if mount.read_only or not covered:
                continue
            found.append(
                wrong(
                    f"{instance.name} may write {' and '.join(covered)}, through its mount of "
                    f"{mount.source} at {mount.target}",
                    consequence="What models serve could change without anybody's review.",
                    fix="set `read_only: true`, or mount a directory beside them, such as "
                    f"{host.data_dir}/cache.",
                    at=f"{instance.at}.mounts",
                )
            )
    return found


def _covers(mounted: str, path: str) -> bool:
    """Whether one of the two lies in the other."""
    one, other = (posixpath.normpath(f"/{each}").lstrip("/") + "/" for each in (mounted, path))
    one, other = ("" if each == "/" else each for each in (one, other))
    return one.startswith(other) or other.startswith(one)
