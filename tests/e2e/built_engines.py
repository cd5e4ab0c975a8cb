"""Engines as `trtllm-build` leaves them, on a test host."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.host import TestHost
from tests.e2e.workspace import Workspace

BUILT = "auditor-engines"
PLACE = f"/data/triton/weights/{BUILT}"
SHAPE = {
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "hidden_size": 512,
    "head_size": 64,
    "max_position_embeddings": 8192,
}


def lay_out(workspace: Workspace, host: TestHost, model: str) -> None:
    """Put a model's engines on the host, and their directory into its catalog entry."""
    told: dict[str, Any] = {"pretrained_config": {"name": model, **SHAPE}}
    told["build_config"] = {"max_seq_len": 4096}
    host.sh(f"mkdir -p {PLACE}; truncate -s 2G {PLACE}/rank0.engine")
    host.sh(f"cat > {PLACE}/config.json <<'X'\n{json.dumps(told)}\nX")
    workspace.change_model(model, engine_dir=BUILT)
