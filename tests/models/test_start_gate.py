"""A unit starts on GPUs that are its own or nobody's."""

from __future__ import annotations

from models.claim_record import ClaimedGpu, ClaimRecord
from models.start_gate import StartingUnit, refused_start

NEIGHBOURS = frozenset({"triton@0", "triton@1", "triton@wide"})
NARROW = StartingUnit("triton@0", ("G0",), on_demand=True, neighbours=NEIGHBOURS)
FOR_LIFE = StartingUnit("vllm@0", ("G0",), on_demand=False)
INDEXES = {"G0": 0, "G1": 1}


def claim(instance: str, *gpus: str, name: str = "c", shared: bool = False) -> ClaimRecord:
    claimed = tuple(ClaimedGpu(gpu, 100) for gpu in gpus)
    owner = "anna: notebook" if not instance else "berth/dev/shop"
    return ClaimRecord(name, owner, claimed, instance=instance, shared=shared, since="monday")


def said(unit: StartingUnit, *claims: ClaimRecord) -> str:
    return "\n".join(str(refusal) for refusal in refused_start(unit, claims, INDEXES))


def test_gpus_that_nobody_claims_are_free_to_start_on() -> None:
    assert said(NARROW) == said(FOR_LIFE) == said(NARROW, claim("", "G1")) == ""


def test_a_stranger_is_named_with_the_gpu_since_when_and_what_to_run() -> None:
    for unit in (NARROW, FOR_LIFE):
        text = said(unit, claim("", "G0", name="held/0-1"))
        assert "GPU 0 (G0) is claimed by anna: notebook since monday" in text
        assert f"{unit.instance} is not started" in text
        assert "berth-host release --name 'held/0-1'" in text


def test_a_wide_instance_and_the_narrow_ones_under_it_run_side_by_side() -> None:
    assert said(NARROW, claim("triton@wide", "G0", "G1")) == ""
    wide = StartingUnit("triton@wide", ("G0", "G1"), on_demand=True, neighbours=NEIGHBOURS)
    assert said(wide, claim("triton@0", "G0"), claim("triton@1", "G1")) == ""


def test_another_host_stacks_instance_is_a_stranger() -> None:
    assert "triton@0 is not started" in said(NARROW, claim("triton@other", "G0"))


def test_one_that_holds_its_models_for_life_starts_under_its_own_claims_only() -> None:
    assert said(FOR_LIFE, claim("vllm@0", "G0")) == ""
    assert "vllm@0 is not started" in said(FOR_LIFE, claim("triton@0", "G0"))


def test_beside_a_stranger_with_a_budget_its_own_claim_lets_it_start_again() -> None:
    stranger = claim("", "G0", name="held/0-1", shared=True)
    assert said(NARROW, claim("triton@0", "G0", shared=True), stranger) == ""
    assert said(NARROW, stranger) != ""


def test_each_gpu_that_is_in_the_way_is_named() -> None:
    wide = StartingUnit("triton@wide", ("G0", "G1"), on_demand=True, neighbours=NEIGHBOURS)
    assert len(refused_start(wide, [claim("", "G0"), claim("", "G1", name="d")], INDEXES)) == 2
