"""An engine is split over just the GPUs that it has, and each gets whole attention heads.

vLLM refuses a number of attention heads that tp does not divide (`verify_with_parallel_config` in
vllm/config/model.py). Key-value heads are repeated where there are fewer than ranks, which needs
one number to divide the other (`QKVParallelLinear` in vllm/model_executor/layers/linear.py).
Vocabulary is padded, so it need not be divisible.
"""

from __future__ import annotations

from collections.abc import Mapping

from models.finding import Finding, wrong
from models.judged import Judged, JudgedModel

NAME = "parallelism"
DESCRIPTION = "tensor × pipeline parallelism is the number of GPUs, and divides the model's heads."
REMEDY = "Set tensor_parallel_size × pipeline_parallel_size to the instance's number of GPUs."


def whole(value: object) -> int | None:
    """A whole number that is at least 1; None for all else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def split(model: JudgedModel) -> tuple[int, int] | None:
    """(tp, pp) as the engine is told; None where that is no number."""
    tensor = whole(model.engine_args.get("tensor_parallel_size", 1))
    pipeline = whole(model.engine_args.get("pipeline_parallel_size", 1))
    return None if tensor is None or pipeline is None else (tensor, pipeline)


def findings(judged: Judged) -> list[Finding]:
    """One for each model that is split in a way that cannot be."""
    found = []
    for model in judged.models:
        instance = judged.instance(model.instance, model.host)
        if instance is None:
            continue
        width = len(instance.gpus)
        sizes = split(model)
        if sizes is None:
            found.append(
                wrong(
                    "tensor_parallel_size and pipeline_parallel_size are numbers from 1 on",
                    consequence="The engine would not start.",
                    fix=f"set tensor_parallel_size: {width}, pipeline_parallel_size: 1.",
                    at=model.file,
                )
            )
        elif sizes[0] * sizes[1] != width:
            found.append(_other_width(judged, model, sizes, width))
        elif sizes[0] > 1:
            found += _heads(model, sizes[0], width)
    return found


def _other_width(judged: Judged, model: JudgedModel, sizes: tuple[int, int], width: int) -> Finding:
    wanted = sizes[0] * sizes[1]
    fitting = [
        each.name
        for each in judged.instances
        if len(each.gpus) == wanted and each.host == model.host
    ]
    way_out = f"an instance with {wanted}: {', '.join(sorted(fitting))}; or " if fitting else ""
    return wrong(
        f"{model.model} wants {sizes[0]} × {sizes[1]} (tensor × pipeline) = {wanted} GPU(s), "
        f"{model.instance} has {width}",
        consequence="The engine would not start, or leave GPUs idle.",
        fix=f"{way_out}set tensor_parallel_size in {model.file} to {width}.",
        at=f"{model.at}.instance",
    )


def _heads(model: JudgedModel, tensor: int, width: int) -> list[Finding]:
    config = model.weights.config if model.weights and not model.weights.trouble else {}
    heads = _number(config, "num_attention_heads")
    kv_heads = _number(config, "num_key_value_heads")
    if heads is not None and heads % tensor:
        what, there = "attention heads", heads
    elif kv_heads is not None and kv_heads % tensor and tensor % kv_heads:
        what, there = "key-value heads", kv_heads
    else:
        return []
    fitting = [size for size in range(tensor - 1, 0, -1) if _divides(size, heads, kv_heads)]
    able = next((size for size in fitting if width % size == 0), 1)
    return [
        wrong(
            f"{model.model} has {there} {what}, which tensor_parallel_size {tensor} does not "
            "divide",
            consequence="vLLM would refuse it.",
            fix=f"set tensor_parallel_size: {able}, pipeline_parallel_size: {width // able}; or "
            f"an instance with {fitting[0]} GPU(s).",
            at=f"{model.file}: tensor_parallel_size",
        )
    ]


def _divides(size: int, heads: int | None, kv_heads: int | None) -> bool:
    return (heads is None or heads % size == 0) and (
        kv_heads is None or kv_heads % size == 0 or size % kv_heads == 0
    )


def _number(config: Mapping[str, object], key: str) -> int | None:
    """Of the text part, where a model has several."""
    for name in ("text_config", "llm_config"):
        inner = config.get(name)
        if isinstance(inner, Mapping):
            return whole(inner.get(key))
    return whole(config.get(key))
