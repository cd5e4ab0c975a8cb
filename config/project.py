"""A stack of this project, read from its files: config, host stack's config, catalog → plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from config.builds import load_builds
from config.files import (
    PREFIX,
    catalog_names,
    load_catalog,
    readable_catalog,
    stack_names,
    stack_sections,
)
from models.plan import Plan
from models.planning import make_plan
from models.refusal import Refusal
from models.stack import StackConfig
from models.validation import parse


def load_plan(project: Path, stack: str, sections: dict[str, Any] | None = None) -> Plan:
    """The plan of `stack`.

    Args:
        project: the directory with `Pulumi.yaml`, the stacks' configs and `catalog/`.
        stack: its name.
        sections: its `berth:` sections where the caller has them already; otherwise they are read
            from `Pulumi.<stack>.yaml`.

    Raises:
        Refusal: with everything that is wrong.
    """
    if sections is None:
        sections = stack_sections(project, stack)
    config = parse(StackConfig, sections, PREFIX)
    host_stack = None
    if config.host_stack is not None:
        host_stack = _host_stack(project, config.host_stack)
    directory = project / "catalog"
    roles = config.demo.roles.values() if config.demo else ()
    wanted = {role.model for role in roles}
    wanted |= {role.fallback.model for role in roles if role.fallback}
    return make_plan(
        stack,
        config,
        readable_catalog(directory) | load_catalog(directory, sorted(wanted)),
        known_models=catalog_names(directory),
        host_stack=host_stack,
        builds=load_builds(project, {**(host_stack.builds if host_stack else {}), **config.builds}),
    )


def _host_stack(project: Path, name: str) -> StackConfig:
    if not (project / f"Pulumi.{name}.yaml").is_file():
        raise Refusal(
            f"no config of a stack `{name}`",
            consequence="Nothing says where this demo's models would run.",
            fix=f"name a stack that sets up hosts; there are: {', '.join(stack_names(project))}.",
            at="berth:host_stack",
        )
    config = parse(StackConfig, stack_sections(project, name), f"Pulumi.{name}.yaml: {PREFIX}")
    if not config.hosts:
        raise Refusal(
            f"stack `{name}` declares no hosts of its own",
            consequence="Nothing says where this demo's models would run.",
            fix="name the stack that declares `berth:hosts`.",
            at="berth:host_stack",
        )
    return config
