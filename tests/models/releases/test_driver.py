"""Which driver an image's CUDA runs on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.releases.driver import driver_findings
from models.releases.tables import Releases

AT = "berth:instances.triton@0.image"


def image(tag: str, flavour: str = "vllm") -> str:
    return f"nvcr.io/nvidia/tritonserver:{tag}-{flavour}-python-py3"


def ask(tag: str, driver: str | None, releases: Releases, data_centre: bool = True) -> list[bool]:
    found = driver_findings(
        image(tag), driver, releases, at=AT, host="xr7620", data_centre=data_centre
    )
    return [finding.certain for finding in found]


@pytest.mark.parametrize(
    ("tag", "driver", "expected"),
    [
        ("26.03", "595.45.04", []),
        ("26.03", "580.65.06", []),  # minor-version compatibility: CUDA 13.x from 580 on
        ("26.03", "575.57.08", [True]),
        ("26.03", "570.86.10", [False]),  # compat libraries of CUDA 13.2 carry 535 and 570
        ("26.03", "535.261.03", [False]),
        ("25.09", "575.57.08", [False]),  # those of 13.0 carry 575, too
        ("25.05", "535.261.03", []),
        ("25.05", "470.256.02", [True]),
        ("25.01", "470.256.02", [False]),
        ("26.08", "560.35.03", [True]),
        ("26.08", "570.86.10", [False]),  # of 13.4: what all of 13 carry
        ("26.03", None, [False]),
        ("26.03", "[N/A]", [False]),
    ],
)
def test_a_release_runs_from_its_cudas_floor_on(
    tag: str, driver: str | None, expected: list[bool], releases: Releases
) -> None:
    assert ask(tag, driver, releases) == expected


def test_compat_libraries_are_for_data_centre_cards_only(releases: Releases) -> None:
    assert ask("26.03", "535.261.03", releases, data_centre=False) == [True]


def test_a_refusal_names_both_versions_and_a_release_that_the_driver_runs(
    releases: Releases,
) -> None:
    (finding,) = driver_findings(image("26.03"), "560.35.03", releases, at=AT, host="xr7620")
    assert str(finding.refusal).splitlines() == [
        f"{AT}: Triton 26.03 holds CUDA 13.2.0, which needs driver 580 or newer; host xr7620 has "
        "560.35.03",
        "  CUDA would not start in the container. Nothing was touched.",
        "  Fix: install driver 580 or newer on xr7620, or take Triton 25.07 (CUDA 12.9.0), which "
        "runs from 525 on.",
    ]
    assert ask("25.07", "560.35.03", releases) == []


def test_the_tensorrt_llm_image_is_offered_one_of_its_own(releases: Releases) -> None:
    (finding,) = driver_findings(
        image("26.03", "trtllm"), "560.35.03", releases, at=AT, host="xr7620"
    )
    assert "Triton 25.10 (CUDA 12.9.1)" in finding.refusal.fix


def test_what_is_not_known_names_the_command_that_settles_it(releases: Releases) -> None:
    (unknown,) = driver_findings(image("26.03"), None, releases, at=AT, host="xr7620")
    assert "nvidia-smi --query-gpu=driver_version" in unknown.refusal.fix
    (compat,) = driver_findings(image("26.03"), "535.1", releases, at=AT, host="xr7620")
    assert f"docker run --rm --gpus all --entrypoint python3 {image('26.03')}" in compat.refusal.fix


def test_an_image_without_a_row_is_a_warning(releases: Releases) -> None:
    (finding,) = driver_findings("mine:1", "580.65.06", releases, at=AT, host="xr7620")
    assert not finding.certain
    assert "releases/images.csv" in finding.refusal.fix


def test_a_release_whose_cuda_is_unknown_is_a_warning(releases: Releases) -> None:
    (finding,) = driver_findings(
        image("26.08", "trtllm"), "580.65.06", releases, at=AT, host="xr7620"
    )
    assert not finding.certain
    assert "CUDA_VERSION" in finding.refusal.fix


@pytest.mark.parametrize("driver", [None, "", "1.0", "580.65.06"])
def test_an_image_that_needs_no_driver_runs_on_any(driver: str | None, releases: Releases) -> None:
    sandbox = "berth-sandbox/tritonserver:2.51.0-vllm"
    assert driver_findings(sandbox, driver, releases, at=AT, host="sandbox") == []


@given(st.text(), st.one_of(st.none(), st.text()), st.booleans())
def test_any_texts_are_answered(
    releases: Releases, reference: str, driver: str | None, data_centre: bool
) -> None:
    for tag in ("26.03", "25.01"):
        ask(tag, driver, releases, data_centre)
    for finding in driver_findings(
        reference, driver, releases, at=AT, host="h", data_centre=data_centre
    ):
        assert not finding.certain


@given(st.sampled_from(["25.01", "25.05", "26.03", "26.08"]), st.integers(1, 999))
def test_off_data_centre_cards_a_newer_driver_never_makes_it_worse(
    releases: Releases, tag: str, branch: int
) -> None:
    refused = ask(tag, f"{branch}.1", releases, data_centre=False)
    assert ask(tag, f"{branch + 1}.1", releases, data_centre=False) in ([], refused)
