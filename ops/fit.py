"""`berth fit`: would these weights fit, before any config is written."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from components.providers.readiness import ask_hosts
from config.files import load_catalog
from config.inventory import SOURCE, recorded
from config.ssh_keys import ssh_of_hosts
from host.weights import read
from models.catalog import CatalogModel
from models.engine import TRAITS
from models.host import Host
from models.memory import Asked, MemoryPlan, cuda_mib, layouts, memory_plan
from models.memory.architecture import architecture
from models.memory.layers import Architecture
from models.memory.trtllm import by_vllms_names
from models.refusal import Refusal
from models.weights import Weights
from ops.discover import declared

FITS, DOES_NOT_FIT, NOT_KNOWN = 0, 1, 2
"""Exit statuses."""
LENGTH = 4096
"""Tokens asked for where neither the person nor the catalog says."""
NOTHING = "Nothing was worked out."


@dataclass(frozen=True)
class Options:
    """What the person said; None: not."""

    host: str | None = None
    """A host declared in one of the stacks."""
    weights: Path | None = None
    """Directory of a catalog entry's weights, here."""
    gpus: int | None = None
    gpu_mib: int | None = None
    """`memory.total` of nvidia-smi, for each GPU."""
    tensor: int | None = None
    pipeline: int | None = None
    max_model_len: int | None = None
    utilization: float | None = None
    vllm: str | None = None


def fit(project: Path, what: str, options: Options) -> tuple[int, str]:
    """Exit status and text of the answer.

    Args:
        what: a weights directory here, or the name of a catalog entry.

    Raises:
        Refusal: where the question cannot be asked at all.
    """
    entry = None if _is_directory(what) else _catalog_entry(project, what)
    host = declared(project, options.host, None) if options.host else None
    weights = _weights(project, what, entry, host, options)
    if weights.trouble:
        raise Refusal(
            "\n".join(weights.trouble),
            consequence=NOTHING,
            fix="copy the model's directory again, whole.",
            at=f"weights {what}",
        )
    asked = _asked(entry, weights, options)
    cuda = _gpus(host, asked, options)
    if entry and entry.shared_mib is not None and options.utilization is None:
        asked = replace(asked, gpu_memory_utilization=entry.share_of(min(cuda[: asked.width])))
    return _answer(what, weights, asked, cuda)


def weights_on_host(project: Path, host_name: str, host: Host, directory: str) -> Weights:
    """What a directory of a host's weights holds: asked of the host, or as it was recorded.

    Raises:
        Refusal: the host's inventory cannot be had, or it has no such directory.
    """
    if os.environ.get(SOURCE) == "recorded":
        inventory = recorded(project, [host_name])[host_name]
    else:
        hosts = {host_name: host}
        inventory = ask_hosts(hosts, ssh_of_hosts(project, hosts))[host_name]
    if directory not in inventory.weights:
        raise Refusal(
            f"no weights at {host.weights}/{directory}",
            consequence=NOTHING,
            fix=f"there are: {', '.join(inventory.weights) or 'none'}.",
            at=f"host {host_name}",
        )
    return inventory.weights[directory]


def _is_directory(what: str) -> bool:
    return "/" in what or Path(what).is_dir()


def _catalog_entry(project: Path, name: str) -> CatalogModel:
    found = load_catalog(project / "catalog", [name])
    if name not in found:
        raise Refusal(
            f"`{name}` is neither a directory here nor an entry of the catalog",
            consequence=NOTHING,
            fix="give the path of a weights directory, or a name of `catalog/<name>.yaml`.",
        )
    return found[name]


def _weights(
    project: Path, what: str, entry: CatalogModel | None, host: Host | None, options: Options
) -> Weights:
    directory = options.weights if entry else Path(what)
    if directory is None and entry and host and options.host:
        return weights_on_host(project, options.host, host, entry.weights)
    if directory is None:
        raise Refusal(
            f"nothing says where the weights of `{what}` are",
            consequence=NOTHING,
            fix="add `--host NAME` for those on a host, or `--weights DIRECTORY` for some here.",
        )
    if not directory.is_dir():
        raise Refusal("no such directory", consequence=NOTHING, at=str(directory))
    return Weights.model_validate(read(directory))


