"""Options and the YAML file together, as the LLM class gets them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import yaml

from sandbox.serving.chat_prompt import find_template

DEFAULT_FRACTION = 0.9
"""Of what is free after the weights, where a `kv_cache_config` does not say."""


@dataclass(frozen=True)
class Settings:
    """Lengths in tokens; `max_seq_len` None is the model's own."""

    model: Path
    name: str
    tp: int
    pp: int
    memory_fraction: float
    kv_tokens: int | None
    max_batch_size: int
    max_num_tokens: int
    max_seq_len: int | None
    template: str | None
    iteration_stats: bool
    perf_metrics: bool
    tool_parser: str | None


def _yaml(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    if not Path(path).is_file():
        raise click.BadParameter(f"Path '{path}' does not exist.", param_hint="--config")
    found = yaml.safe_load(Path(path).read_text()) or {}
    if not isinstance(found, dict):
        raise click.BadParameter(f"'{path}' holds no mapping", param_hint="--config")
    return found


def settings(options: dict[str, Any]) -> Settings:
    """Where both say something the YAML wins, as the help of the 1.2 line has it.

    A map of it takes the place of the whole one that the options make.

    Raises:
        click.BadParameter: the YAML is not there or no mapping.
    """
    file = _yaml(options["config"])
    told = {"free_gpu_memory_fraction": options["free_gpu_memory_fraction"]}
    kv = file.get("kv_cache_config", told) or {}
    model = Path(options["model"])
    served = options["served_model_name"]
    return Settings(
        model=model,
        # Of a directory only the last segment is told.
        name=served or (model.resolve().name if model.is_dir() else str(model)),
        tp=int(file.get("tensor_parallel_size", options["tensor_parallel_size"])),
        pp=int(file.get("pipeline_parallel_size", options["pipeline_parallel_size"])),
        memory_fraction=float(kv.get("free_gpu_memory_fraction", DEFAULT_FRACTION)),
        kv_tokens=kv.get("max_tokens"),
        max_batch_size=int(file.get("max_batch_size", options["max_batch_size"])),
        max_num_tokens=int(file.get("max_num_tokens", options["max_num_tokens"])),
        max_seq_len=file.get("max_seq_len", options["max_seq_len"]),
        template=find_template(model, options["chat_template"]),
        iteration_stats=bool(file.get("enable_iter_perf_stats", False)),
        perf_metrics=bool(file.get("return_perf_metrics", False)),
        tool_parser=options["tool_parser"],
    )
