"""A load that does not end. Triton has no way to end one, but its process can be."""

from __future__ import annotations

from components.providers.model_server import BUSY, Wanted
from components.providers.progress import progress
from components.providers.served_unit import LONGEST_STOP_S
from components.providers.ssh import Session
from components.providers.triton_client import TritonClient
from models.engine import BATCHER_PARTS, part_name
from models.refusal import Refusal


async def held_beside(triton: TritonClient, wanted: Wanted) -> list[str]:
    """The other models that a server holds, loads or unloads."""
    own = {wanted.model, *(part_name(wanted.model, part) for part in BATCHER_PARTS)}
    index = await triton.index()
    return sorted(
        name for name, of in index.items() if of.state in ("READY", *BUSY) and name not in own
    )


async def restart(session: Session, wanted: Wanted) -> None:
    """End a server and all that it was loading, and have it started again, empty.

    Raises:
        Refusal: its unit does not restart.
    """
    async with progress(f"{wanted.instance}: restarting it to end the load of {wanted.model}"):
        done = await session.run(
            "systemctl", "restart", wanted.unit,
            doing=f"restarting {wanted.unit}", as_root=True, timeout_s=LONGEST_STOP_S,
        )  # fmt: skip
    if done.status != 0:
        raise Refusal(
            f"{wanted.unit} does not restart: {done.stderr.strip() or 'systemd does not say why'}",
            consequence=f"It may still be loading {wanted.model}, which holds its GPUs.",
            fix=f"`systemctl status {wanted.unit}` on the host; then run the same again",
            at=wanted.instance,
        )
