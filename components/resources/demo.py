"""A demo's models: their repository entries, and that they are loaded."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

from components.providers.repository_entry import RepositoryEntry
from components.providers.triton_model import TritonModel
from components.renderers import entry
from components.resources.access import HostAccess
from components.resources.instance import TritonInstance
from models.plan import Placement, Plan

CANARY_TIMEOUT_S = 60
"""Bound on the inference that decides whether a loaded model serves, in seconds."""


class Demo(pulumi.ComponentResource):
    """The models that one demo's roles need, each on its instance."""

    states: Mapping[str, pulumi.Output[str]]
    """Placement's name → the model's state."""

    def __init__(
        self,
        plan: Plan,
        access: Mapping[str, HostAccess],
        instances: Mapping[str, TritonInstance],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("berth:demo:Demo", str(plan.demo), None, opts)
        self._access = access
        self._instances = instances
        self._entries: dict[tuple[str, str], RepositoryEntry] = {}
        states = {}
        for placement in plan.placements:
            states[placement.name] = self._model(placement, self._entry(placement)).state
        self.states = states
        self.register_outputs({"states": dict(states)})

    def _entry(self, placement: Placement) -> RepositoryEntry:
        """One for each host that holds the model, however many of its instances do."""
        host = placement.instance.host_name
        if (host, placement.entry) not in self._entries:
            served_by = self._instances.get(placement.instance.name)
            self._entries[host, placement.entry] = RepositoryEntry(
                f"{host}/{placement.entry}",
                ssh=self._access[host].ssh,
                host=host,
                repository=placement.instance.host.repository,
                entry=placement.entry,
                files=entry.entry_files(placement),
                weights=entry.weights_path(placement),
                owner=placement.owner,
                opts=pulumi.ResourceOptions(
                    parent=self, depends_on=[served_by.setup] if served_by else None
                ),
            )
        return self._entries[host, placement.entry]

    def _model(self, placement: Placement, written: RepositoryEntry) -> TritonModel:
        planned = placement.instance
        served_by = self._instances.get(planned.name)
        return TritonModel(
            f"{placement.entry}/{planned.name}",
            ssh=self._access[planned.host_name].ssh,
            host=planned.host_name,
            instance=planned.name,
            unit=planned.unit,
            http_port=planned.declared.http_port,
            control_key_file=planned.control_key_file,
            model=placement.entry,
            config_digest=entry.digest(placement),
            entry_revision=written.revision,
            # A demo on another stack's host sees a server made anew when it refreshes: the model is
            # gone there.
            container_id=served_by.incarnation if served_by else "",
            gpus=[gpu.uuid for gpu in planned.gpus],
            claim_mib=placement.claims[0].mib,
            owner=placement.claims[0].owner,
            load_timeout_s=placement.catalog.load_timeout_s,
            unload_timeout_s=placement.catalog.unload_timeout_s,
            canary_timeout_s=CANARY_TIMEOUT_S,
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=[written, *([served_by] if served_by else [])]
            ),
        )
