"""Berth's Pulumi program: load the config, learn of the hosts, judge, compose, export."""

from __future__ import annotations

from pathlib import Path

import pulumi

from components.resources.hosts_seen import hosts_seen
from components.resources.judged import of_plan
from components.resources.known import Known
from components.resources.refused_builds import stay_as_it_was
from components.resources.stack import compose
from components.resources.verdict import pass_or_refuse
from config.project import load_plan
from config.pulumi_config import plain, sections
from config.releases import load_releases
from models.refusal import Refusal

PROJECT = Path.cwd()

try:
    plan = load_plan(PROJECT, pulumi.get_stack(), sections())
    seen = hosts_seen(plan, PROJECT, preview=pulumi.runtime.is_dry_run())
    judged = of_plan(plan, seen.inventories, load_releases(PROJECT), plain())
    pass_or_refuse(plan, judged, seen)
    known = Known(judged)
    outputs = compose(plan, PROJECT, asked=seen.asked, releases=judged.releases)
    known.complete()
except Refusal as refusal:
    raise pulumi.RunError(str(refusal)) from None

for name, value in outputs.items():
    pulumi.export(name, value)
pulumi.run(lambda: stay_as_it_was(outputs))
