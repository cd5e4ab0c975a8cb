"""What a preview would change, from the engine's own event log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

IDLE = {"same", "refresh", "read"}
"""Operations that leave a resource as it is."""


def would_change(event_log: Path) -> bool:
    """Whether `up` would change a resource or an output of the stack.

    A log that does not end with the engine's summary counts as a change: then `up` decides.
    """
    changes: dict[str, int] | None = None
    outputs = False
    for line in event_log.read_text().splitlines():
        event: dict[str, Any] = json.loads(line)
        summary = event.get("summaryEvent")
        if summary is not None:
            changes = summary.get("resourceChanges") or {}
        metadata = (event.get("resOutputsEvent") or {}).get("metadata") or {}
        if metadata.get("type") == "pulumi:pulumi:Stack" and metadata.get("op") == "same":
            old = (metadata.get("old") or {}).get("outputs") or {}
            new = (metadata.get("new") or {}).get("outputs") or {}
            outputs = bool(new) and old != new
    return changes is None or outputs or any(n and op not in IDLE for op, n in changes.items())
