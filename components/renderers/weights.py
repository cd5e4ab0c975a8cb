"""Where a model's files lie: the same paths on the host and in its containers."""

from __future__ import annotations

from models.plan import Placement


def weights_path(placement: Placement) -> str:
    """The directory of its weights and tokenizer."""
    return f"{placement.instance.host.weights}/{placement.catalog.weights}"


def engine_dir(placement: Placement) -> str:
    """The directory of its prebuilt engines (`trtllm-build`), beside the weights."""
    return f"{placement.instance.host.weights}/{placement.catalog.engine_dir}"
