"""Builds one recipe into the cache, under a key of all that it is built from."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from . import cache
from .golang import Go
from .process import run
from .progress import say, spoken
from .recipe import Recipe
from .versions import TOOLS

BUILD_LIMIT_S = 3600.0
FIX = "If it could not download: Go must reach its module registry, or GOPROXY name a mirror."


def built(recipe: Recipe, go: Go, place: str) -> Path:
    """The directory that holds the recipe's program; `place` is its "n of m"."""

    def make(draft: Path) -> None:
        say(f"[{place}] building {recipe.program} (typically {recipe.typical} on two cores)")
        started = time.monotonic()
        _make(recipe, go, draft)
        say(f"[{place}] built {recipe.program} in {spoken(time.monotonic() - started)}")

    return cache.kept(recipe.name, key(recipe, go), make)


def key(recipe: Recipe, go: Go) -> str:
    """Tests are left out of it: they change nothing in the program."""
    digests = {
        str(file.relative_to(TOOLS)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sources(TOOLS / recipe.name)
    }
    parts = {
        "recipe": {k: v for k, v in asdict(recipe).items() if k != "typical"},
        "arguments": recipe.arguments,
        "sources": digests,
        "go": go.release,
        "machine": [sys.platform, platform.machine()],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def sources(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        in_build = file.suffix == ".go" or file.name in ("go.mod", "go.sum")
        if in_build and not file.name.endswith("_test.go"):
            yield file


def _make(recipe: Recipe, go: Go, draft: Path) -> None:
    program = str(go.program())
    folder = TOOLS / recipe.name
    env = _environment(recipe)
    target = ("-o", str(draft / recipe.program), recipe.package)
    run(
        [program, "build", *recipe.arguments, *target],
        cwd=folder,
        env=env,
        limit_s=BUILD_LIMIT_S,
        what=f"Building {recipe.program}",
        fix=FIX,
    )
    for script in recipe.scripts:
        module = run(
            [program, "list", "-m", "-f", "{{.Dir}}", script.module],
            cwd=folder,
            env=env,
            limit_s=300,
            what=f"Finding {script.module}",
            fix=FIX,
        ).strip()
        copied = draft / Path(script.path).name
        shutil.copyfile(Path(module) / script.path, copied)
        copied.chmod(0o755)


def _environment(recipe: Recipe) -> dict[str, str]:
    env = {
        **os.environ,
        "CGO_ENABLED": "0",  # no C compiler needed, and the program runs on any libc
        "GOFLAGS": "-mod=readonly",  # what go.mod and go.sum say, or a failure
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    if recipe.unlisted:
        theirs = [env["GONOSUMDB"]] if env.get("GONOSUMDB") else []
        env["GONOSUMDB"] = ",".join([*theirs, *recipe.unlisted])
    return env
