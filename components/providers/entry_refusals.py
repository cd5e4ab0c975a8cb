"""What the host's `model_entry` program refuses, in words a person can act on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from models.refusal import Refusal

_UNTOUCHED = "Nothing was written: the repository is as it was."


def refusal(answer: Mapping[str, Any], inputs: Mapping[str, Any]) -> Refusal:
    """The refusal for an answer `{"refused": kind, …}` about an entry's inputs."""
    repository, entry = str(inputs["repository"]), str(inputs["entry"])
    cause, fix = _words(answer, repository, entry, str(inputs["weights"]))
    return Refusal(cause, consequence=_UNTOUCHED, fix=fix, at=f"{inputs['host']}:{entry}")


def _words(answer: Mapping[str, Any], repository: str, entry: str, weights: str) -> tuple[str, str]:
    path = f"{repository}/{entry}"
    there = ", ".join(answer.get("there", [])) or "nothing"
    match answer["refused"]:
        case "no-weights":
            return (
                f"the weights directory {weights} is not on the host",
                f"copy them there, or name another directory as the catalog entry's `weights` (or "
                f"`engine_dir`); {PurePosixPath(weights).parent} holds: {there}",
            )
        case "no-weights-config":
            return (
                f"{weights} holds no config.json, so it is no model an engine can load",
                f"finish copying the weights (it holds: {there}), or name another directory as "
                "the catalog entry's `weights` (or `engine_dir`)",
            )
        case "no-repository":
            return (
                f"the model repository {repository} is not on the host",
                "bring the host's own stack up first: it makes the host's directories",
            )
        case "foreign":
            return (
                f"{path} belongs to {answer['owner']}",
                "serve the model under another name, or destroy the stack that owns the entry",
            )
        case "no-marker":
            return (
                f"{path} was not made by Berth: it has no readable .berth-owner.json",
                f"move it away (`mv {path} {path}.by-hand`, better out of {repository}) or serve "
                "the model under another name",
            )
        case "disk-full":
            return (
                f"the file system of {repository} is full: {answer['free_kib']} KiB and "
                f"{answer['free_inodes']} inodes are free",
                f"make room there (`du -xsh {PurePosixPath(repository).parent}/*`), then run the "
                "same again",
            )
        case "busy":
            return (
                f"another run has been writing to {repository} for {answer['seconds']:.0f} s",
                "wait for it, then run the same again",
            )
        case "other-file-system":
            return (
                f"{repository} and {answer['staging']} are on different file systems",
                "mount the file system at the data directory instead of at its `models`, so that "
                "an entry can be swapped in by one rename",
            )
    raise AssertionError(f"the host's program refused for an unknown reason: {dict(answer)}")
