"""One weights directory: everything that vLLM and Berth read from it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from .catalog import Model
from .safetensors import write_checkpoint

_CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|turn>{{ message['role'] }}\n"
    "{{ message['content'] }}<turn|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn>model\n{% endif %}"
)
_GENERATION = {"bos_token_id": 2, "eos_token_id": [1, 106], "pad_token_id": 0, "do_sample": True}


def write_model(root: Path, model: Model) -> int:
    """Write `root/<name>`, whole or not at all; returns the tensors' bytes."""
    target, unfinished = root / model.name, root / f".{model.name}.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    (unfinished / "config.json").write_text(json.dumps(model.config, indent=1))
    if "quantization_config" in model.config:
        quantization = {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}
        (unfinished / "hf_quant_config.json").write_text(json.dumps(quantization, indent=1))
    (unfinished / "generation_config.json").write_text(json.dumps(_GENERATION, indent=1))
    tokenizer = {
        "tokenizer_class": "GemmaTokenizer",
        "bos_token": "<bos>",
        "eos_token": "<eos>",
        "pad_token": "<pad>",
        "chat_template": _CHAT_TEMPLATE,
    }
    (unfinished / "tokenizer_config.json").write_text(json.dumps(tokenizer, indent=1))
    total = write_checkpoint(unfinished, model.tensors())
    shutil.rmtree(target, ignore_errors=True)
    unfinished.rename(target)
    return total
