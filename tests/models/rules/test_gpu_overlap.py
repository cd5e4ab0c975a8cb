"""Claims of this stack, of others, and what is not Berth's: all on one GPU."""

from __future__ import annotations

from dataclasses import replace

from models.judged import JudgedGpu
from models.overlap import Claim, Foreign
from models.rules import gpu_overlap
from tests.models.rules.plans import G0, G2, GOOD, HOST, model, refused, with_host

OTHER = Claim("alpha", G2, "lab", "berth/lab/toys: guard (tiny on triton@2) since May", 9000)


def test_models_apart_pass() -> None:
    assert not gpu_overlap.findings(GOOD)


def test_a_narrow_and_a_wide_instances_models_exclude_each_other() -> None:
    both = replace(GOOD, models=(*GOOD.models, model("third", "triton@0", G0)))
    text = refused(gpu_overlap, both)
    assert (
        f"host alpha: GPU 0 ({G0}) is claimed by berth/dev/shop: big (big on triton@wide)" in text
    )
    assert "and by berth/dev/shop: third (third on triton@0): 20309 MiB" in text


def test_another_stacks_claim_is_refused_with_its_owner() -> None:
    text = refused(gpu_overlap, with_host(others=(OTHER,)))
    assert f"GPU 2 ({G2}) is claimed by" in text
    assert "berth/lab/toys: guard (tiny on triton@2) since May: 9000 MiB" in text


def test_only_own_claims_can_be_changed_as_a_way_out() -> None:
    (finding,) = gpu_overlap.findings(with_host(others=(OTHER,)))
    assert finding.troubled == ("berth/dev/shop.small/triton@2",)


def test_what_others_do_to_each_other_is_not_refused_here() -> None:
    pair = (replace(OTHER, gpu=G0), replace(OTHER, gpu=G0, name="other"))
    without = replace(with_host(others=pair), models=GOOD.models[1:])
    assert not gpu_overlap.findings(without)


def test_a_process_that_is_not_berths_is_named_and_not_counted_as_free() -> None:
    held = JudgedGpu(G2, 2, 23034, 22565, (Foreign("python3", 4711, 9000),))
    text = refused(gpu_overlap, with_host(gpus=(*HOST.gpus[:2], held)))
    assert "python3 (pid 4711) 9000 MiB" in text
    assert "13565 MiB are left" in text
