"""A real tritonserver that holds the models which the native adapters are for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.sandbox.served import gpus_and_models
from tests.sandbox.triton_serving import Triton, triton_serving

CONFIG = 'backend: "vllm"\ninstance_group [ { count: 1 kind: KIND_MODEL } ]\n'
MODEL_YAML = """
model: {model}
backend: pytorch
kv_cache_config: {{ free_gpu_memory_fraction: 0.2 }}
triton_config: {{ max_batch_size: 0, decoupled: {decoupled} }}
"""


@contextmanager
def models_on_triton(place: Path) -> Iterator[Triton]:
    """Models by their adapters' names, `not-decoupled`, and one for a test to kill."""
    gpus = gpus_and_models(place / "gpus")
    with triton_serving(place / "triton", gpus) as found:
        model = gpus.weights / "tiny"
        for name in ("triton-vllm", "killed"):
            folder = found.repository / name / "1"
            folder.mkdir(parents=True)
            (folder.parent / "config.pbtxt").write_text(CONFIG)
            about = {"model": str(model), "gpu_memory_utilization": 0.2, "max_model_len": 4096}
            (folder / "model.json").write_text(json.dumps(about))
        for name, decoupled in (("triton-llmapi", True), ("not-decoupled", False)):
            folder = found.entry("llmapi/tensorrt_llm", name)
            config = folder / "config.pbtxt"
            config.write_text(config.read_text().replace('name: "tensorrt_llm"\n', ""))
            text = MODEL_YAML.format(model=model, decoupled=decoupled)
            (folder / "1" / "model.yaml").write_text(text)
        for name in ("triton-vllm", "killed", "triton-llmapi", "not-decoupled"):
            answer = found.load(name)
            assert answer.status_code == 200, (answer.text, found.server.said())
        yield found
