"""Puts what was built where Pulumi looks for it."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from . import cache
from .versions import pins

MARKER = ".berth-toolchain"


def programs(*built: Path) -> Path:
    """One directory with the CLI and the language host: the CLI looks for it beside itself.

    Hard links, not symbolic ones: the CLI resolves its own path before it looks.
    """

    def link(draft: Path) -> None:
        for folder in built:
            for file in folder.iterdir():
                try:
                    os.link(file, draft / file.name)
                except OSError:
                    shutil.copy2(file, draft / file.name)
        (draft / MARKER).touch()

    return cache.kept("bin", _key(built), link)


def home(docker: Path, command: Path) -> Path:
    """A Pulumi home whose plugin cache holds the plugins, so that none is taken from PATH.

    The caller's PULUMI_HOME, or one for exactly these builds: two checkouts that differ in a
    plugin do not swap it under each other.
    """
    chosen = os.environ.get("PULUMI_HOME")
    place = Path(chosen).absolute() if chosen else cache.root() / f"home-{_key((docker, command))}"
    for name, version, folder in (
        ("docker", pins()["DOCKER_PLUGIN"], docker),
        ("command", pins()["COMMAND_PLUGIN"], command),
    ):
        program = f"pulumi-resource-{name}"
        _linked(place / "plugins" / f"resource-{name}-v{version}" / program, folder / program)
    return place


def _linked(link: Path, target: Path) -> None:
    if link.exists() and not link.is_symlink():
        return  # a published plugin that Pulumi fetched: better than ours
    if link.is_symlink() and link.readlink() == target:
        return
    link.parent.mkdir(parents=True, exist_ok=True)
    # Made under another name, then renamed: nobody ever finds it missing.
    draft = link.parent.parent / f".link-{os.getpid()}"
    draft.unlink(missing_ok=True)
    draft.symlink_to(target)
    draft.rename(link)


def _key(built: tuple[Path, ...]) -> str:
    return hashlib.sha256("\n".join(folder.name for folder in built).encode()).hexdigest()[:16]