def _asked(entry: CatalogModel | None, weights: Weights, options: Options) -> Asked:
    """What the person says, else the catalog entry, else the plainest."""
    model = architecture(weights)
    context = model.context if isinstance(model, Architecture) else 0
    base = Asked(min(LENGTH, context) if context else LENGTH)
    if entry is not None:
        trtllm = TRAITS[entry.engine].runs == "trtllm"
        base = Asked(
            entry.max_model_len,
            entry.tensor_parallel_size,
            entry.pipeline_parallel_size,
            entry.gpu_memory_utilization,
            entry.dtype,
            entry.quantization,
            by_vllms_names(entry.trtllm_args) if trtllm else entry.engine_args,
            engine="trtllm" if trtllm else "vllm",
        )
    share = options.utilization
    return replace(
        base,
        max_model_len=options.max_model_len or base.max_model_len,
        tensor_parallel_size=options.tensor or base.tensor_parallel_size,
        pipeline_parallel_size=options.pipeline or base.pipeline_parallel_size,
        gpu_memory_utilization=base.gpu_memory_utilization if share is None else share,
        vllm=options.vllm,
    )


def _gpus(host: Host | None, asked: Asked, options: Options) -> list[int]:
    """Memory of each GPU there is, as CUDA reports it, largest first."""
    if host is not None and options.gpu_mib is None:
        sizes = [gpu.cuda_mib for gpu in host.gpus]
        sizes = sizes[: options.gpus or len(sizes)]
    elif options.gpu_mib is not None:
        sizes = [cuda_mib(options.gpu_mib)] * (options.gpus or asked.width)
    else:
        raise Refusal(
            "nothing says how large the GPUs are",
            consequence=NOTHING,
            fix="add `--gpu-mib` with what `nvidia-smi --query-gpu=memory.total --format=csv` "
            "prints (an L4: 23034), or `--host NAME`.",
        )
    if asked.width > len(sizes):
        raise Refusal(
            f"tp {asked.tensor_parallel_size} × pp {asked.pipeline_parallel_size} = "
            f"{asked.width} GPUs, and there are {len(sizes)}",
            consequence=NOTHING,
            fix="ask for fewer, or give `--gpus`.",
        )
    return sorted(sizes, reverse=True)


def _answer(what: str, weights: Weights, asked: Asked, cuda: list[int]) -> tuple[int, str]:
    plan = memory_plan(weights, asked, cuda[: asked.width])
    release = f"vLLM {asked.vllm}" if asked.vllm else "vLLM of unknown release"
    release = "TensorRT-LLM" if asked.engine == "trtllm" else release
    files = f"{weights.files} file{'s' if weights.files != 1 else ''}"
    lines = [
        f"{what}: {weights.total // 2**20} MiB in {files}; max_model_len {asked.max_model_len}, "
        f"tp {asked.tensor_parallel_size} × pp {asked.pipeline_parallel_size}, {release}",
        plan.shown(),
        *_verdict(plan),
    ]
    lines += _elsewhere(weights, asked, cuda, plan)
    lines += [f"note: {note}" for note in plan.notes]
    return {True: FITS, False: DOES_NOT_FIT, None: NOT_KNOWN}[plan.fits], "\n".join(lines)


def _verdict(plan: MemoryPlan) -> list[str]:
    if plan.unknown:
        return []
    longest = plan.largest_max_model_len
    said = f"longest max_model_len here: {longest}" if longest else "no max_model_len does here"
    return [f"{'fits' if plan.fits else 'does not fit'}; {said}"]


def _elsewhere(weights: Weights, asked: Asked, cuda: list[int], plan: MemoryPlan) -> list[str]:
    found = layouts(weights, asked, cuda)
    if plan.unknown and not found:
        return []
    sizes = f"{len(cuda)} × {cuda[0]}" if len(set(cuda)) == 1 else " + ".join(map(str, cuda))
    if not found:
        return [f"no layout of {sizes} MiB (CUDA) fits"]
    return [f"layouts of {sizes} MiB (CUDA) that fit:", *(f"  {layout}" for layout in found)]
