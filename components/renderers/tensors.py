"""Tensors and parameters as Triton's `config.pbtxt` writes them, one a line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def tensor(
    name: str,
    kind: str,
    dims: str = "1",
    *,
    optional: bool = False,
    scalar: bool = False,
    ragged: bool = False,
) -> str:
    """One tensor.

    Args:
        kind: its type without `TYPE_`: `STRING`, `INT32`.
        dims: its shape without the batch's dimension, -1 for any.
        optional: a request may leave it out.
        scalar: handed on without its one dimension, as TensorRT-LLM's backend takes it.
        ragged: requests of different lengths may be one batch.
    """
    parts = [f'name: "{name}"', f"data_type: TYPE_{kind}", f"dims: [ {dims} ]"]
    parts += ["reshape: { shape: [ ] }"] if scalar else []
    parts += ["allow_ragged_batch: true"] if ragged else []
    parts += ["optional: true"] if optional else []
    return "{ " + ", ".join(parts) + " }"


def tensors(field: str, made: Iterable[str]) -> str:
    """`input` or `output` with its tensors."""
    return f"{field} [\n  " + ",\n  ".join(made) + "\n]\n"


def parameters(values: Mapping[str, object]) -> str:
    """Triton's parameters are text, whatever they mean; truth values in lower case."""
    lines = []
    for key, value in values.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        lines.append(f'parameters {{ key: "{key}", value: {{ string_value: "{text}" }} }}\n')
    return "".join(lines)
