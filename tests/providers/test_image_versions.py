"""A built image is asked and judged, over a real sshd; `docker` there is a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from components.providers.image_versions import ImageVersionsProvider
from models.refusal import Refusal
from models.releases.packed import packed
from tests.models.rules.plans import RELEASES
from tests.providers.local_sshd import LocalSshd

PROVIDER = ImageVersionsProvider()
HELD = {"vllm": "0.32.0", "transformers": "5.17.0"}
Holding = Callable[[dict[str, str]], None]


@pytest.fixture
def holding(sshd: LocalSshd) -> Iterator[Holding]:
    """What the image says that it holds."""

    def say(versions: dict[str, str]) -> None:
        sshd.executable("docker", f"#!/bin/sh\necho 'berth:{json.dumps(versions)}'\n")

    sshd.executable("nvidia-smi", "#!/bin/sh\nexit 9\n")
    say(HELD)
    yield say
    for name in ("docker", "nvidia-smi"):
        (sshd.bin / name).unlink()


@pytest.fixture
def props(sshd: LocalSshd, tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "weights/small").mkdir(parents=True)
    (tmp_path / "weights/small/config.json").write_text('{"model_type": "gemma4"}')
    return {
        "ssh": sshd.ssh,
        "host": "alpha",
        "data_dir": str(tmp_path),
        "build": "newer",
        "reference": "berth-build/newer:0a0a0a0a0a0a",
        "image": f"sha256:{uuid4().hex}",
        "bases": ["berth-sandbox/vllm-openai:0.32.0"],
        "declared": {},
        "models": {"small": "small"},
        "tables": packed(RELEASES),
        "versions": None,
    }


@pytest.mark.usefixtures("holding")
def test_an_image_that_runs_its_models_is_known_by_its_versions(props: dict[str, Any]) -> None:
    made = PROVIDER.create(props)
    assert made.id == "alpha:newer"
    assert made.outs is not None
    assert made.outs["versions"] == HELD


def test_one_that_cannot_run_a_model_is_refused_when_made_and_when_the_model_is_new(
    props: dict[str, Any], holding: Holding
) -> None:
    holding(HELD | {"transformers": "4.57.0"})
    with pytest.raises(Refusal, match=r"transformers 4\.57\.0; small is gemma4"):
        PROVIDER.create(props)
    without = props | {"models": {}}
    PROVIDER.create(without)
    assert PROVIDER.diff("id", without, props).changes
    with pytest.raises(Refusal, match="small is gemma4"):
        PROVIDER.update("id", without, props)


@pytest.mark.usefixtures("holding")
def test_one_that_is_another_than_declared_is_refused(props: dict[str, Any]) -> None:
    with pytest.raises(Refusal, match=r"vllm 0\.31\.0 is declared, and the image holds vllm 0\.32"):
        PROVIDER.create(props | {"declared": {"vllm": "0.31.0"}})


def test_one_that_cannot_be_asked_is_refused_where_something_hangs_on_it(
    props: dict[str, Any], holding: Holding, sshd: LocalSshd
) -> None:
    del holding
    sshd.executable("docker", "#!/bin/sh\necho 'python3: not found' >&2\nexit 127\n")
    with pytest.raises(Refusal) as refused:
        PROVIDER.create(props)
    assert (
        "berth:builds.newer: build `newer` cannot be asked what it holds: python3: not found"
        in (str(refused.value))
    )
    assert "nothing was stopped or loaded" in str(refused.value)
    outs = PROVIDER.create(props | {"models": {}}).outs
    assert outs is not None
    assert outs["versions"] == {}


def test_only_another_image_or_another_use_is_a_change(props: dict[str, Any]) -> None:
    assert not PROVIDER.diff("id", props, props | {"tables": "others"}).changes
    for key, value in (("image", "sha256:0b"), ("declared", {"vllm": "1"}), ("models", {})):
        found = PROVIDER.diff("id", props, props | {key: value})
        assert (found.changes, found.replaces) == (True, [])
    assert PROVIDER.diff("id", props, props | {"host": "beta"}).replaces == ["host"]


@pytest.mark.usefixtures("holding")
def test_one_that_the_host_does_not_know_is_asked_again(props: dict[str, Any]) -> None:
    """Previews judge by what the host knows."""
    assert PROVIDER.read("id", props | {"versions": HELD}).id == ""
