"""Weights directories: true headers, sparse bodies, plausible sizes."""

import json
import struct
from pathlib import Path

import pytest

from sandbox.weights.catalog import STANDARD, Model, custom
from sandbox.weights.directory import write_model
from sandbox.weights.safetensors import SHARD_BYTES
from sandbox.weights.tensors import Tensor, nvfp4_linear


def _model(name: str) -> Model:
    return next(model for model in STANDARD if model.name == name)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("gemma-4-31b-it", 58, 63),
        ("gemma-4-31b-it-nvfp4", 31, 34),
        ("gemma-4-26b-a4b-it", 50, 53),
        ("gemma-4-e4b-it", 15, 17),
        ("gemma-4-e2b-it", 9.5, 10.5),
    ],
)
def test_a_checkpoint_is_as_large_as_the_published_one(
    name: str, least: float, most: float
) -> None:
    assert least < sum(t.bytes for t in _model(name).tensors()) / 1e9 < most


def test_a_quantised_layer_costs_0_5625_bytes_per_weight() -> None:
    layer = list(nvfp4_linear("mlp.up_proj", 1024, 2048))
    scalars = [t for t in layer if not t.shape]
    body = sum(t.bytes for t in layer) - sum(t.bytes for t in scalars)
    assert body == 1024 * 2048 * 0.5625


def test_only_the_mlp_is_quantised() -> None:
    packed = [t.name for t in _model("gemma-4-31b-it-nvfp4").tensors() if t.dtype == "U8"]
    assert len(packed) == 3 * 60
    assert all(".mlp." in name for name in packed)


def test_no_name_appears_twice() -> None:
    for model in STANDARD:
        names = [tensor.name for tensor in model.tensors()]
        assert len(names) == len(set(names)), model.name


def test_offsets_follow_each_other_to_the_end_of_the_file(tmp_path: Path) -> None:
    write_model(tmp_path, _model("gemma-4-e2b-it"))
    for file in sorted((tmp_path / "gemma-4-e2b-it").glob("*.safetensors")):
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            entries = json.loads(stream.read(length))
        entries.pop("__metadata__")
        offset = 0
        for name, entry in entries.items():
            start, end = entry["data_offsets"]
            assert start == offset, name
            assert end - start == Tensor(name, tuple(entry["shape"]), entry["dtype"]).bytes
            offset = end
        assert file.stat().st_size == 8 + length + offset
        assert offset <= SHARD_BYTES or len(entries) == 1


def test_62_gigabytes_cost_no_disk(tmp_path: Path) -> None:
    written = write_model(tmp_path, _model("gemma-4-31b-it"))
    blocks = sum(f.stat().st_blocks * 512 for f in (tmp_path / "gemma-4-31b-it").iterdir())
    assert written > 60 * 10**9
    assert blocks < 4 * 10**6


def test_the_index_names_the_file_of_every_tensor(tmp_path: Path) -> None:
    model = custom("tiny:2:256")
    total = write_model(tmp_path, model)
    index = json.loads((tmp_path / "tiny" / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == total
    assert set(index["weight_map"]) == {tensor.name for tensor in model.tensors()}


@pytest.mark.parametrize("spec", ["tiny", "tiny:2", ":2:256", "tiny:two:256", "tiny:0:256"])
def test_a_spec_that_says_too_little_is_refused(spec: str) -> None:
    with pytest.raises(ValueError, match="name:layers:hidden"):
        custom(spec)
