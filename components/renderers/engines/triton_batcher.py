"""TensorRT-LLM's inflight batcher in Triton: an ensemble of three entries, on prebuilt engines.

As `triton_backend/all_models/inflight_batcher_llm` of TensorRT-LLM 0.17 to 1.2 has it, with the
tensors that a chat needs. The entries' names are the demo's, so two demos, or two models of one,
do not meet; that is why it is the ensemble and not `tensorrt_llm_bls`, which calls its parts by
fixed names. In EXPLICIT mode Triton loads an ensemble's parts with it, and unloads them with it
when it is asked to (`unload_dependents`; both seen on 2.51).
"""

from __future__ import annotations

from components.renderers.engines import batcher_ensemble, triton_vllm
from components.renderers.image_model import image_model
from components.renderers.tensors import parameters, tensor, tensors
from components.renderers.weights import engine_dir, weights_path
from models.engine import BATCHER_PARTS, part_name
from models.plan import Placement

BATCH = 64
"""Requests that Triton hands on at once; how many run at once is the engine's own to say."""
_HEAD = 'backend: "{backend}"\nmax_batch_size: {batch}\n'
_CPU = "instance_group [ {{ count: {count}, kind: KIND_CPU }} ]\n"
_DYNAMIC = "dynamic_batching { }\n"
TOKENIZERS = 1
"""Instances of each part that turns text into ids or back. Of two, the one that is quicker gives a
later piece of a stream before an earlier one (seen on 2.51)."""
_TOLD: dict[str, dict[str, object]] = {
    # The adapter leaves a template's own first token out where the tokenizer adds it.
    "preprocessing": {"add_special_tokens": True, "multimodal_model_path": ""},
    "postprocessing": {"skip_special_tokens": True},
}
WORKER = "/opt/tritonserver/backends/tensorrtllm/trtllmExecutorWorker"
_PREPROCESSING = tensors(
    "input",
    [
        tensor("QUERY", "STRING"),
        tensor("REQUEST_OUTPUT_LEN", "INT32"),
        # What its model.py looks up whether or not anybody sends it.
        tensor("DECODER_QUERY", "STRING", optional=True),
        tensor("BAD_WORDS_DICT", "STRING", "-1", optional=True),
        tensor("STOP_WORDS_DICT", "STRING", "-1", optional=True),
        tensor("EMBEDDING_BIAS_WORDS", "STRING", "-1", optional=True),
        tensor("EMBEDDING_BIAS_WEIGHTS", "FP32", "-1", optional=True),
        tensor("END_ID", "INT32", optional=True),
        tensor("PAD_ID", "INT32", optional=True),
        tensor("PROMPT_TABLE_EXTRA_ID", "UINT64", optional=True),
    ],
) + tensors(
    "output",
    [
        tensor("INPUT_ID", "INT32", "-1"),
        tensor("REQUEST_INPUT_LEN", "INT32"),
        tensor("DECODER_INPUT_ID", "INT32", "-1"),
        tensor("REQUEST_DECODER_INPUT_LEN", "INT32"),
        tensor("BAD_WORDS_IDS", "INT32", "2, -1"),
        tensor("STOP_WORDS_IDS", "INT32", "2, -1"),
        tensor("EMBEDDING_BIAS", "FP32", "-1"),
        tensor("REQUEST_OUTPUT_LEN", "INT32", "-1"),
        tensor("OUT_END_ID", "INT32"),
        tensor("OUT_PAD_ID", "INT32"),
        tensor("OUT_PROMPT_TABLE_EXTRA_IDS", "UINT64", "-1"),
        tensor("PIXEL_VALUES", "FP16", "-1, -1, -1, -1"),
        tensor("IMAGE_SIZES", "INT64", "-1, 2"),
    ],
)
_POSTPROCESSING = tensors(
    "input", [tensor("TOKENS_BATCH", "INT32", "-1, -1"), tensor("SEQUENCE_LENGTH", "INT32", "-1")]
) + tensors("output", [tensor("OUTPUT", "STRING", "-1")])


def config(placement: Placement) -> str:
    """The ensemble's configuration."""
    names = {part: part_name(placement.entry, part) for part in BATCHER_PARTS}
    return batcher_ensemble.config(names, BATCH)


def arguments(placement: Placement) -> dict[str, object]:
    """What the catalog says of it, by vLLM's names: for people and for the rules. No engine
    reads it here."""
    return triton_vllm.arguments(placement)


def files(_placement: Placement) -> dict[str, str]:
    """An ensemble has no code; its version folder must not be empty, and holds the arguments."""
    return {}


def parts(placement: Placement) -> dict[str, dict[str, str]]:
    """Name of the entry → path → text."""
    made = {
        "preprocessing": _tokenizer(placement, "preprocessing", _PREPROCESSING),
        "postprocessing": _tokenizer(placement, "postprocessing", _POSTPROCESSING),
        "tensorrt_llm": {"config.pbtxt": _engine(placement), "1/.keep": ""},
    }
    return {part_name(placement.entry, part): files for part, files in made.items()}


def _tokenizer(placement: Placement, part: str, middle: str) -> dict[str, str]:
    text = _HEAD.format(backend="python", batch=BATCH) + _DYNAMIC + middle
    text += _CPU.format(count=TOKENIZERS)
    text += parameters({"tokenizer_dir": weights_path(placement)} | _TOLD[part])
    return {"config.pbtxt": text, "1/model.py": image_model(f"inflight_batcher_llm/{part}")}


def _engine(placement: Placement) -> str:
    """The C++ backend, on all GPUs that its server sees, as many as the engine was built for."""
    told: dict[str, object] = {
        "gpt_model_type": "inflight_fused_batching",
        "gpt_model_path": engine_dir(placement),
        "kv_cache_free_gpu_mem_fraction": placement.gpu_memory_utilization,
        "exclude_input_in_output": True,
        "executor_worker_path": WORKER,
        "FORCE_CPU_ONLY_INPUT_TENSORS": "no",
    }
    return (
        _HEAD.format(backend="tensorrtllm", batch=BATCH)
        + "model_transaction_policy { decoupled: true }\n"
        + _DYNAMIC
        + batcher_ensemble.engine_tensors()
        + _CPU.format(count=1)
        + parameters(told | placement.catalog.trtllm_args)
    )
