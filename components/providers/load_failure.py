"""Why a model did not load: Triton's reason, recognised, with what it means and what to do.

Pure: a table of patterns over the text that Triton's load call answers with. The texts are those
of Triton 2.51, of its vLLM backend, of vLLM 0.9 to 0.22, and (read) of TensorRT-LLM 1.0 to 1.2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from models.refusal import Refusal


class NotServing(Refusal):
    """A model was tried, does not serve, and left nothing behind: a fallback may take its place."""


LONGEST_QUOTE = 600
"""Characters of Triton's reason that are quoted: a vLLM traceback fills screens."""


@dataclass(frozen=True)
class LoadFailure:
    """One way for a load to fail. `means` and `fix` may name {model}, {unit} and {gpus}."""

    kind: str
    pattern: str
    means: str
    fix: str


# The first match counts, so what is said more precisely comes first.
TABLE = (
    LoadFailure(
        "memory-at-startup",
        r"Free memory on device .* on startup .*less than desired",
        "another process holds GPU memory that the model was to take",
        "see who holds it (`nvidia-smi` on the host); free it, or lower the catalog entry's "
        "`gpu_memory_utilization`",
    ),
    LoadFailure(
        "kv-cache",
        r"No available memory for the cache blocks"
        r"|larger than the (maximum number of tokens that can be stored in|available) KV cache"
        r"|KV cache is needed|Impossible to fit any sequence in kvCache",
        "the weights fit, but what is left of the GPU's memory does not hold one request of full "
        "length",
        "lower the catalog entry's `max_model_len`, raise its `gpu_memory_utilization`, or give it "
        "more GPUs",
    ),
    LoadFailure(
        "cuda-oom",
        r"CUDA out of memory|CUDA error: out of memory|OutOfMemoryError",
        "the model does not fit into the memory that is free on {gpus}",
        "see what else holds memory there (`nvidia-smi` on the host); lower `max_model_len`, take "
        "quantised weights, or give the model more GPUs",
    ),
    LoadFailure(
        "attention-heads",
        r"attention heads .*must be divisible by tensor parallel size"
        r"|(divisible|divide).*tensor.parallel",
        "the model's attention heads cannot be shared out over that many GPUs",
        "set the catalog entry's `tensor_parallel_size` to a divisor of its head count",
    ),
    LoadFailure(
        "too-few-gpus",
        r"World size .* (is )?(larger|greater) than .*(available )?GPUs"
        r"|tensor parallel size .*(exceeds|larger|greater)|not enough GPUs|invalid device ordinal",
        "the engine wants more GPUs than its instance sees",
        "put the role on an instance as wide as the model's tp × pp, and see that the container "
        "still has its GPUs (`docker exec <instance> nvidia-smi -L`)",
    ),
    LoadFailure(
        "kind-gpu",
        r"KIND_GPU",
        "config.pbtxt asks for one engine per GPU (KIND_GPU), so none sees all of them",
        "entries that Berth writes have KIND_MODEL: run `pulumi up --refresh` to put a hand-made "
        "change right",
    ),
    LoadFailure(
        "ray-missing",
        r"No module named 'ray'|[Rr]ay is not installed|import Ray"
        r"|\b[Rr]ay\b.*(not available|is required)",
        "the engine's image holds no Ray, which a model on several GPUs needs in Triton",
        "take an image that holds Ray (releases/images.csv and triton.csv say which are known to)",
    ),
    LoadFailure(
        "needs-ray",
        r"daemonic processes are not allowed to have children|distributed_executor_backend",
        "in Triton a model on several GPUs cannot start its workers by multiprocessing",
        "set the catalog entry's `executor: ray`",
    ),
    LoadFailure(
        "unknown-argument",
        r"unexpected keyword argument|unrecognized arguments|[Ee]xtra inputs are not permitted",
        "the engine of this image does not know one of the arguments in model.json",
        "correct the catalog entry's `engine_args`, or take an image whose vLLM knows it",
    ),
    LoadFailure(
        "architecture",
        r"does not recognize this architecture|[Mm]odel architectures .* (are )?not supported",
        "the image's transformers or vLLM is older than the model",
        "take a newer image for the instance",
    ),
    LoadFailure(
        "dtype",
        r"[Bb]float16 is only supported|quantization method .* (is )?not supported"
        r"|Minimum capability",
        "the GPU cannot compute in this number format",
        "set the catalog entry's `dtype` or `quantization` to one that this GPU knows",
    ),
    LoadFailure(
        "engine-files",
        r"Error opening engine file|deserialize cuda engine|gpt_model_path",
        "the prebuilt engines are not there, not whole, or of another TensorRT-LLM or GPU",
        "build them on such a GPU with `trtllm-build` of the instance's own image, and see that "
        "the catalog entry's `engine_dir` names their directory",
    ),
    LoadFailure(
        "all-models",
        r"the image holds no \S+/model\.py",
        "the instance's image is none of TensorRT-LLM's for Triton",
        "give the instance an image `tritonserver:YY.MM-trtllm-python-py3`",
    ),
    LoadFailure(
        "weights",
        r"not a local folder and is not a valid model identifier|Repo id must be in the form"
        r"|does not appear to have a file named|Cannot find any model weights|HFValidationError"
        r"|SafetensorError|HeaderTooSmall|No such file or directory",
        "the weights directory that model.json names is missing or incomplete in the container",
        "see that the weights are complete on the host, and that the catalog entry's `weights` "
        "names their directory",
    ),
    LoadFailure(
        "two-repositories",
        r"appears in two or more repositories",
        "the model repository holds the name twice",
        "remove the other one from the host",
    ),
    LoadFailure(
        "not-polled",
        r"failed to poll from model repository",
        "Triton finds no usable entry of that name: it is missing, or its config.pbtxt is wrong",
        "`pulumi up --refresh` writes the entry again; Triton says in `journalctl -u {unit}` what "
        "it did not like",
    ),
    LoadFailure(
        "no-version",
        r"at least one version must be available",
        "the entry has no version directory",
        "`pulumi up --refresh` writes the entry again",
    ),
    LoadFailure(
        "no-backend",
        r"unable to find backend|backend library|[Uu]nable to find .*shared library",
        "the image has no such backend",
        "take an image with the engine's backend for the instance",
    ),
    LoadFailure(
        "shared-memory",
        r"[Ss]hared memory|shm|No space left on device",
        "the container's shared memory is used up",
        "raise the instance's `shm_size_mib`",
    ),
    LoadFailure(
        "nccl",
        r"NCCL",
        "the GPUs could not set up their communication",
        'on machines without NVLink set `NCCL_P2P_DISABLE: "1"` in the instance\'s `environment`; '
        "see `journalctl -u {unit}`",
    ),
    LoadFailure(
        "stub",
        r"[Ss]tub process",
        "the backend's own process could not start or died",
        "`journalctl -u {unit}` says why; then `systemctl restart {unit}` on the host",
    ),
)

