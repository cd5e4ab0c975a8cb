"""What builds are made from: their directories in the project, read and summed up."""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from models import dockerfile
from models.build import Build, PlannedBuild, reference
from models.finding import UNTOUCHED
from models.refusal import Refusal, Refusals


def load_builds(project: Path, builds: Mapping[str, Build]) -> dict[str, PlannedBuild]:
    """Name → build, each with a digest over every file of its context, its recipe and arguments.

    Raises:
        Refusals: with each build whose inputs cannot be used.
    """
    found: dict[str, PlannedBuild] = {}
    refusals: list[Refusal] = []
    for name, build in builds.items():
        try:
            found[name] = _planned(project, name, build)
        except Refusal as refusal:
            refusals.append(refusal)
    if refusals:
        raise Refusals(refusals)
    return found


def _planned(project: Path, name: str, build: Build) -> PlannedBuild:
    at = f"berth:builds.{name}"
    context = project / build.context
    if not context.is_dir():
        raise Refusal(
            f"no directory `{build.context}` in the project",
            consequence=UNTOUCHED,
            fix="name the directory with the Dockerfile and what it copies.",
            at=f"{at}.context",
        )
    try:
        text = (context / build.dockerfile).read_text(encoding="utf-8")
        bases = dockerfile.images(text, build.args)
        digest = _digest(context, build)
    except FileNotFoundError as error:
        raise Refusal(
            f"no file `{build.dockerfile}` in {build.context}",
            consequence=UNTOUCHED,
            fix="write the Dockerfile, or name it in `dockerfile`.",
            at=f"{at}.dockerfile",
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Refusal(
            f"{build.context} cannot be read: {said}", consequence=UNTOUCHED, at=at
        ) from error
    except dockerfile.Unresolved as why:
        raise Refusal(
            f"{build.context}/{build.dockerfile}: {why}",
            consequence=f"What it would be made from is not known. {UNTOUCHED}",
            fix=f"give the value in `{at}.args`, or a default in its `ARG` before the `FROM`.",
            at=at,
        ) from why
    return PlannedBuild(
        name=name,
        reference=reference(name, digest),
        context=build.context,
        dockerfile=build.dockerfile,
        args=dict(build.args),
        bases=bases,
        versions=build.versions.said if build.versions else {},
    )


def _digest(context: Path, build: Build) -> str:
    """Of names, contents and whether they may be run; not of times and owners.

    A file that `.dockerignore` leaves out counts too: a change of it costs a build from Docker's
    cache, which gives the very same image, so that nothing is restarted.
    """
    whole = hashlib.sha256(json.dumps([build.dockerfile, build.args], sort_keys=True).encode())
    for path in sorted(_below(context)):
        name = path.relative_to(context).as_posix()
        whole.update(json.dumps([name, *_content(path)]).encode())
    return whole.hexdigest()


def _below(directory: Path) -> Iterator[Path]:
    """All that is no directory; links are not followed."""
    for path in directory.iterdir():
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)
        else:
            yield path


def _content(path: Path) -> tuple[str, str]:
    """What sort of file it is, and a digest of it, or where a link leads."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return "link", str(path.readlink())
    if not stat.S_ISREG(mode):
        return "special", ""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return "program" if mode & stat.S_IXUSR else "file", digest
