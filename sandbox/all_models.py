"""What the TensorRT-LLM image of Triton has under /app/all_models: templates of repository entries.

Here each model's files lie in one folder; in the image `1/` is the version's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent / "triton" / "all_models"


def all_models() -> Iterator[tuple[str, bytes]]:
    """Paths below /app/all_models and contents; every model has a version folder."""
    for config in sorted(FOLDER.rglob("config.pbtxt")):
        name = str(config.parent.relative_to(FOLDER))
        yield f"{name}/config.pbtxt", config.read_bytes()
        versioned = sorted(config.parent.glob("model.*"))
        for file in versioned:
            yield f"{name}/1/{file.name}", file.read_bytes()
        if not versioned:
            # As in TensorRT-LLM's repository: a folder that would be empty.
            yield f"{name}/1/.gitkeep", b""
