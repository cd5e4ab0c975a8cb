"""The shipped tables do not contradict each other."""

from __future__ import annotations

from itertools import pairwise

import pytest
from packaging.specifiers import SpecifierSet

from models.releases.tables import Releases
from models.releases.version import admits_none_after, at_least, version


def test_every_vllm_of_a_release_has_known_requirements(releases: Releases) -> None:
    unknown = [row.vllm for row in releases.triton if not releases.requirement(row.vllm)]
    assert not unknown


def test_ranges_of_vllm_do_not_overlap(releases: Releases) -> None:
    rows = sorted(releases.vllm, key=lambda row: version(row.first or "") or 0)
    for row in rows:
        assert at_least(row.last or "", row.first or "")
    for before, after in pairwise(rows):
        assert not at_least(before.last or "", after.first or "")


def test_later_releases_hold_nothing_older(releases: Releases) -> None:
    for before, after in pairwise(releases.triton):
        for column in ("triton", "vllm", "vllm_cuda", "trtllm", "trtllm_cuda"):
            old, new = getattr(before, column), getattr(after, column)
            assert not (old and new) or at_least(new, old), (after.tag, column)


def test_every_cuda_of_a_release_has_a_driver_floor(releases: Releases) -> None:
    for row in releases.triton:
        for cuda in filter(None, (row.vllm_cuda, row.trtllm_cuda)):
            assert releases.drivers(cuda), (row.tag, cuda)


def test_compat_libraries_carry_only_branches_below_the_floor(releases: Releases) -> None:
    for row in releases.cuda:
        assert all(branch < row.floor for branch in row.forward), row.cuda


def test_what_lacks_an_architecture_is_older_than_what_has_it(releases: Releases) -> None:
    for row in releases.architectures:
        for older, newer in (
            (row.transformers_lacks, row.transformers_has),
            (row.vllm_lacks, row.vllm_has),
        ):
            assert not (older and newer) or not at_least(older, newer), row.model_type
        assert not (row.vllm_has and row.vllm_safe) or at_least(row.vllm_safe, row.vllm_has)


def test_a_safe_vllm_lets_the_needed_transformers_in(releases: Releases) -> None:
    for row in releases.architectures:
        requirement = releases.requirement(row.vllm_safe)
        if requirement and requirement.transformers and row.transformers_lacks:
            assert not admits_none_after(requirement.transformers, row.transformers_lacks)


def test_an_own_image_holds_a_transformers_that_its_vllm_takes(releases: Releases) -> None:
    for row in releases.images:
        requirement = releases.requirement(row.vllm)
        if requirement and requirement.transformers and row.transformers:
            assert row.transformers in SpecifierSet(requirement.transformers), row.reference


@pytest.mark.parametrize("architecture", ["gemma4", "gemma4_text", "llama"])
def test_the_catalog_runs_on_the_sandbox(architecture: str, releases: Releases) -> None:
    sandbox = next(row for row in releases.images if row.reference.startswith("berth-sandbox/"))
    needs = releases.by_model_type[architecture]
    assert at_least(sandbox.vllm or "", needs.vllm_safe or "")
