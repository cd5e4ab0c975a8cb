"""Models as they are claimed, written and loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pulumi_policy import PolicyResource

from models.claim_record import ClaimRecord
from models.judged import JudgedModel
from models.overlap import Claim
from models.refusal import Refusal
from policy.plain import Properties, Unread

CLAIMS = "pulumi-python:dynamic/berth:Claims"
ENTRY = "pulumi-python:dynamic/berth:RepositoryEntry"
MODEL = "pulumi-python:dynamic/berth:TritonModel"
SERVED = "pulumi-python:dynamic/berth:ServedModel"
CONFIG, ARGS = "config.pbtxt", "1/model.json"


def claimed(resource: PolicyResource) -> list[tuple[str, ClaimRecord]]:
    """(host, claim) of all that a demo claims on a host.

    Raises:
        Unread: it cannot be read.
    """
    props = Properties(resource.props)
    host = props.text("host")
    records = props.value("claims")
    if not isinstance(records, list):
        raise Unread("`claims` is no list")
    try:
        return [(host, ClaimRecord.of(each)) for each in records]
    except Refusal as refusal:
        raise Unread(f"{refusal.at}: {refusal.cause}") from None


def files(resource: PolicyResource) -> tuple[tuple[str, str], dict[str, str]]:
    """(host, entry), and the entry's files by their paths.

    Raises:
        Unread: it cannot be read.
    """
    props = Properties(resource.props)
    contents = props.value("files")
    if not isinstance(contents, Mapping):
        raise Unread("`files` is no map")
    if not all(isinstance(text, str) for text in contents.values()):
        raise Unread("a file of it is no text")
    return (props.text("host"), props.text("entry")), dict(contents)


def loaded(resource: PolicyResource) -> tuple[str, ClaimRecord]:
    """(host, claim) of a model as it is loaded, whether or not it is claimed so.

    Raises:
        Unread: it cannot be read.
    """
    props = Properties(resource.props)
    host, entry, instance = (props.text(key) for key in ("host", "model", "instance"))
    mib = props.whole("claim_mib")
    owner = props.text("owner")
    values = {
        "name": props.text("claim_name", f"{entry}/{instance}"),
        "owner": props.text("holder", owner),
        "entry": entry,
        "instance": instance,
        "gpus": [{"uuid": uuid, "mib": mib} for uuid in props.texts("gpus")],
    }
    try:
        return host, ClaimRecord.of(values)
    except Refusal as refusal:
        raise Unread(f"{refusal.at}: {refusal.cause}") from None


def served(resource: PolicyResource) -> tuple[str, ClaimRecord, dict[str, object]]:
    """(host, claim, engine's arguments) of a model that a server of its own holds.

    Raises:
        Unread: it cannot be read.
    """
    props = Properties(resource.props)
    mib = props.whole("claim_mib")
    values = {
        "name": props.text("claim_name"),
        "owner": props.text("holder"),
        "engine": props.text("engine"),
        "instance": props.text("unit").removesuffix(".service"),
        "gpus": [{"uuid": uuid, "mib": mib} for uuid in props.texts("gpus")],
    }
    given = props.value("arguments")
    if not isinstance(given, Mapping):
        raise Unread("`arguments` is no map")
    try:
        return props.text("host"), ClaimRecord.of(values), dict(given)
    except Refusal as refusal:
        raise Unread(f"{refusal.at}: {refusal.cause}") from None


def arguments(text: str) -> dict[str, object]:
    """The engine's, from `model.json`.

    Raises:
        Unread: it is no JSON object.
    """
    try:
        args = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unread(f"{ARGS} is no JSON: {error}") from None
    if not isinstance(args, dict):
        raise Unread(f"{ARGS} is no JSON object")
    return args


def model(
    host: str,
    record: ClaimRecord,
    entry: Mapping[str, str],
    image: str,
    told: Mapping[str, object] | None = None,
) -> JudgedModel:
    """A claimed model with its entry's files.

    Args:
        host: where it is.
        record: its claim.
        entry: path → text of its repository entry; empty where it has none.
        image: of what serves it.
        told: what its own server is told, where it has one.

    Raises:
        Unread: the engine's arguments cannot be read.
    """
    claims: tuple[Claim, ...] = record.claims(host)
    return JudgedModel(
        name=record.name,
        owner=record.owner,
        demo=record.demo,
        model=record.model,
        entry=record.entry,
        host=host,
        instance=record.instance,
        roles=record.roles,
        claims=claims,
        config_pbtxt=entry.get(CONFIG, ""),
        engine_args=arguments(entry.get(ARGS, "{}")) if told is None else told,
        engine=record.engine,
        image=image,
        instead_of=record.instead_of,
    )
