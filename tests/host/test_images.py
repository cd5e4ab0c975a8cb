"""What a built image holds, asked of it once; Docker is a script on PATH."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from host import images
from tests.host.conftest import Program

ID = "sha256:" + "0a" * 32
HELD = {"vllm": "0.32.0", "transformers": "5.17.0"}


def asked(tmp_path: Path, image: str = ID) -> dict[str, object]:
    (tmp_path / "small").mkdir(exist_ok=True)
    (tmp_path / "small/config.json").write_text('{"model_type": "gemma4"}')
    return {"image": image, "weights": [str(tmp_path / "small"), str(tmp_path / "none")]}


def test_an_image_is_asked_once_without_network_gpu_or_rights(
    program: Program, tmp_path: Path
) -> None:
    log, cache = tmp_path / "log", tmp_path / "images.json"
    program("nvidia-smi", "exit 9")
    program("docker", f"echo \"$@\" >> {log}; echo banner; echo 'berth:{json.dumps(HELD)}'")
    for _ in range(2):
        answer = images.probed(asked(tmp_path), cache)
        assert answer["versions"] == HELD
        assert answer["model_types"] == {"small": "gemma4", "none": ""}
    said = log.read_text()
    assert said.count("run --rm") == 1
    for word in ("--network none", "--read-only", "--cap-drop ALL", "VISIBLE_DEVICES=void"):
        assert word in said
    assert "--gpus" not in said
    assert "--volume" not in said
    assert images.recalled({"image": ID}, cache) == {"versions": HELD}


def test_an_image_without_python_is_trouble_and_asked_again(
    program: Program, tmp_path: Path
) -> None:
    program("nvidia-smi", "exit 9")
    program("docker", "echo 'exec: \"python3\": executable file not found' >&2; exit 127")
    cache = tmp_path / "images.json"
    assert "executable file not found" in images.probed(asked(tmp_path), cache)["trouble"]
    assert images.recalled({"image": ID}, cache) == {}


def test_a_host_that_is_not_set_up_keeps_nothing_and_answers(
    program: Program, tmp_path: Path
) -> None:
    program("nvidia-smi", "exit 9")
    program("docker", f"echo 'berth:{json.dumps(HELD)}'")
    assert images.probed(asked(tmp_path), tmp_path / "no/images.json")["versions"] == HELD
    assert not (tmp_path / "no").exists()


def test_built_images_are_listed_with_what_is_known_of_them(
    program: Program, tmp_path: Path
) -> None:
    cache = tmp_path / "images.json"
    cache.write_text(json.dumps({ID: HELD}))
    program("docker", f"echo 'berth-build/b:1 {ID}'; echo 'berth-build/a:1 sha256:never-asked'")
    assert images.built(cache) == [{"reference": "berth-build/b:1", "id": ID, "versions": HELD}]
    cache.write_text("no json")
    assert images.built(cache) == []


@pytest.mark.usefixtures("program")
def test_without_docker_there_are_none(tmp_path: Path) -> None:
    assert images.built(tmp_path / "images.json") == []


@pytest.mark.parametrize(
    ("said", "environment", "cuda"),
    [
        ("cuda: Optional[str] = '13.0'\n", {}, "13.0"),
        ("cuda = None\n", {}, "none"),
        ("cuda = '13.0'\n", {"CUDA_VERSION": "13.2.1"}, "13.2.1"),
        ("", {}, None),
    ],
)
def test_the_image_tells_by_metadata_alone(
    tmp_path: Path, said: str, environment: dict[str, str], cuda: str | None
) -> None:
    (tmp_path / "vllm-0.32.0.dist-info").mkdir()
    (tmp_path / "vllm-0.32.0.dist-info/METADATA").write_text("Name: vllm\nVersion: 0.32.0\n")
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("raise RuntimeError('imported')\n")
    (tmp_path / "torch/version.py").write_text(said)
    done = subprocess.run(
        [sys.executable, "-S", "-c", images.PROGRAM],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path), **environment},
        cwd="/",
        text=True,
        capture_output=True,
        timeout=30,
        check=True,
    )
    found = json.loads(done.stdout.removeprefix("berth:"))
    assert found == {"vllm": "0.32.0"} | ({"cuda": cuda} if cuda else {})
