"""Where a build failed or was refused, nothing that the stack no longer declares may go.

With `--continue-on-error` the engine deletes what is not declared any more though something failed:
a model that was to move to a server on a new image would be unloaded, and nothing would take its
place. It deletes nothing when the program itself ends with an error, so the program does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from models.refusal import Refusal


async def stay_as_it_was(outputs: Mapping[str, Any]) -> None:
    """End the program with an error where an image that is built was not found good.

    Args:
        outputs: the stack's, as `compose` gives them.

    Raises:
        RunError: one was not; whatever does not wait for it has been brought up first.
    """
    if pulumi.runtime.is_dry_run():
        return
    # What failed is unknown to a program that goes on.
    refused = [
        name for name, build in outputs["builds"].items() if not await build["versions"].is_known()
    ]
    if not refused:
        return
    for section in ("instances", "models"):
        for each in outputs[section].values():
            await each["state"].is_known()
    refusal = Refusal(
        f"no good image came of build {', '.join(sorted(refused))}",
        consequence="What served goes on serving, also what this stack no longer declares.",
        fix="what is said of it above says what to mend; then run it again.",
        at="berth:builds",
    )
    raise pulumi.RunError(str(refusal))
