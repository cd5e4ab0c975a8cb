"""What a host reads of its weights directories, whatever state they are in."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host import weights
from models.weights import Weights
from sandbox.weights.catalog import STANDARD, custom
from sandbox.weights.directory import write_model

SHARD = "model-00001-of-00001.safetensors"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A whole, small checkpoint."""
    write_model(tmp_path, custom("tiny:3:64"))
    return tmp_path / "tiny"


def write(file: Path, entries: Any, body: int = 0) -> None:
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + b"\0" * body)


def tensor(first: int, last: int, dtype: str = "BF16") -> dict[str, Any]:
    return {"dtype": dtype, "shape": [(last - first) // 2], "data_offsets": [first, last]}


def test_every_byte_of_a_checkpoint_is_in_its_groups(tmp_path: Path) -> None:
    for model in STANDARD:
        total = write_model(tmp_path, model)
        read = weights.read(tmp_path / model.name)
        found = Weights.model_validate(read)
        assert read["trouble"] == []
        assert found.total == total
        for group in found.groups:
            assert not group.layers or group.count == sum(
                (last - first + 1) * each for first, last, each in group.layers
            )
        assert len(json.dumps(read)) < 30_000


def test_tensors_alike_are_one_group_with_its_layers(tiny: Path) -> None:
    found = {group["name"]: group for group in weights.read(tiny)["groups"]}
    assert found["model.layers.*.mlp.up_proj.weight"] == {
        "name": "model.layers.*.mlp.up_proj.weight",
        "dtype": "BF16",
        "shape": [256, 64],
        "bytes": 256 * 64 * 2,
        "count": 3,
        "layers": [[0, 2, 1]],
    }
    assert found["model.norm.weight"]["layers"] == []


@pytest.mark.parametrize(
    ("name", "group", "layer"),
    [
        (
            "model.layers.7.mlp.experts.12.up_proj.weight",
            "model.layers.*.mlp.experts.*.up_proj.weight",
            7,
        ),
        ("transformer.h.3.attn.weight", "transformer.h.*.attn.weight", 3),
        ("visual.blocks.2.norm1.weight", "visual.blocks.*.norm1.weight", 2),
        ("mlp1.0.weight", "mlp1.*.weight", None),
        ("layers", "layers", None),
    ],
)
def test_the_first_number_below_layers_is_the_layer(
    name: str, group: str, layer: int | None
) -> None:
    assert weights.split_name(name) == (group, layer)


def cut_header(file: Path) -> None:
    os.truncate(file, 100)


def cut_body(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 1)


def endless(file: Path) -> None:
    file.write_bytes(struct.pack("<Q", 2**63) + b"{}")


def not_json(file: Path) -> None:
    write(file, b"no json here")


def a_list(file: Path) -> None:
    write(file, [1])


def no_offsets(file: Path) -> None:
    write(file, {"a": {"dtype": "BF16", "shape": [1]}})


def backwards(file: Path) -> None:
    write(file, {"a": tensor(8, 4)}, body=8)


def a_few_bytes(file: Path) -> None:
    file.write_bytes(b"abc")


def to_nowhere(file: Path) -> None:
    file.unlink()
    file.symlink_to("/nowhere/blob")


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (cut_header, "header is cut off: says "),
        (cut_body, "tensors are cut off: they end at "),
        (endless, "not a safetensors file: its header would be 9223372036854775808 bytes long"),
        (not_json, "header is not JSON (12 bytes)"),
        (a_list, "header is not a map of tensors"),
        (no_offsets, "tensor a has no dtype, shape and data_offsets"),
        (backwards, "tensor a has data_offsets 8 to 4"),
        (a_few_bytes, "not a safetensors file: it has 3 bytes"),
        (to_nowhere, "a link to /nowhere/blob, which is not there"),
        (a_pipe, "not a plain file"),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(
    tiny: Path, harm: Callable[[Path], None], said: str
) -> None:
    harm(tiny / SHARD)
    (trouble,) = weights.read(tiny)["trouble"]
    assert trouble.startswith(f"{SHARD}: {said}")


def test_a_header_that_is_cut_off_is_told_with_both_sizes(tiny: Path) -> None:
    with (tiny / SHARD).open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
    os.truncate(tiny / SHARD, 512)
    assert weights.read(tiny)["trouble"] == [
        f"{SHARD}: header is cut off: says {length} bytes, file has 512"
    ]


def test_a_shard_that_the_index_names_and_is_missing_is_trouble(tiny: Path) -> None:
    index = tiny / weights.INDEX
    content = json.loads(index.read_text())
    content["weight_map"]["more"] = "model-00002-of-00002.safetensors"
    index.write_text(json.dumps(content))
    assert weights.read(tiny)["trouble"] == [
        "model-00002-of-00002.safetensors: not there, but model.safetensors.index.json names it"
    ]


def test_only_what_the_index_names_is_counted(tiny: Path) -> None:
    """Mistral's own copy, and what a broken download left, are not loaded."""
    before = weights.read(tiny)
    write(tiny / "consolidated.safetensors", {"a": tensor(0, 64)}, body=64)
    write(tiny / "leftover.safetensors", {"b": tensor(0, 64)}, body=64)
    assert weights.read(tiny) == before
    (tiny / weights.INDEX).unlink()
    (tiny / "leftover.safetensors").unlink()
    assert weights.read(tiny) == before


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: (folder / "config.json").unlink(), "no config.json"),
        (lambda folder: (folder / "config.json").write_text("{"), "config.json: not JSON"),
        (
            lambda folder: (folder / "config.json").write_text("[]"),
            "config.json: not a JSON object",
        ),
        (lambda folder: (folder / "config.json").write_text("[" * 10**5), "config.json: not JSON"),
        (lambda folder: to_nowhere(folder / "config.json"), "config.json: a link to /nowhere/blob"),
    ],
)
def test_a_config_that_cannot_be_read_is_said(
    tiny: Path, make: Callable[[Path], None], said: str
) -> None:
    make(tiny)
    (trouble,) = weights.read(tiny)["trouble"]
    assert trouble.startswith(said)


