"""Where an engine may run: KIND, visible GPUs and executor, before any memory is touched."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from .driver import devices, visible_gpus
from .engine_args import EngineArgs

_BOOTSTRAP = """
        An attempt has been made to start a new process before the
        current process has finished its bootstrapping phase.

        This probably means that you are not using fork to start your
        child processes and you have forgotten to use the proper idiom
        in the main module (distributed_executor_backend is "mp"; "ray" avoids it)"""


def apply_kind(kind: str, device: int, arguments: EngineArgs, log: Callable[[str], None]) -> None:
    """What NVIDIA's backend makes of KIND_GPU: one device for each instance, and only one."""
    if kind != "GPU":
        return
    if arguments.world_size > 1:
        raise ValueError(
            "KIND_GPU is currently for single-GPU models, please specify KIND_MODEL in the model's "
            "config.pbtxt for multi-GPU models"
        )
    if device >= 0:
        log(f"Detected KIND_GPU model instance, explicitly setting GPU device={device}")
        os.environ["CUDA_VISIBLE_DEVICES"] = str(device)


def server_is_explicit() -> bool:
    """Whether the server that runs this stub is in EXPLICIT mode, by its command line."""
    try:
        words = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    joined = [word.lower() for word in words]
    return any(word.endswith(b"explicit") for word in joined)


def choose(arguments: EngineArgs, explicit: bool) -> list[devices.Gpu]:
    """One GPU for each rank, or vLLM's refusal."""
    gpus = visible_gpus()
    if not gpus:
        raise RuntimeError(
            "Failed to infer device type, please set the environment variable "
            "`VLLM_LOGGING_LEVEL=DEBUG` to turn on verbose logging to help debug the issue."
        )
    world = arguments.world_size
    if world > len(gpus):
        if arguments.executor == "ray":
            raise ValueError(
                "The number of required GPUs exceeds the total number of available GPUs in the "
                "placement group."
            )
        raise ValueError(
            "1 validation error for ParallelConfig\n"
            f"  Value error, World size ({world}) is larger than the number of available GPUs "
            f"({len(gpus)}) in this node. If this is intentional and you are using:\n"
            "- ray, set '--distributed-executor-backend ray'.\n"
            "- multiprocessing, set '--nnodes' appropriately."
        )
    if world > 1 and explicit and arguments.executor != "ray":
        raise RuntimeError(_BOOTSTRAP)
    return gpus[:world]


def titles(arguments: EngineArgs) -> list[str]:
    """What the ranks' processes are called, as nvidia-smi then shows them."""
    if arguments.world_size == 1:
        return ["VLLM::EngineCore"]
    if arguments.executor == "ray":
        return ["ray::RayWorkerWrapper.execute_method"] * arguments.world_size
    return [
        f"VLLM::Worker_PP{p}_TP{t}"
        if arguments.pipeline_parallel_size > 1
        else f"VLLM::Worker_TP{t}"
        for p in range(arguments.pipeline_parallel_size)
        for t in range(arguments.tensor_parallel_size)
    ]
