"""What the policy pack cannot see in any resource, shown to it as outputs of one."""

from __future__ import annotations

import pulumi
from pulumi.runtime import register_stack_transformation

from models.judged import Judged
from models.known import known_of, written
from models.refusal import Refusal


class Known(pulumi.ComponentResource):
    """Facts of hosts and plain config: outputs, so that a changed fact changes no resource.

    Made before all other resources, which it lists too: a run that refreshes first shows a pack
    what it will delete as well (seen with Pulumi 3.185 and 3.272), and nothing there tells it from
    what stays.
    """

    def __init__(self, judged: Judged, opts: pulumi.ResourceOptions | None = None) -> None:
        self._judged = judged
        self._declared: set[str] = set()
        self._told = False
        register_stack_transformation(self._listed)
        super().__init__("berth:plan:Known", judged.stack.rpartition("/")[2], None, opts)

    def complete(self) -> None:
        """Say what is known, once everything is declared."""
        self._told = True
        self.register_outputs({"known": written(known_of(self._judged, self._declared))})

    def _listed(self, args: pulumi.ResourceTransformationArgs) -> None:
        if self._told:
            raise Refusal(
                "it is declared too late, as in an `apply`",
                consequence="The policy pack would take it for one that goes, and not judge it.",
                fix="declare it outright, before `Known.complete()`.",
                at=f"{args.type_} {args.name}",
            )
        self._declared.add(f"{args.type_}::{args.name}")