def test_other_formats_are_named_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model-q4.gguf").touch()
    (trouble,) = weights.read(tmp_path)["trouble"]
    assert trouble == "no *.safetensors files (only model-q4.gguf, which are not read)"


def test_what_may_not_be_read_is_said(tiny: Path) -> None:
    """As another user, since root may read everything."""
    for folder in (tiny, *tiny.parents):
        if folder.owner() == tiny.owner() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o555)
    (tiny / SHARD).chmod(0)
    script = (
        "import json, os, pathlib, sys; sys.path.insert(0, sys.argv[2])\n"
        "from host import weights\n"
        "os.geteuid() or os.seteuid(65534)\n"
        "print(json.dumps(weights.read(pathlib.Path(sys.argv[1]))['trouble']))"
    )
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", script, str(tiny), root]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == [f"{SHARD}: may not be read (permission denied)"]


def test_a_directory_that_is_not_there_is_an_answer(tmp_path: Path) -> None:
    assert weights.read(tmp_path / "none")["trouble"] == ["No such file or directory"]
    assert weights.read_all(tmp_path / "none") == {}


def test_modelopts_own_file_and_a_trimmed_config_are_in_the_answer(tmp_path: Path) -> None:
    write_model(tmp_path, next(m for m in STANDARD if m.name == "gemma-4-31b-it-nvfp4"))
    found = weights.read(tmp_path / "gemma-4-31b-it-nvfp4")
    assert found["quantization"]["kv_cache_quant_algo"] == "FP8"
    assert found["config"]["quantization_config"]["quant_algo"] == "NVFP4"
    assert "ignore" not in found["config"]["quantization_config"]


def test_all_directories_are_read_and_links_to_nowhere_told(tiny: Path) -> None:
    root = tiny.parent
    (root / "gone").symlink_to("/nowhere")
    (root / "linked").symlink_to("tiny")
    (root / "loop").symlink_to("loop")
    (root / "notes.txt").touch()
    (root / ".hidden").mkdir()
    found = weights.read_all(root)
    assert set(found) == {"tiny", "linked", "gone", "loop"}
    assert found["linked"] == found["tiny"] == weights.read(tiny)
    assert found["gone"]["trouble"] == ["a link to /nowhere, which is not there"]
    for answer in found.values():
        Weights.model_validate(answer)


def test_what_has_not_changed_comes_from_the_cache_and_what_has_does_not(tiny: Path) -> None:
    cache = tiny.parent / "state" / "weights.json"
    first = weights.read_all(tiny.parent, cache)
    kept = json.loads(cache.read_text())
    kept["directories"]["tiny"]["answer"]["files"] = 77
    cache.write_text(json.dumps(kept))
    assert weights.read_all(tiny.parent, cache)["tiny"]["files"] == 77
    os.utime(tiny / "config.json", ns=(1, 1))
    assert weights.read_all(tiny.parent, cache)["tiny"] == first["tiny"]
    assert [file.name for file in cache.parent.iterdir()] == ["weights.json"]


@pytest.mark.parametrize(
    "broken", ["", "{", "[]", '{"format": 1}', '{"format": 1, "directories": {"tiny": 3}}', "0" * 9]
)
def test_a_broken_cache_is_ignored(tiny: Path, broken: str) -> None:
    cache = tiny.parent / "cache.json"
    cache.write_text(broken)
    assert weights.read_all(tiny.parent, cache)["tiny"] == weights.read(tiny)
    assert json.loads(cache.read_text())["directories"]["tiny"]["answer"] == weights.read(tiny)


def test_a_cache_that_cannot_be_written_is_done_without(tiny: Path) -> None:
    (tiny.parent / "file").touch()
    assert weights.read_all(tiny.parent, tiny.parent / "file" / "cache.json")["tiny"]["files"] == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(header=st.binary(max_size=60) | json_values, config=json_values)
def test_no_content_makes_it_throw_or_unfit_for_json(
    tmp_path_factory: pytest.TempPathFactory, header: Any, config: Any
) -> None:
    folder = tmp_path_factory.mktemp("any")
    write(folder / "model.safetensors", header)
    (folder / "config.json").write_text(json.dumps(config))
    answer = weights.read(folder)
    found = Weights.model_validate(json.loads(json.dumps(answer, allow_nan=False)))
    assert len(found.digest) == 64
    assert found.trouble or isinstance(config, dict)


def test_half_characters_and_endless_depth_do_no_harm(tmp_path: Path) -> None:
    write(tmp_path / "model.safetensors", {"\ud800": tensor(0, 2)}, body=2)
    deep = '{"a":' * 500 + "1" + "}" * 500
    (tmp_path / "config.json").write_text('{"b": "\\ud800", "c": NaN, "d": ' + deep + "}")
    assert len(Weights.model_validate(weights.read(tmp_path)).digest) == 64
