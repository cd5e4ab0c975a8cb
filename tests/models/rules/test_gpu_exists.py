"""A GPU that is asked for is there."""

from __future__ import annotations

from dataclasses import replace

from models.rules import gpu_exists
from tests.models.rules.plans import (
    G0,
    G1,
    G2,
    GOOD,
    HOST,
    refused,
    with_host,
    with_instance,
    with_model,
)

UNKNOWN = "GPU-00000000-0000-0000-0000-00000000000f"


def test_declared_gpus_that_are_there_pass() -> None:
    assert not gpu_exists.findings(GOOD)
    assert not gpu_exists.findings(with_host(found=None))


def test_a_pin_that_no_host_has_is_refused_with_those_that_there_are() -> None:
    text = refused(gpu_exists, with_instance(gpus=(UNKNOWN,)))
    assert f"berth:instances.triton@0.gpus[0]: no host has {UNKNOWN}" in text
    assert f"GPUs of `alpha`: {G0}, {G1}, {G2}" in text


def test_a_gpu_of_another_host_is_refused() -> None:
    beta = replace(HOST, name="beta", gpus=(replace(HOST.gpus[0], uuid=UNKNOWN),), found=None)
    two = replace(with_instance(gpus=(UNKNOWN,)), hosts={**GOOD.hosts, "beta": beta})
    assert "is a GPU of host `beta`, the instance runs on `alpha`" in refused(gpu_exists, two)


def test_a_declared_gpu_that_the_host_does_not_have_is_refused() -> None:
    text = refused(gpu_exists, with_host(found={G0: 0, G1: 1}))
    assert f"host alpha: GPU 2 ({G2}) is not there" in text
    assert f"`nvidia-smi -L` there lists 0: {G0}, 1: {G1}" in text


def test_a_model_claims_the_gpus_of_its_instance() -> None:
    text = refused(gpu_exists, with_model(claims=()))
    assert f"small claims no GPU, and triton@2 is pinned to {G2}" in text


def test_a_model_needs_an_instance_on_its_host() -> None:
    assert "no instance `triton@7` on host `alpha`" in refused(
        gpu_exists, with_model(instance="triton@7")
    )


def test_a_host_of_which_nothing_is_known_is_refused() -> None:
    nowhere = replace(GOOD, hosts={}, models=(), instances=GOOD.instances[:1])
    assert "on host `alpha`, of which nothing is known" in refused(gpu_exists, nowhere)
