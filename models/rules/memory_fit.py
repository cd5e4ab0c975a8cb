"""A model's weights, KV cache and overhead fit into what its engine may take: `models.memory`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from models.engine import BATCHER_ENTRY, TRAITS
from models.finding import Finding, unsure, wrong
from models.judged import Judged, JudgedGpu, JudgedModel
from models.memory import Asked, MemoryPlan, layouts, memory_plan
from models.memory.trtllm import by_vllms_names
from models.releases.held import held_by
from models.rules.parallelism import split, whole

NAME = "memory-fit"
DESCRIPTION = "Weights, KV cache for max_model_len, and overhead fit into each GPU's budget."
REMEDY = "Shorten max_model_len, spread over more GPUs, or take a quantised form."
STEP = 256
"""Context lengths are told in round numbers of tokens."""
SHOWN = 3


def findings(judged: Judged) -> list[Finding]:
    """One for each model that does not fit, or of which that is not known."""
    found = []
    for model in judged.models:
        gpus = judged.gpus_of(model)
        sizes = split(model)
        # What is asked of no such GPUs, or not split over them, is for other rules.
        if gpus is None or sizes is None or sizes[0] * sizes[1] != len(gpus):
            continue
        found += _of(judged, model, gpus, sizes)
    return found


def asked_of(judged: Judged, model: JudgedModel, sizes: tuple[int, int]) -> Asked | None:
    """How the engine is told to hold it; None where its context is no number."""
    held = held_by(model.image, judged.releases)
    runs = TRAITS[model.engine].runs if model.engine in TRAITS else "vllm"
    vllm = held.vllm if held and runs == "vllm" else None
    told = by_vllms_names(model.engine_args) if runs == "trtllm" else model.engine_args
    # With the type, because 1, 1.0 and True are one key and not one argument.
    args = tuple((key, value.__class__, value) for key, value in told.items())
    try:
        return _remembered(args, sizes, vllm, runs)
    except TypeError:  # an argument that is a list or a map
        return _asked(args, sizes, vllm, runs)


def _asked(
    given: tuple[tuple[str, type, object], ...],
    sizes: tuple[int, int],
    vllm: str | None,
    runs: Literal["vllm", "trtllm"],
) -> Asked | None:
    args = {key: value for key, _, value in given}
    length = whole(args.get("max_model_len"))
    if length is None:
        return None
    quantization = args.get("quantization")
    return Asked(
        max_model_len=length,
        tensor_parallel_size=sizes[0],
        pipeline_parallel_size=sizes[1],
        gpu_memory_utilization=_share(args.get("gpu_memory_utilization")),
        dtype=str(args.get("dtype", "auto")),
        quantization=quantization if isinstance(quantization, str) else None,
        engine_args={key: value for key, value in args.items() if key not in _SAID},
        vllm=vllm,
        engine=runs,
    )


_remembered = lru_cache(maxsize=4096)(_asked)
"""A catalog entry is asked of many GPUs: the same question is then one object, hashed once."""


_SAID = frozenset(
    {"model", "max_model_len", "tensor_parallel_size", "pipeline_parallel_size", "dtype",
     "gpu_memory_utilization", "quantization", "distributed_executor_backend"}
)  # fmt: skip


def _share(value: object) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1
    return float(value) if number else None  # type: ignore[arg-type]


def _of(
    judged: Judged, model: JudgedModel, gpus: Sequence[JudgedGpu], sizes: tuple[int, int]
) -> list[Finding]:
    name = model.model or model.entry
    if model.engine in BATCHER_ENTRY:
        return [
            unsure(
                f"nothing says whether {name} fits on {model.instance}: its engines are prebuilt, "
                "and their size is not read",
                consequence="It may end in CUDA out of memory.",
                fix="`du -sh` of its `engine_dir` on the host says what the weights take; the KV "
                "cache takes its share of what is left.",
                at=model.file,
            )
        ]
    if model.weights is None or model.weights.trouble:
        why = "; ".join(model.weights.trouble[:2]) if model.weights else "nobody has read them"
        return [
            unsure(
                f"nothing says whether {name} fits on {model.instance}: its weights: {why}",
                consequence="It may end in CUDA out of memory.",
                fix=f"`berth discover {model.host}` reads the weights that are there; "
                "`berth fit DIRECTORY` judges those of this machine.",
                at=model.file,
            )
        ]
    asked = asked_of(judged, model, sizes)
    if asked is None:
        return [
            wrong(
                f"max_model_len of {name} is no number of tokens",
                consequence="Nobody could tell how much memory it takes.",
                fix="set max_model_len, such as 4096.",
                at=f"{model.file}: max_model_len",
            )
        ]
    plan = memory_plan(model.weights, asked, [gpu.cuda_mib for gpu in gpus])
    if plan.fits is None:
        return [
            unsure(
                f"nothing says whether {name} fits on {model.instance}: {plan.unknown}",
                consequence="It may end in CUDA out of memory.",
                fix=f"load it once and see; `berth fit {name} --host {model.host}` shows what is "
                "known of it.",
                at=model.file,
            )
        ]
    return [] if plan.fits else [_too_large(judged, model, asked, plan)]


def _too_large(judged: Judged, model: JudgedModel, asked: Asked, plan: MemoryPlan) -> Finding:
    owner = f"{model.owner}: {'+'.join(model.roles)}" if model.roles else model.owner
    shown = "; ".join(plan.shown().splitlines())
    return wrong(
        f"{model.model or model.entry} does not fit on {model.instance} ({owner}), in MiB: {shown}",
        consequence="It would end in CUDA out of memory.",
        fix=_fix(judged, model, asked, plan),
        at=model.file,
        troubled=(model.name,),
    )


def _fix(judged: Judged, model: JudgedModel, asked: Asked, plan: MemoryPlan) -> str:
    longest = plan.largest_max_model_len or 0
    if longest:
        return f"set max_model_len to {longest - longest % STEP or longest}."
    host = judged.hosts.get(model.host)
    assert model.weights is not None  # noqa: S101 - what fits not was worked out from them
    fitting = layouts(model.weights, asked, [gpu.cuda_mib for gpu in host.gpus] if host else [])
    able = [each for each in fitting if each.largest_max_model_len >= asked.max_model_len]
    if not fitting:
        return "take a quantised form of it: no split over this host's GPUs fits, at any length."
    options = "; ".join(str(each) for each in (able or fitting)[:SHOWN])
    return f"on this host it would fit on {options}."
