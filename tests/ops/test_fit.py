"""`berth fit`, as a person runs it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from config.inventory import SOURCE, write
from host.weights import read
from models.weights import Weights
from ops.__main__ import app
from sandbox.weights.catalog import STANDARD, custom
from sandbox.weights.directory import write_model
from tests.bench.many_hosts import inventory

L4S = ("--gpus", "4", "--gpu-mib", "23034", "--vllm", "0.19.0")
HOST = """
config:
  berth:hosts:
    rack:
      ssh: {address: 10.0.0.1, host_key: ssh-ed25519 AAAA}
      gpus:
        - {uuid: GPU-3704cbc7-d19a-5c10-a618-5a60eecdf278, index: 0, memory_mib: 23034}
        - {uuid: GPU-662cbef3-06b9-5b4e-b6b5-c93afacac352, index: 1, memory_mib: 23034}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    for model in STANDARD:
        write_model(folder, model)
    return folder


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.yaml").touch()
    (tmp_path / "Pulumi.rack.yaml").write_text(HOST)
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog/big.yaml").write_text(
        "weights: gemma-4-31b-it-nvfp4\ntensor_parallel_size: 2\nmax_model_len: 4096\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(SOURCE, "recorded")


def berth(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["fit", *map(str, arguments)])


def test_what_fits_is_shown_term_by_term_with_status_0(root: Path) -> None:
    said = berth(root / "gemma-4-31b-it-nvfp4", *L4S, "--tp", "2")
    assert said.exit_code == 0, said.output
    assert "each of 2 GPUs: weights 16217 + KV 684 + overhead" in said.output
    assert "fits; longest max_model_len here: 102528" in said.output
    assert "tp 1 × pp 2" in said.output
    assert "note:" not in said.output


def test_what_does_not_fit_has_status_1_and_what_would(root: Path) -> None:
    said = berth(root / "gemma-4-31b-it", *L4S, "--tp", "2", "--max-model-len", "4096")
    assert said.exit_code == 1
    assert "MiB too much" in said.output
    assert "4 GPUs (tp 4 × pp 1): max_model_len up to" in said.output
    two = berth(root / "gemma-4-31b-it", "--gpus", "2", "--gpu-mib", "23034", "--tp", "2")
    assert "no layout of 2 × 22565 MiB (CUDA) fits" in two.output


def test_a_catalog_entry_brings_its_own_parallelism_and_a_host_its_gpus(root: Path) -> None:
    said = berth("big", "--host", "rack", "--weights", root / "gemma-4-31b-it-nvfp4")
    assert said.exit_code == 0, said.output
    assert "tp 2 × pp 1" in said.output
    assert "2 × 22565 MiB" in said.output
    assert "release is unknown" in said.output


def test_a_broken_header_is_told_with_the_file_and_why_and_status_2(tmp_path: Path) -> None:
    write_model(tmp_path, custom("tiny:2:256"))
    (shard,) = (tmp_path / "tiny").glob("*.safetensors")
    os.truncate(shard, 1024)
    said = berth(tmp_path / "tiny", *L4S)
    assert said.exit_code == 2
    assert f"{shard.name}: header is cut off: says " in said.output
    assert "file has 1024" in said.output
    assert "Traceback" not in said.output


def test_an_architecture_that_is_not_known_has_status_2_and_its_name(tmp_path: Path) -> None:
    write_model(tmp_path, custom("tiny:2:256"))
    (tmp_path / "tiny/config.json").write_text('{"model_type": "novel"}')
    said = berth(tmp_path / "tiny", *L4S)
    assert said.exit_code == 2
    assert "`novel`" in said.output
    assert "no layout" not in said.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nothing",), "neither a directory here nor an entry of the catalog"),
        (("./nothing", "--gpu-mib", "23034"), "no such directory"),
        (("big",), "nothing says where the weights"),
        (("big", "--host", "rack"), "nothing is recorded of host rack"),
        (("big", "--host", "tower"), "no host `tower` in any stack"),
        (("big", "--weights", "catalog"), "no config.json"),
        (("TINY",), "nothing says how large the GPUs are"),
        (("TINY", "--tp", "4", "--gpus", "2", "--gpu-mib", "23034"), "4 GPUs, and there are 2"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused_with_status_2(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    write_model(tmp_path, custom("tiny:2:256"))
    given = [str(tmp_path / "tiny") if one == "TINY" else one for one in arguments]
    answer = berth(*given)
    assert answer.exit_code == 2
    assert said in answer.output
    assert "Fix:" in answer.output or "no such directory" in answer.output


def test_it_runs_where_there_is_no_project(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert berth(root / "llama-3.2-1b-instruct", "--gpu-mib", "23034").exit_code == 0


def recorded(tmp_path: Path, **weights: Path) -> None:
    """A record of host rack that says what these directories hold."""
    held = {
        name.replace("_", "-"): Weights.model_validate(read(folder))
        for name, folder in weights.items()
    }
    write(tmp_path, "rack", inventory(0).model_copy(update={"weights": held}))


def test_a_catalog_entry_is_judged_by_the_weights_on_its_host(root: Path, tmp_path: Path) -> None:
    recorded(tmp_path, gemma_4_31b_it_nvfp4=root / "gemma-4-31b-it-nvfp4")
    said = berth("big", "--host", "rack", "--vllm", "0.19.0")
    assert said.exit_code == 0, said.output
    assert "each of 2 GPUs: weights 16217 + KV 684 + overhead" in said.output


def test_weights_that_the_host_does_not_have_are_named_with_those_it_has(
    root: Path, tmp_path: Path
) -> None:
    recorded(tmp_path, other=root / "gemma-4-e2b-it")
    said = berth("big", "--host", "rack")
    assert said.exit_code == 2
    assert "host rack: no weights at /data/triton/weights/gemma-4-31b-it-nvfp4" in said.output
    assert "there are: other." in said.output


def test_a_shared_entry_is_judged_by_its_budget(root: Path, tmp_path: Path) -> None:
    entry = "weights: gemma-4-e2b-it\nmax_model_len: 8192\nshared_mib: {}\n"
    for budget, status in ((14720, 0), (9000, 1)):
        (tmp_path / "catalog/small.yaml").write_text(entry.format(budget))
        said = berth("small", "--host", "rack", "--weights", root / "gemma-4-e2b-it")
        assert said.exit_code == status, said.output
