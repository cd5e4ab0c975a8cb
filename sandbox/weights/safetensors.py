"""Checkpoint files: a true header, then a hole of the right length."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .tensors import Tensor

SHARD_BYTES = 5 * 10**9
"""A shard ends before it would exceed this, as save_pretrained's shards do."""


def header(tensors: Iterable[Tensor]) -> bytes:
    """Length, then JSON padded with spaces to eight bytes; offsets count from the body's start."""
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in tensors:
        entries[tensor.name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + tensor.bytes],
        }
        offset += tensor.bytes
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def shards(tensors: Iterable[Tensor]) -> list[list[Tensor]]:
    """Tensors in order, cut into files; one larger than a shard has a file of its own."""
    files: list[list[Tensor]] = [[]]
    size = 0
    for tensor in tensors:
        if files[-1] and size + tensor.bytes > SHARD_BYTES:
            files.append([])
            size = 0
        files[-1].append(tensor)
        size += tensor.bytes
    return files


def write_checkpoint(directory: Path, tensors: Iterable[Tensor]) -> int:
    """Write the shards and their index; returns the bytes of all tensors."""
    files = shards(tensors)
    weight_map: dict[str, str] = {}
    total = 0
    for number, content in enumerate(files, 1):
        name = f"model-{number:05d}-of-{len(files):05d}.safetensors"
        head, body = header(content), sum(tensor.bytes for tensor in content)
        with (directory / name).open("wb") as file:
            file.write(head)
            file.truncate(len(head) + body)
        weight_map.update({tensor.name: name for tensor in content})
        total += body
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index, indent=1))
    return total
