"""A model that neither comes nor goes. Triton has no way to end that, but its process can be."""

from __future__ import annotations

from components.providers.model_server import BUSY, UNLOADING, Wanted
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


async def kept_ensemble(triton: TritonClient, wanted: Wanted) -> bool:
    """Whether the inflight batcher's ensemble stays UNLOADING, with all its memory.

    It may for ever: Triton now and then never lets go of a request whose client went between two
    steps of an ensemble (seen on 2.51; core#483 mends another fault of that count). Berth's adapter
    ends requests otherwise (`engines/triton_batcher.py`), but clients of KServe's protocol just go,
    and so does an adapter that is killed.
    """
    index = await triton.index()
    parts = [index.get(part_name(wanted.model, part)) for part in BATCHER_PARTS]
    return any(part and part.state == UNLOADING for part in parts)


async def restart(session: Session, wanted: Wanted, why: str) -> None:
    """End a server and all that it holds, and have it started again, empty.

    Args:
        why: what that is to end, such as "the load".

    Raises:
        Refusal: its unit does not restart.
    """
    async with progress(f"{wanted.instance}: restarting it to end {why} of {wanted.model}"):
        done = await session.run(
            "systemctl", "restart", wanted.unit,
            doing=f"restarting {wanted.unit}", as_root=True, timeout_s=LONGEST_STOP_S,
        )  # fmt: skip
    if done.status != 0:
        raise Refusal(
            f"{wanted.unit} does not restart: {done.stderr.strip() or 'systemd does not say why'}",
            consequence=f"{why.capitalize()} of {wanted.model} may still hold its GPUs.",
            fix=f"`systemctl status {wanted.unit}` on the host; then run the same again",
            at=wanted.instance,
        )
