"""Berth's Pulumi program: load the config, check the host, compose, export."""

from __future__ import annotations

from pathlib import Path

import pulumi

from components.providers.readiness import check_hosts
from components.resources.stack import compose
from config.project import load_plan
from config.pulumi_config import sections
from config.ssh_keys import ssh_of_hosts
from models.refusal import Refusal

PROJECT = Path.cwd()

try:
    plan = load_plan(PROJECT, pulumi.get_stack(), sections())
    for warning in check_hosts(plan, ssh_of_hosts(PROJECT, plan.hosts)):
        pulumi.log.warn(str(warning))
    outputs = compose(plan, PROJECT)
except Refusal as refusal:
    raise pulumi.RunError(str(refusal)) from None

for name, value in outputs.items():
    pulumi.export(name, value)
