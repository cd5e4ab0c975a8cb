"""A catalog entry: one model as it is served, one file each, shared by all stacks."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from models.engine import TRAITS, Engine
from models.memory.budget import MIB
from models.memory.overhead import GRAPHS
from models.scalars import Declared, MiB, ModelName, Seconds, Tokens

# What the catalog says itself or Berth decides: `engine_args` must not contradict it.
RESERVED_ENGINE_ARGS = frozenset(
    {
        "model",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "distributed_executor_backend",
        "gpu_memory_utilization",
        "max_model_len",
        "dtype",
        "quantization",
    }
)
LEAST_SHARE = 0.01
"""vLLM wants a share above 0; whether anything fits into it is the memory plan's to say."""


class CatalogModel(Declared):
    """A model and how an engine is to hold it."""

    weights: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    """Directory of the weights, beside the others in the host's weights directory."""
    engine: Engine = "triton-vllm"
    """What serves it; a role may say otherwise."""
    engine_dir: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")] | None = None
    """Directory of its engines as `trtllm-build` leaves them (config.json, rank*.engine), beside
    the weights, whose directory then has the tokenizer: for the inflight batcher alone
    (engines `triton-batcher` and `triton-openai-batcher`)."""
    image: str | None = None
    """Image of its own server, where the stack's for this engine (`images`) will not do, as on the
    day a model comes out; `build:<name>` is one of `berth:builds`. Not for engines in Triton: their
    instance has the image."""
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    """Type of weights and activations that are not quantised."""
    quantization: Annotated[str, Field(pattern=r"^[a-z0-9_-]+$")] | None = None
    """Name of the quantisation in vLLM; unset: what the checkpoint's config.json says."""
    tensor_parallel_size: int = Field(default=1, ge=1, le=64)
    """GPUs that share each layer. Times `pipeline_parallel_size`, it is the instance's width."""
    pipeline_parallel_size: int = Field(default=1, ge=1, le=64)
    """Stages of layers, each on GPUs of its own."""
    executor: Literal["ray", "mp"] = "ray"
    """What runs the workers of a model wider than one GPU. In Triton's EXPLICIT mode only `ray` is
    known to work (release notes 24.12 to 25.08)."""
    max_model_len: Tokens
    """Longest context, prompt and answer together, in tokens."""
    gpu_memory_utilization: float = Field(default=0.90, gt=0, le=1)
    """Share of each GPU's memory that the engine takes for itself (vLLM's argument). With
    `shared_mib` it follows from that. TensorRT-LLM's engines have no such budget: there it is the
    share that the KV cache takes of what is free once the weights are loaded
    (`kv_cache_config.free_gpu_memory_fraction`), and the claim is on the whole GPU."""
    shared_mib: MiB | None = None
    """Memory budget on each of its GPUs, in MiB, for a model that may stand beside other such ones
    if their budgets fit; its engine is told to keep to it, CUDA graphs included. Unset: it has its
    GPUs to itself."""
    variant_of: ModelName | None = None
    """The catalog's model that this is another form of, such as its quantised one: named as a way
    out where that one does not fit."""
    config_pbtxt: str | None = None
    """Triton's model configuration, where the rendered one will not do. It must make one engine:
    `instance_group [ { count: 1, kind: KIND_MODEL } ]`. Not for the batcher, which has four.
    """
    engine_args: dict[str, JsonValue] = {}
    """Further engine arguments of vLLM, by their Python names, for the engines that run on it."""
    trtllm_args: dict[str, JsonValue] = {}
    """The same of TensorRT-LLM, for the engines that run on that: of its LLM class, or for
    its inflight batcher parameters of the `tensorrt_llm` model's config.pbtxt. Apart from vLLM's,
    so that a role changes between the two by its `engine` alone."""
    load_timeout_s: Seconds = 900
    """Bound on a load, until the first answer, in seconds."""
    unload_timeout_s: Seconds = 120
    """Bound on an unload, until the memory is back, in seconds."""

    @model_validator(mode="after")
    def _one_budget(self) -> Self:
        if self.shared_mib is not None and "gpu_memory_utilization" in self.model_fields_set:
            raise ValueError(
                "`shared_mib` and `gpu_memory_utilization` both say how much memory it takes. "
                "Keep `shared_mib` for a model that stands beside others, else the other"
            )
        return self

    def share_of(self, cuda_mib: int) -> float:
        """The share of a GPU that its engine is told to take (vLLM's gpu_memory_utilization).

        Args:
            cuda_mib: the GPU's memory as CUDA reports it, in MiB.
        """
        if self.shared_mib is None:
            return self.gpu_memory_utilization
        # Before vLLM 0.20 CUDA graphs lie on top of what the engine is told to take. Rounded down,
        # so that it stays within the budget in any case.
        eager = self.engine_args.get("enforce_eager") is True
        told = self.shared_mib - (0 if eager else GRAPHS // MIB)
        return min(1.0, max(LEAST_SHARE, int(told / cuda_mib * 10_000) / 10_000))

    def further_args(self, engine: Engine) -> dict[str, JsonValue]:
        """What an engine is told besides, by its own names."""
        return self.trtllm_args if TRAITS[engine].runs == "trtllm" else self.engine_args

    @property
    def width(self) -> int:
        """Number of GPUs it needs: tp × pp."""
        return self.tensor_parallel_size * self.pipeline_parallel_size
