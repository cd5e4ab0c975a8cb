"""The reference of all that a user can declare, written from the declarations themselves."""

from __future__ import annotations

import json

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from models.build import Build, BuildVersions
from models.catalog import CatalogModel
from models.demo import Demo, Fallback, Role
from models.gateway import Adapter, Gateway, TlsFiles
from models.host import Gpu, Host, Restart, SshAccess, Ulimit
from models.instance import Instance, Mount
from models.stack import StackConfig

PARTS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("`Pulumi.<stack>.yaml`: keys `berth:<section>`", StackConfig),
    ("A host: `berth:hosts.<name>`", Host),
    ("Its SSH access: `ssh`", SshAccess),
    ("A GPU: `gpus[]`", Gpu),
    ("A resource limit: `ulimits[]`", Ulimit),
    ("How units are restarted: `restart`", Restart),
    ("Its gateway: `gateway`", Gateway),
    ("A certificate on the host: `gateway.tls`", TlsFiles),
    ("The adapter: `gateway.adapter`", Adapter),
    ("An instance: `berth:instances.triton@<id>`", Instance),
    ("A further directory of an instance: `mounts[]`", Mount),
    ("An image that is built: `berth:builds.<name>`", Build),
    ("What a build is to hold: `versions`", BuildVersions),
    ("A demo: `berth:demo`", Demo),
    ("A role: `berth:demo.roles.<name>`", Role),
    ("What serves where a role's model does not: `fallback`", Fallback),
    ("A model: `catalog/<name>.yaml`", CatalogModel),
)


def reference() -> str:
    """The whole reference, as Markdown."""
    head = (
        "# What can be declared\n\n"
        "Written by `berth reference` from the declarations in `models/`; a test holds this page\n"
        "to them. Unknown keys are refused, with the nearest known one.\n"
    )
    return head + "".join(f"\n## {title}\n\n{_table(model)}" for title, model in PARTS)


def _table(model: type[BaseModel]) -> str:
    about = " ".join((model.__doc__ or "").split())
    rows = [
        f"| `{name}` | {_default(f)} | {_meaning(f)} |" for name, f in model.model_fields.items()
    ]
    return f"{about}\n\n| key | default | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default is None:
        return "–"
    value = field.default
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if isinstance(value, list):
        value = [item.model_dump() if isinstance(item, BaseModel) else item for item in value]
    return f"`{json.dumps(value)}`"


def _meaning(field: FieldInfo) -> str:
    return " ".join((field.description or "").split()).replace("|", "\\|")