UNKNOWN = LoadFailure(
    "unknown",
    "",
    "this reason is not one that Berth knows",
    "`journalctl -u {unit}` on the host has the whole story; vLLM's engine arguments are described "
    "at https://docs.vllm.ai/en/latest/configuration/engine_args.html",
)


def recognise(reason: str) -> LoadFailure:
    """The table's first entry that Triton's reason matches, else `UNKNOWN`."""
    for failure in TABLE:
        if re.search(failure.pattern, reason):
            return failure
    return UNKNOWN


def load_refused(
    reason: str,
    *,
    model: str,
    unit: str,
    instance: str,
    gpus: list[str],
    still_held: str = "",
    said_by: str = "Triton",
) -> Refusal:
    """The refusal for a failed load; a `NotServing` where nothing is held any more.

    Args:
        reason: what Triton's load call answered.
        still_held: who still holds GPU memory after the clean-up, if anybody does.
        said_by: whose reason it is.
    """
    failure = recognise(reason)
    names = {"model": model, "unit": unit, "gpus": ", ".join(gpus) or "the CPU"}
    consequence = f"{said_by} says: {_quote(reason)}\n  Nothing of the model is left loaded."
    if still_held:
        consequence = f"{said_by} says: {_quote(reason)}\n  Memory is still held: {still_held}"
    kind = Refusal if still_held else NotServing
    return kind(
        f"{model} does not load: {failure.means.format(**names)}",
        consequence=consequence,
        fix=failure.fix.format(**names),
        at=instance,
    )


def _quote(reason: str) -> str:
    flat = " ".join(reason.split())
    if len(flat) <= LONGEST_QUOTE:
        return flat
    # The cause of a Python failure stands at its end, the model's name at its beginning.
    return f"{flat[: LONGEST_QUOTE // 3]} … {flat[-LONGEST_QUOTE * 2 // 3 :]}"
