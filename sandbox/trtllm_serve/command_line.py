"""`trtllm-serve [serve] MODEL …` with click, as the real one: `No such option` is exit status 2.

The flags are those of the 1.2 line (turn of 2025/26 to mid 2026); 1.2.1 itself lies between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Command = Callable[..., None]
_PARSERS = (
    *("deepseek-r1", "qwen3", "nano-v3", "kimi_k2", "gemma4", "gpt_oss", "auto"),
    *("nemotron-v3", "qwen3_5"),
)
_SUB_COMMANDS = ("disaggregated", "disaggregated_mpi_worker", "mm_embedding_serve", "embeddings")
OPTIONS: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    (("--tokenizer",), {}),
    (("--custom_tokenizer",), {}),
    (("--host",), {"default": "localhost"}),
    (("--port",), {"type": int, "default": 8000}),
    (("--backend",), {"type": click.Choice(["pytorch", "tensorrt", "trt", "_autodeploy"])}),
    (("--log_level",), {"default": "info"}),
    (("--max_beam_width",), {"type": int}),
    (("--max_batch_size",), {"type": int, "default": 2048}),
    (("--max_num_tokens",), {"type": int, "default": 8192}),
    (("--max_seq_len",), {"type": int}),
    (("--tensor_parallel_size", "--tp_size"), {"type": int, "default": 1}),
    (("--pipeline_parallel_size", "--pp_size"), {"type": int, "default": 1}),
    (("--context_parallel_size", "--cp_size"), {"type": int, "default": 1}),
    (("--moe_expert_parallel_size", "--ep_size"), {"type": int}),
    (("--moe_cluster_parallel_size", "--cluster_size"), {"type": int}),
    (("--gpus_per_node",), {"type": int}),
    (
        ("--free_gpu_memory_fraction", "--kv_cache_free_gpu_memory_fraction"),
        {"type": float, "default": 0.9},
    ),
    (("--num_postprocess_workers",), {"type": int, "default": 0}),
    (("--trust_remote_code",), {"is_flag": True}),
    (("--revision", "--hf_revision"), {}),
    (("--config", "--extra_llm_api_options"), {"type": click.Path()}),
    (("--reasoning_parser",), {"type": click.Choice(_PARSERS)}),
    (("--tool_parser",), {}),
    (("--metadata_server_config_file",), {}),
    (("--server_role",), {}),
    (("--fail_fast_on_attention_window_too_large",), {"is_flag": True}),
    (("--otlp_traces_endpoint",), {}),
    (("--disagg_cluster_uri",), {}),
    (("--enable_chunked_prefill",), {"is_flag": True}),
    (("--media_io_kwargs",), {}),
    (("--custom_module_dirs",), {"multiple": True, "type": click.Path()}),
    (("--chat_template",), {}),
    (("--served_model_name",), {}),
]


class _ServeByDefault(click.Group):
    """`trtllm-serve MODEL` is `trtllm-serve serve MODEL`; a leading option is the group's own."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands:
            args = ["serve", *args]
        return super().resolve_command(ctx, args)


def command(serve: Callable[[dict[str, Any]], None]) -> click.Group:
    """The program; `serve` gets the options by their first long name, and `model`."""
    group = _ServeByDefault("trtllm-serve", help=__doc__)

    def run(**options: Any) -> None:
        serve(options)

    parameters: list[click.Parameter] = [click.Argument(["model"])]
    parameters += [click.Option(list(names), **more) for names, more in OPTIONS]
    group.add_command(click.Command("serve", callback=run, params=parameters))
    for name in _SUB_COMMANDS:
        group.add_command(click.Command(name, callback=_unplayed))
    return group


def _unplayed() -> None:
    raise click.UsageError("the stand-in plays only `serve`")
