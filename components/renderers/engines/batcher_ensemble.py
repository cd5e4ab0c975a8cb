"""How the inflight batcher's parts are put together: the ensemble's tensors, and who gets which."""

from __future__ import annotations

from collections.abc import Mapping

from components.renderers.tensors import tensor, tensors
from models.engine import BATCHER_PARTS

_ASKED = {  # of a client: the engine's own name, type
    "top_k": ("runtime_top_k", "INT32"),
    "top_p": ("runtime_top_p", "FP32"),
    "temperature": ("temperature", "FP32"),
    "length_penalty": ("len_penalty", "FP32"),
    "repetition_penalty": ("repetition_penalty", "FP32"),
    "min_tokens": ("min_tokens", "INT32"),
    "presence_penalty": ("presence_penalty", "FP32"),
    "frequency_penalty": ("frequency_penalty", "FP32"),
    "seed": ("seed", "UINT64"),
    "beam_width": ("beam_width", "INT32"),
    "stream": ("streaming", "BOOL"),
    "exclude_input_in_output": ("exclude_input_in_output", "BOOL"),
    "return_num_input_tokens": ("return_num_input_tokens", "BOOL"),
    "return_num_output_tokens": ("return_num_output_tokens", "BOOL"),
}
_TEXTS = {"bad_words": "BAD_WORDS", "stop_words": "STOP_WORDS"}
_COUNTS = ("num_input_tokens", "num_output_tokens")


def engine_tensors() -> str:
    """Of the part that computes."""
    return tensors(
        "input",
        [
            tensor("input_ids", "INT32", "-1", ragged=True),
            tensor("input_lengths", "INT32", scalar=True),
            tensor("request_output_len", "INT32", scalar=True),
            tensor("end_id", "INT32", scalar=True, optional=True),
            tensor("pad_id", "INT32", scalar=True, optional=True),
            *(
                tensor(f"{name}_list", "INT32", "2, -1", ragged=True, optional=True)
                for name in _TEXTS
            ),
            *(tensor(name, kind, scalar=True, optional=True) for name, kind in _ASKED.values()),
            # A second request of the same id and with this stops the first.
            tensor("stop", "BOOL", scalar=True, optional=True),
        ],
    ) + tensors(
        "output",
        [
            tensor("output_ids", "INT32", "-1, -1"),
            tensor("sequence_length", "INT32", "-1"),
            tensor("cum_log_probs", "FP32", "-1"),
            *(tensor(name, "INT32") for name in _COUNTS),
        ],
    )


def config(names: Mapping[str, str], batch: int) -> str:
    """The ensemble's configuration.

    Args:
        names: part → the name of its entry.
        batch: `max_batch_size` of all of them.
    """
    inputs = [
        tensor("text_input", "STRING"),
        tensor("max_tokens", "INT32"),
        *(tensor(name, "STRING", "-1", optional=True) for name in _TEXTS),
        *(tensor(name, kind, optional=True) for name, (_, kind) in _ASKED.items()),
    ]
    outputs = [
        tensor("text_output", "STRING", "-1"),
        tensor("cum_log_probs", "FP32", "-1"),
        *(tensor(name, "INT32") for name in _COUNTS),
    ]
    steps = ",\n".join(_step(names[part], *_wires(part)) for part in BATCHER_PARTS)
    return (
        f'platform: "ensemble"\nmax_batch_size: {batch}\n'
        + tensors("input", inputs)
        + tensors("output", outputs)
        + f"ensemble_scheduling {{\n  step [\n{steps}\n  ]\n}}\n"
    )


def _wires(part: str) -> tuple[dict[str, str], dict[str, str]]:
    """The part's tensor → the ensemble's, of its inputs and of its outputs; inner ones with `_`."""
    words = {f"{name}_IDS": f"_{name}_IDS" for name in _TEXTS.values()}
    ids = ("INPUT_ID", "REQUEST_INPUT_LEN", "REQUEST_OUTPUT_LEN")
    if part == "preprocessing":
        asked = {f"{text}_DICT": name for name, text in _TEXTS.items()}
        made = {name: f"_{name}" for name in (*ids, "OUT_END_ID", "OUT_PAD_ID")}
        return {"QUERY": "text_input", "REQUEST_OUTPUT_LEN": "max_tokens"} | asked, made | words
    if part == "tensorrt_llm":
        taken = {
            "input_ids": "_INPUT_ID",
            "input_lengths": "_REQUEST_INPUT_LEN",
            "request_output_len": "_REQUEST_OUTPUT_LEN",
            # Without an end the engine would write on past the model's last word.
            "end_id": "_OUT_END_ID",
            "pad_id": "_OUT_PAD_ID",
        }
        taken |= {f"{name}_list": f"_{text}_IDS" for name, text in _TEXTS.items()}
        taken |= {inner: name for name, (inner, _) in _ASKED.items()}
        made = {"output_ids": "_TOKENS_BATCH", "sequence_length": "_SEQUENCE_LENGTH"}
        return taken, made | {name: name for name in ("cum_log_probs", *_COUNTS)}
    return (
        {"TOKENS_BATCH": "_TOKENS_BATCH", "SEQUENCE_LENGTH": "_SEQUENCE_LENGTH"},
        {"OUTPUT": "text_output"},
    )


def _step(model: str, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> str:
    lines = [f'      model_name: "{model}"', "      model_version: -1"]
    for field, wires in (("input_map", inputs), ("output_map", outputs)):
        lines += [f'      {field} {{ key: "{k}", value: "{v}" }}' for k, v in wires.items()]
    return "    {\n" + "\n".join(lines) + "\n    }"
