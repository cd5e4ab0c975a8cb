"""Ways out of a refusal: each was tried, and following it makes the plan fit."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from config.files import readable_catalog, stack_sections
from models.memory.asked import Asked
from models.memory.fit import memory_plan
from models.overlap import Claim, Foreign, overlaps
from models.plan import Plan
from models.planning import make_plan
from models.stack import StackConfig
from models.validation import parse
from models.ways_out import MOST, Surroundings, ways_out
from models.weights import Weights

ROOT = Path(__file__).parents[2]
CATALOG = readable_catalog(ROOT / "catalog")
VLLM = "0.19.1"
Checkpoint = Callable[[str], Weights]


def plan(*roles: tuple[str, str], wide: int = 2, **entries: dict[str, Any]) -> Plan:
    """The host of the reference layout with these (model, instance) as roles r0, r1, …

    Args:
        wide: GPUs of triton@wide-01.
        entries: changes of catalog entries, by name with `_` for `-` and `.`.
    """
    sections = copy.deepcopy(stack_sections(ROOT, "dev"))
    gpus = [gpu["uuid"] for gpu in sections["hosts"]["sandbox"]["gpus"]]
    sections["instances"]["triton@wide-01"]["gpus"] = gpus[:wide]
    sections["demo"] = {
        "name": "shop",
        "roles": {f"r{n}": {"model": m, "instance": i} for n, (m, i) in enumerate(roles)},
    }
    catalog = {
        name: entry.model_copy(update=entries.get(name.replace("-", "_").replace(".", "_"), {}))
        for name, entry in CATALOG.items()
    }
    config = parse(StackConfig, sections, "berth:")
    return make_plan("dev", config, catalog, known_models=sorted(catalog))


def around(
    plan: Plan,
    checkpoint: Checkpoint | None,
    others: tuple[Claim, ...] = (),
    foreign: dict[int, Foreign] | None = None,
) -> Surroundings:
    rooms = {
        place: replace(room, foreign=((foreign or {})[room.index],))
        if room.index in (foreign or {})
        else room
        for place, room in plan.rooms.items()
    }
    names = {entry.weights for entry in CATALOG.values()}
    weights = {("sandbox", name): checkpoint(name) for name in names} if checkpoint else {}
    images = {instance.declared.image for instance in plan.instances}
    return Surroundings(rooms, others, weights, dict.fromkeys(images, VLLM), plan.catalog)


def claim_on(plan: Plan, index: int, mib: int = 20309, *, shared: bool = False) -> Claim:
    """Another stack's claim."""
    (gpu,) = [gpu for gpu in plan.hosts["sandbox"].gpus if gpu.index == index]
    owner = "berth/labs/lab: judge"
    return Claim("sandbox", gpu.uuid, "berth/labs/lab.m/triton@x", owner, mib, shared)


def in_trouble(plan: Plan) -> list[str]:
    return [placement.claim_name for placement in plan.placements]


def test_a_gpu_that_is_free_is_a_way_out_and_one_that_is_not_is_none(
    checkpoint: Checkpoint,
) -> None:
    mine = plan(("gemma-4-e4b-it", "triton@2"))
    taken = (claim_on(mine, 2), claim_on(mine, 0), claim_on(mine, 1))
    told = ways_out(mine, around(mine, checkpoint, taken), in_trouble(mine))
    assert told == ["set `instance: triton@3` (GPU 3) for role r0."]


def test_a_gpu_whose_memory_a_foreign_process_holds_is_no_way_out(checkpoint: Checkpoint) -> None:
    mine = plan(("gemma-4-e4b-it", "triton@2"))
    held = {3: Foreign("python3", 4711, 9000), 1: Foreign("python3", 4712, 9000)}
    told = ways_out(mine, around(mine, checkpoint, (claim_on(mine, 2),), held), in_trouble(mine))
    assert told == ["set `instance: triton@0` (GPU 0) for role r0."]


def test_a_quantised_form_of_the_catalog_is_a_way_out_of_too_little_memory(
    checkpoint: Checkpoint,
) -> None:
    mine = plan(("gemma-4-31b-it", "triton@wide-01"), gemma_4_31b_it={"tensor_parallel_size": 2})
    told = ways_out(mine, around(mine, checkpoint), in_trouble(mine))
    assert told == ["set `model: gemma-4-31b-it-nvfp4` for role r0."]


