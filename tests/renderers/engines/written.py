"""Rendered entries in a real Triton's repository, with what they read beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from components.renderers import entry
from components.renderers.image_model import ALL_MODELS
from models.plan import Placement
from sandbox.all_models import all_models
from tests.sandbox.served import Gpus
from tests.sandbox.unpacked_triton import importable


def image_models(place: Path) -> Path:
    """What the image has in /app/all_models."""
    for name, content in all_models():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
        if name.endswith("1/model.py"):
            importable((place / name).parent)
    return place


def built_engines(place: Path, ranks: int = 1) -> Path:
    """Engines of 2 GiB for each of some GPUs, as trtllm-build leaves them (holes)."""
    place.mkdir()
    shape = {"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4}
    shape |= {"hidden_size": 512, "head_size": 64, "max_position_embeddings": 8192}
    about: dict[str, Any] = {"name": "prebuilt", **shape, "mapping": {"tp_size": ranks}}
    told = {"pretrained_config": about, "build_config": {"max_seq_len": 4096}}
    (place / "config.json").write_text(json.dumps(told))
    for rank in range(ranks):
        with (place / f"rank{rank}.engine").open("wb") as file:
            file.truncate(2 * 2**30)
    return place


def write(placement: Placement, repository: Path, gpus: Gpus, image: Path) -> None:
    """A model's entries, the paths of the host and the image being those of a test."""
    whole = {placement.entry: entry.entry_files(placement), **entry.parts(placement)}
    for name, files in whole.items():
        for path, text in files.items():
            text = text.replace(ALL_MODELS, str(image))
            text = text.replace(placement.instance.host.weights, str(gpus.weights))
            target = repository / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        if "1/model.py" in files and not (repository / name / "1/sandbox").exists():
            importable(repository / name / "1")
