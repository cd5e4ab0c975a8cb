"""GPU memory on a host as `nvidia-smi` tells it, and when a model's memory counts as back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from components.providers.ssh import Session

IDLE_MIB = 512
"""A GPU with no more than this in use holds no model: contexts of idle processes, in MiB."""


OVER_MIB = 1536
"""What a model may hold beyond its claim, in MiB: before vLLM 0.20 CUDA graphs lie on top of what
it is told to take, 0.1 to 1.6 GiB in public logs, of which the memory plan counts 512 MiB."""


@dataclass(frozen=True)
class Process:
    """A process that holds GPU memory (MiB)."""

    pid: int
    mib: int
    name: str


@dataclass(frozen=True)
class Memory:
    """What is in use at one moment: MiB per GPU UUID, and the processes that hold it."""

    used: dict[str, int]
    processes: dict[str, list[Process]] = field(default_factory=dict)

    def held_by(self, gpus: Sequence[str]) -> str:
        """Who holds memory on these GPUs, for people."""
        told = []
        for gpu in gpus:
            who = ", ".join(
                f"{process.name} (pid {process.pid}, {process.mib} MiB)"
                for process in self.processes.get(gpu, [])
            )
            told.append(
                f"{gpu}: {self.used.get(gpu, 0)} MiB in use" + (f" by {who}" if who else "")
            )
        return "; ".join(told)


def not_freed(before: Memory, now: Memory, gpus: Sequence[str], claim_mib: int) -> list[str]:
    """The GPUs on which a model that was unloaded still holds its memory.

    A GPU's memory is back when any of these holds, `before` being taken just before the unload:

    1. no more is in use than an idle server needs (`IDLE_MIB`, or half the claim if that is less);
    2. at least half of the claim less is in use;
    3. the processes that held memory before hold at least half of the claim less now.

    Half, because what an engine takes is its claim only roughly. The third rule is for GPUs that
    several models share: a newcomer's memory must not hide that ours has gone. What it cannot
    tell apart is another server's model leaving the same GPU at the same moment.
    """
    enough = claim_mib / 2
    held = []
    for gpu in gpus:
        used = now.used.get(gpu, 0)
        idle = used <= min(IDLE_MIB, enough)
        dropped = before.used.get(gpu, 0) - used >= enough
        if not (idle or dropped or _given_back(before, now, gpu) >= enough):
            held.append(gpu)
    return held


def _given_back(before: Memory, now: Memory, gpu: str) -> int:
    """MiB that the processes of before hold less now."""
    left = {process.pid: process.mib for process in now.processes.get(gpu, [])}
    return sum(process.mib - left.get(process.pid, 0) for process in before.processes.get(gpu, []))


def beyond_claim(
    before: Memory | None, now: Memory, gpus: Sequence[str], claim_mib: int
) -> list[str]:
    """What a model that was just loaded holds beyond its claim, for people; nothing: all is well.

    Where one process has come to a GPU, that is the model's; where the driver lists none, what more
    is in use than before. Several that came at the same time cannot be told apart, so they are not
    judged: the overlap rule has seen that their claims fit together.

    Args:
        before: taken before the load; None where the model was there already.
        now: after its canary, when it holds most.
        gpus: its GPUs, by UUID.
        claim_mib: what it has claimed of each, in MiB.
    """
    found = []
    for gpu in gpus:
        known = {each.pid for each in before.processes.get(gpu, [])} if before else set()
        came = [
            each.mib
            for each in now.processes.get(gpu, [])
            if each.pid not in known and each.mib > IDLE_MIB
        ]
        grown = now.used.get(gpu, 0) - before.used.get(gpu, 0) if before else 0
        took = came[0] if len(came) == 1 else grown if not came else 0
        if took > claim_mib + OVER_MIB:
            found.append(f"{gpu}: {took} MiB instead of {claim_mib}")
    return found


def risen(before: Memory, now: Memory, gpus: Sequence[str], claim_mib: int) -> list[str]:
    """The GPUs on which notably more is in use than before a load that failed."""
    slack = min(IDLE_MIB, claim_mib / 2)
    return [gpu for gpu in gpus if now.used.get(gpu, 0) > before.used.get(gpu, 0) + slack]


async def read_memory(session: Session) -> Memory | None:
    """What `nvidia-smi` on the host says, or None where it says nothing usable.

    Raises:
        Refusal: the connection broke or nvidia-smi hangs (as it does with a lost GPU).
    """
    doing = "reading GPU memory with nvidia-smi"
    form = "--format=csv,noheader,nounits"
    query = "--query-compute-apps=gpu_uuid,pid,used_memory,process_name"
    totals, apps = await asyncio.gather(
        session.run("nvidia-smi", "--query-gpu=uuid,memory.used", form, doing=doing, timeout_s=20),
        session.run("nvidia-smi", query, form, doing=doing, timeout_s=20),
    )
    if totals.status != 0:
        return None
    used = {}
    for row in _rows(totals.stdout, 2):
        if not row[1].isdigit():
            return None
        used[row[0]] = int(row[1])
    processes: dict[str, list[Process]] = {}
    for gpu, pid, mib, name in _rows(apps.stdout, 4) if apps.status == 0 else []:
        # used_memory is "[N/A]" where the driver does not tell (WSL, MIG without rights).
        if pid.isdigit():
            held = int(mib) if mib.isdigit() else 0
            processes.setdefault(gpu, []).append(Process(int(pid), held, name))
    return Memory(used, processes)


def _rows(text: str, columns: int) -> list[list[str]]:
    rows = ([part.strip() for part in line.split(",", columns - 1)] for line in text.splitlines())
    return [row for row in rows if len(row) == columns]