def test_more_gpus_are_a_way_out_where_there_is_an_instance_with_them(
    checkpoint: Checkpoint,
) -> None:
    mine = plan(("gemma-4-31b-it-nvfp4", "triton@2"), gemma_4_31b_it_nvfp4={
        "tensor_parallel_size": 1
    })  # fmt: skip
    told = ways_out(mine, around(mine, checkpoint), in_trouble(mine))
    assert (
        "set `tensor_parallel_size: 2` in catalog/gemma-4-31b-it-nvfp4.yaml and set "
        "`instance: triton@wide-01` (GPU 0+1) for role r0."
    ) in told


def test_a_shorter_context_is_a_way_out_of_too_much_kv_cache(checkpoint: Checkpoint) -> None:
    mine = plan(
        ("llama-3.2-1b-instruct", "triton@2"),
        llama_3_2_1b_instruct={"max_model_len": 131072, "shared_mib": 6500},
    )
    told = ways_out(mine, around(mine, checkpoint), in_trouble(mine))
    (shorter,) = [way for way in told if "max_model_len" in way]
    length = int(shorter.split("max_model_len: ")[1].split("`")[0])
    assert length % 256 == 0
    weights = checkpoint("llama-3.2-1b-instruct")
    share = mine.placements[0].gpu_memory_utilization
    longer = {length: True, length + 256: False}
    for tried, fits in longer.items():
        asked = Asked(tried, gpu_memory_utilization=share, dtype="bfloat16", vllm=VLLM)
        assert memory_plan(weights, asked, [22565]).fits is fits


def test_a_smaller_budget_is_a_way_out_beside_other_shared_models(checkpoint: Checkpoint) -> None:
    mine = plan(("llama-3.2-1b-instruct", "triton@2"))
    others = tuple(claim_on(mine, n, 17565, shared=True) for n in range(4))
    told = ways_out(mine, around(mine, checkpoint, others), in_trouble(mine))
    assert told == ["set `shared_mib: 5000` in catalog/llama-3.2-1b-instruct.yaml."]


def test_models_of_other_stacks_are_not_told_to_move(checkpoint: Checkpoint) -> None:
    mine = plan(("gemma-4-e4b-it", "triton@2"))
    taken = claim_on(mine, 3)
    assert not ways_out(mine, around(mine, checkpoint, (taken,)), [taken.name])


def test_without_facts_of_the_weights_only_cards_as_large_are_told() -> None:
    mine = plan(("gemma-4-e4b-it", "triton@2"))
    told = ways_out(mine, around(mine, None, (claim_on(mine, 2),)), in_trouble(mine))
    assert len(told) == MOST
    assert all("instance: triton@" in way for way in told)


def test_where_nothing_fits_nothing_is_told(checkpoint: Checkpoint) -> None:
    mine = plan(("gemma-4-e4b-it", "triton@2"))
    taken = tuple(claim_on(mine, n) for n in range(4))
    assert not ways_out(mine, around(mine, checkpoint, taken), in_trouble(mine))


@pytest.mark.parametrize("index", range(4))
def test_following_a_way_out_passes_the_rule_that_refused(
    checkpoint: Checkpoint, index: int
) -> None:
    mine = plan(("gemma-4-e4b-it", f"triton@{index}"))
    taken = (claim_on(mine, index),)
    seen = around(mine, checkpoint, taken)
    assert overlaps([*mine.claims, *taken], seen.rooms)
    moves = [way for way in ways_out(mine, seen, in_trouble(mine)) if "catalog/" not in way]
    assert moves
    for way in moves:
        moved = plan(("gemma-4-e4b-it", way.split("instance: ")[1].split("`")[0]))
        assert not overlaps([*moved.claims, *taken], seen.rooms)


def test_a_model_may_move_to_where_its_fallback_stands_by(checkpoint: Checkpoint) -> None:
    alone = plan(("gemma-4-e4b-it", "triton@2"))
    (first,) = alone.placements
    elsewhere = next(each for each in alone.instances if each.name == "triton@3")
    standing_by = replace(
        first,
        model="gemma-4-e2b-it",
        catalog=CATALOG["gemma-4-e2b-it"],
        instance=elsewhere,
        instead_of=first.claim_name,
    )
    mine = replace(alone, placements=(first, standing_by))
    taken = (claim_on(mine, 2), claim_on(mine, 0), claim_on(mine, 1))
    told = ways_out(mine, around(mine, checkpoint, taken), [first.claim_name])
    assert told == ["set `instance: triton@3` (GPU 3) for role r0."]
