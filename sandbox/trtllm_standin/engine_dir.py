"""A directory of prebuilt engines: `config.json` of trtllm-build and a `rank<n>.engine` a GPU."""

from __future__ import annotations

import json
from pathlib import Path

from sandbox.vllm_standin.checkpoint import Checkpoint


def read(directory: str) -> tuple[Checkpoint, int, int, int | None]:
    """What it holds, its tensor and pipeline parallelism, and its longest sequence in tokens.

    Raises:
        RuntimeError: there is no engine.
    """
    folder = Path(directory)
    engines = sorted(folder.glob("rank*.engine"))
    if not engines or not (folder / "config.json").is_file():
        raise RuntimeError(
            f"Failed to deserialize cuda engine: Error opening engine file: {folder}/rank0.engine"
        )
    told = json.loads((folder / "config.json").read_text())
    pretrained, build = told.get("pretrained_config", {}), told.get("build_config", {})
    mapping = pretrained.get("mapping", {})
    text = {
        "num_hidden_layers": pretrained.get("num_hidden_layers", 1),
        "num_attention_heads": pretrained.get("num_attention_heads", 1),
        "num_key_value_heads": pretrained.get("num_key_value_heads"),
        "hidden_size": pretrained.get("hidden_size", 64),
        "head_dim": pretrained.get("head_size"),
        "max_position_embeddings": pretrained.get("max_position_embeddings", 2048),
    }
    sizes = {engine.name: engine.stat().st_size for engine in engines}
    name = str(pretrained.get("name") or folder.name)
    found = Checkpoint(name, text, sizes)
    longest = build.get("max_seq_len")
    return found, int(mapping.get("tp_size", 1)), int(mapping.get("pp_size", 1)), longest
