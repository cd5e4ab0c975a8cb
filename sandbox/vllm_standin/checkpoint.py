"""A weights directory as vLLM finds it: config.json and the safetensors headers."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

_TOWERS = ("vision_tower.", "audio_tower.", "embed_vision.", "embed_audio.")


@dataclass(frozen=True)
class Checkpoint:
    """Bytes of every tensor by name, from its data offsets, and the parsed config.json."""

    name: str
    config: dict[str, Any]
    tensors: dict[str, int]

    @cached_property
    def text(self) -> dict[str, Any]:
        found: dict[str, Any] = self.config.get("text_config") or self.config
        return found

    @property
    def ailment(self) -> str:
        """What is wrong with it once it is loaded: `crashes` or `mute`, by a key of its config.json
        that no real checkpoint has."""
        return str(self.config.get("sandbox_ailment", ""))

    @property
    def total_bytes(self) -> int:
        return sum(self.tensors.values())

    @property
    def is_nvfp4(self) -> bool:
        quantization = self.config.get("quantization_config") or {}
        return "NVFP4" in str(quantization.get("quant_algo", "")).upper()

    def resident_bytes(self, tensor_parallel: int, pipeline_parallel: int) -> int:
        """Weights on each GPU: towers whole, the rest divided; what vLLM drops or doubles counted.

        KV-shared layers' k and v are dropped; under `attention_k_eq_v` K is loaded into both; with
        more ranks than KV heads K and V are repeated; a tied lm_head is ignored.
        """
        layers = int(self.text.get("num_hidden_layers", 0))
        first_shared = layers - int(self.text.get("num_kv_shared_layers") or 0)
        heads = int(self.text.get("num_key_value_heads") or 1)
        repeat = max(1, tensor_parallel // heads)
        tied = bool(self.config.get("tie_word_embeddings"))
        whole = divided = 0
        for name, size in self.tensors.items():
            if any(tower in name for tower in _TOWERS):
                whole += size
            elif name == "lm_head.weight" and tied:
                continue
            elif ".self_attn.k_proj." in name or ".self_attn.v_proj." in name:
                layer = int(name.split(".layers.")[1].split(".")[0])
                if layer >= first_shared:
                    continue
                alone = name.replace("k_proj", "v_proj") not in self.tensors
                divided += size * repeat * (2 if alone and ".k_proj." in name else 1)
            else:
                divided += size
        return whole + divided // (tensor_parallel * pipeline_parallel)


LONGEST_HEADER = 100_000_000
"""Bytes; the safetensors library's own bound."""


class SafetensorError(Exception):
    """What the safetensors library raises for a file whose header is broken."""


def _header(file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        if length > LONGEST_HEADER:
            raise SafetensorError("Error while deserializing header: HeaderTooLarge")
        text = stream.read(length)
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError:
        raise SafetensorError("Error while deserializing header: InvalidHeader") from None
    return found


def read(model: str) -> Checkpoint:
    """Read the directory, or raise what vLLM and transformers raise without it."""
    directory = Path(model)
    if not directory.is_dir() and not model.startswith("/"):
        raise OSError(
            "We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find "
            f"them in the cached files. Looked for {model}."
        )
    if not (directory / "config.json").is_file():
        raise ValueError(
            f"Invalid repository ID or local directory specified: '{model}'.\n"
            "Please verify the following requirements:\n"
            "1. Provide a valid Hugging Face repository ID.\n"
            "2. Specify a local directory that contains a recognized configuration file.\n"
            "   - For Hugging Face models: ensure the presence of a 'config.json'.\n"
            "   - For Mistral models: ensure the presence of a 'params.json'.\n"
        )
    tensors: dict[str, int] = {}
    for file in sorted(directory.glob("*.safetensors")):
        for name, entry in _header(file).items():
            if name != "__metadata__":
                start, end = entry["data_offsets"]
                tensors[name] = end - start
    if not tensors:
        raise RuntimeError(f"Cannot find any model weights with `{model}`")
    return Checkpoint(directory.name, json.loads((directory / "config.json").read_text()), tensors)
