"""One entry of a host's model repository, as a resource that sees what is really there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pulumi
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    UpdateResult,
)

from components.providers import entry_refusals
from components.providers.plain_refusals import BerthProvider, same
from components.providers.progress import progress, say
from components.providers.ssh import Session
from components.providers.ssh_shared import on_host

_PROGRAM = Path(__file__).parents[2] / "host" / "model_entry.py"
_REPLACES = ("host", "repository", "entry", "owner")
_UPDATES = ("ssh", "files", "weights")
_INPUTS = (*_REPLACES, *_UPDATES)
_MARKER = ".berth-owner.json"


class RepositoryEntryProvider(BerthProvider):
    """Writes an entry as a whole, only over its own owner's, and reads back what is there."""

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Refuse file names that would lead out of the entry."""
        failures = []
        files = news.get("files")
        for name in files if isinstance(files, dict) else ():
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or path.as_posix() in (".", _MARKER):
                failures.append(CheckFailure("files", f"`{name}` is no file inside an entry"))
        return CheckResult(news, failures)

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """A definite answer: what names the entry replaces it, everything else updates it."""
        replaces = [key for key in _REPLACES if not same(_olds.get(key), _news.get(key))]
        updates = [key for key in _UPDATES if not same(_olds.get(key), _news.get(key))]
        return DiffResult(
            changes=bool(replaces or updates), replaces=replaces, delete_before_replace=True
        )

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Write the entry, unless the owner's entry already is exactly that (a repeated run).

        Raises:
            Refusal: weights missing, foreign entry, disk full, or the host cannot be reached.
        """
        return CreateResult(f"{props['host']}:{props['entry']}", _ensure(props))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """As `create`: a new revision if anything had to be written, the old one if nothing."""
        return UpdateResult(_ensure(_news))

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """What the host really holds, as outputs and inputs, so that a hand's edit is a diff.

        An entry that is gone, or that is somebody else's by now, is gone.

        Raises:
            Refusal: the host cannot be reached.
        """
        answer = _call("read", props)
        if not answer:
            return ReadResult("", {})
        inputs = {key: props[key] for key in _INPUTS if key in props} | {"files": answer["files"]}
        return ReadResult(id_, inputs | {"revision": answer["revision"]}, inputs)

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Remove the entry; one that is gone, or another owner's by now, is left as it is.

        Raises:
            Refusal: the host cannot be reached.
        """
        answer = _call("delete", _props)
        if "refused" in answer:
            say(f"{_props['entry']}: {entry_refusals.refusal(answer, _props)}")


class RepositoryEntry(Resource, module="berth", name="RepositoryEntry"):
    """A directory of the model repository with its files, written and swapped in as a whole."""

    revision: pulumi.Output[str]
    """Changes with every write; what a model's load depends on."""

    def __init__(
        self,
        name: str,
        *,
        ssh: pulumi.Input[Mapping[str, Any]],
        host: str,
        repository: str,
        entry: str,
        files: pulumi.Input[Mapping[str, pulumi.Input[str]]],
        weights: str,
        owner: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare an entry.

        Args:
            ssh: how the host is reached: `address`, `port`, `user`, `private_key_file` (or None)
                and `host_key`.
            repository: the model repository's path on the host.
            entry: the directory's name in it, which is Triton's model name.
            files: relative path → text.
            weights: the model's weights directory on the host, which must be there already.
            owner: whose entry it is: `berth/<stack>/<demo>`.
        """
        properties = {
            "ssh": ssh,
            "host": host,
            "repository": repository,
            "entry": entry,
            "files": files,
            "weights": weights,
            "owner": owner,
            "revision": None,
        }
        super().__init__(RepositoryEntryProvider(), name, properties, opts)


def _ensure(props: Mapping[str, Any]) -> dict[str, Any]:
    answer = _call("ensure", props)
    if "refused" in answer:
        raise entry_refusals.refusal(answer, props)
    inputs = {key: props[key] for key in _INPUTS if key in props}
    return inputs | {"revision": answer["revision"]}


def _call(action: str, props: Mapping[str, Any]) -> dict[str, Any]:
    payload = {key: props[key] for key in ("repository", "entry", "files", "weights", "owner")}
    doing = {"ensure": "writing", "read": "reading", "delete": "removing"}[action]

    async def work(session: Session) -> dict[str, Any]:
        what = f"{doing} entry {props['entry']}"
        async with progress(f"{props['host']}: {what}"):
            return await session.run_python(
                _PROGRAM.read_text(), payload | {"action": action}, doing=what
            )

    return on_host(props["ssh"], work)
