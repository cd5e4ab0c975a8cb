"""Ways out of a refusal: changes of the plan that were tried, and fit, before they are told.

A change is tried by the rules that refused: the overlap rule on every GPU that it would touch, and
the memory plan of the model there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from models.catalog import CatalogModel
from models.engine import TRAITS
from models.memory.asked import Asked
from models.memory.fit import MemoryPlan, memory_plan
from models.memory.trtllm import by_vllms_names
from models.overlap import Claim, Room, overlaps, taken_mib
from models.plan import Placement, Plan, PlannedInstance
from models.weights import Weights

MOST = 3
"""How many are told: a person reads no more."""
STEP = 256
"""Context lengths are told in round numbers of tokens."""


@dataclass(frozen=True)
class Surroundings:
    """What a plan stands among, as far as it is known."""

    rooms: Mapping[tuple[str, str], Room]
    """(host, UUID) → what the GPU has to give."""
    others: tuple[Claim, ...]
    """Claims of other stacks."""
    weights: Mapping[tuple[str, str], Weights]
    """(host, directory) → what the weights directory holds."""
    vllm: Mapping[str, str | None]
    """Image → the release of vLLM in it, where the release tables know."""
    catalog: Mapping[str, CatalogModel]
    """The whole catalog, for other forms of a model."""


@dataclass(frozen=True)
class Change:
    """One change of a plan: what a person would write, and what it makes of a placement."""

    words: str
    before: Placement
    after: Placement


def ways_out(plan: Plan, around: Surroundings, troubled: Collection[str]) -> list[str]:
    """Up to `MOST` changes that take a placement out of trouble, each of another kind if possible.

    Args:
        troubled: names of the claims that cannot be met; those of other stacks are left alone.
    """
    trial = _Trial(plan, around)
    mine = [placement for placement in plan.placements if placement.claim_name in troubled]
    # The first of each kind comes before the second of any.
    found: list[list[Change]] = []
    for kind in (trial.elsewhere, trial.shorter, trial.other_form, trial.other_split):
        fitting = (change for placement in mine for change in kind(placement) if trial.fits(change))
        found.append([change for change, _ in zip(fitting, range(MOST), strict=False)])
    by_turns = [kind[turn] for turn in range(MOST) for kind in found if turn < len(kind)]
    return [change.words for change in by_turns[:MOST]]


class _Trial:
    """Changes of one plan, and whether each fits."""

    def __init__(self, plan: Plan, around: Surroundings) -> None:
        self._plan = plan
        self._around = around

    def elsewhere(self, placement: Placement) -> Iterator[Change]:
        """The same model on other GPUs of its host."""
        for instance in self._instances(placement, placement.catalog.width):
            if instance is not placement.instance:
                yield Change(
                    f"{_instance_of(placement, instance)}.",
                    placement,
                    replace(placement, instance=instance),
                )

    def shorter(self, placement: Placement) -> Iterator[Change]:
        """The same model where it is, with a shorter context, and a smaller budget if shared."""
        catalog = placement.catalog
        if catalog.shared_mib is not None:
            budget = min(self._left_mib(placement), catalog.shared_mib)
            if budget <= 0:
                return
            catalog = catalog.model_copy(update={"shared_mib": budget})
        smaller = replace(placement, catalog=catalog)
        plan = self.memory(smaller)
        longest = plan.largest_max_model_len if plan else None
        if not longest:
            return
        length = min(longest - longest % STEP or longest, catalog.max_model_len)
        catalog = catalog.model_copy(update={"max_model_len": length})
        if catalog == placement.catalog:
            return
        said = [f"max_model_len: {length}"] if length < placement.catalog.max_model_len else []
        if catalog.shared_mib != placement.catalog.shared_mib:
            said.append(f"shared_mib: {catalog.shared_mib}")
        keys = " and ".join(f"`{each}`" for each in said)
        yield Change(
            f"set {keys} in catalog/{placement.model}.yaml.",
            placement,
            replace(placement, catalog=catalog),
        )

    def other_form(self, placement: Placement) -> Iterator[Change]:
        """Another form of the model in the catalog, such as its quantised one."""
        own = placement.catalog.variant_of
        for name, entry in self._around.catalog.items():
            related = {name, entry.variant_of} & {placement.model, own} - {None}
            if name == placement.model or not related:
                continue
            for instance in self._instances(placement, entry.width):
                moved = instance is not placement.instance
                place = f" and {_instance_of(placement, instance)}" if moved else ""
                yield Change(
                    f"set `model: {name}` for {_roles(placement)}{place}.",
                    placement,
                    replace(placement, model=name, catalog=entry, instance=instance),
                )

    def other_split(self, placement: Placement) -> Iterator[Change]:
        """The same model over another number of GPUs, split by tensor or by layers."""
        catalog = placement.catalog
        for instance in self._plan.instances_on(placement.instance.host_name):
            width = len(instance.gpus)
            for tensor in (size for size in range(width, 0, -1) if width % size == 0):
                split = (tensor, width // tensor)
                if split == (catalog.tensor_parallel_size, catalog.pipeline_parallel_size):
                    continue
                keys = {"tensor_parallel_size": split[0], "pipeline_parallel_size": split[1]}
                said = " and ".join(
                    f"`{key}: {size}`"
                    for key, size in keys.items()
                    if size != getattr(catalog, key)
                )
                moved = instance is not placement.instance
                place = f" and {_instance_of(placement, instance)}" if moved else ""
                yield Change(
                    f"set {said} in catalog/{placement.model}.yaml{place}.",
                    placement,
                    replace(placement, catalog=catalog.model_copy(update=keys), instance=instance),
                )

    def fits(self, change: Change) -> bool:
        """Whether the overlap rule and the memory plan both let the changed placement pass."""
        after = change.after
        kept = [
            # Its fallback stays the one that is instead of it, whatever it is called then.
            replace(load, instead_of=after.claim_name)
            if load.instead_of == change.before.claim_name
            else load
            for load in self._plan.placements
            if load is not change.before
        ]
        # Roles on the same model and instance share one load, so one load has one claim.
        if any(load.claim_name == after.claim_name for load in kept):
            return False
        touched = {gpu.uuid for gpu in after.instance.gpus}
        claims = [
            claim
            for claim in (*self._around.others, *(c for load in kept for c in load.claims))
            if claim.host == after.instance.host_name and claim.gpu in touched
        ]
        if overlaps([*claims, *after.claims], self._around.rooms):
            return False
        memory = self.memory(after)
        if memory is not None:
            return memory.fits is True
        # Nothing is known of its memory: then only the same model on cards as large is the same.
        before = change.before
        smallest = min(gpu.cuda_mib for gpu in before.instance.gpus)
        return after.catalog == before.catalog and all(
            gpu.cuda_mib >= smallest for gpu in after.instance.gpus
        )

    def memory(self, placement: Placement) -> MemoryPlan | None:
        """The memory plan where the placement is; None where its weights are not known."""
        catalog, instance = placement.catalog, placement.instance
        weights = self._around.weights.get((instance.host_name, catalog.weights))
        if weights is None or weights.trouble:
            return None
        trtllm = TRAITS[placement.engine].runs == "trtllm"
        further = catalog.further_args(placement.engine)
        asked = Asked(
            max_model_len=catalog.max_model_len,
            tensor_parallel_size=catalog.tensor_parallel_size,
            pipeline_parallel_size=catalog.pipeline_parallel_size,
            gpu_memory_utilization=placement.gpu_memory_utilization,
            dtype=catalog.dtype,
            quantization=catalog.quantization,
            engine_args=by_vllms_names(further) if trtllm else further,
            vllm=None if trtllm else self._around.vllm.get(instance.declared.image),
            engine="trtllm" if trtllm else "vllm",
        )
        return memory_plan(weights, asked, [gpu.cuda_mib for gpu in instance.gpus])

    def _instances(self, placement: Placement, width: int) -> Iterator[PlannedInstance]:
        """The host's instances of a width, the placement's own first."""
        there = self._plan.instances_on(placement.instance.host_name)
        fitting = [instance for instance in there if len(instance.gpus) == width]
        yield from sorted(fitting, key=lambda instance: instance is not placement.instance)

    def _left_mib(self, placement: Placement) -> int:
        """What is left beside all others on the fullest of its GPUs, in MiB."""
        host = placement.instance.host_name
        left = []
        for gpu in placement.instance.gpus:
            room = self._around.rooms.get((host, gpu.uuid), Room(gpu.index, gpu.cuda_mib))
            beside = taken_mib(
                claim
                for claim in (*self._around.others, *self._plan.claims)
                if (claim.host, claim.gpu) == (host, gpu.uuid)
                and claim.place != (placement.instead_of or placement.claim_name)
            )
            left.append(room.left_mib - beside)
        return min(left)


def _roles(placement: Placement) -> str:
    of = "the fallback of " if placement.instead_of else ""
    return of + " and ".join(f"role {role}" for role in placement.roles)


def _instance_of(placement: Placement, instance: PlannedInstance) -> str:
    gpus = "+".join(str(gpu.index) for gpu in instance.gpus)
    return f"set `instance: {instance.name}` (GPU {gpus}) for {_roles(placement)}"
