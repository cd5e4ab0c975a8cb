"""What the policy pack cannot see in any resource, shown to it as outputs of one."""

from __future__ import annotations

import pulumi

from models.judged import Judged
from models.known import known_of, written


class Known(pulumi.ComponentResource):
    """Facts of hosts and plain config: outputs, so that a changed fact changes no resource."""

    def __init__(self, judged: Judged, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("berth:plan:Known", judged.stack.rpartition("/")[2], None, opts)
        self.register_outputs({"known": written(known_of(judged))})
