"""A model's repository entries: what every engine's have in common, around what is its own.

What runs from an entry is a file of `components.renderers.engines`. The model is called by the name
of its own entry; the inflight batcher has parts besides, each an entry that Triton loads with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from components.renderers.engines import ENTRIES, EntryRenderer
from components.renderers.engines.triton_vllm import arguments as by_vllms_names
from components.renderers.weights import engine_dir, weights_path
from models.engine import part_name
from models.plan import Placement

__all__ = ["digest", "engine_args", "entry_files", "needs", "parts", "weights_path"]

HEAD = """\
# Rendered by Berth from catalog/{model}.yaml. A change made here by hand is undone by `pulumi up`.
"""
DIGEST = """\
parameters {{ key: "berth_digest", value: {{ string_value: "{digest}" }} }}
"""
CONFIG, ARGUMENTS = "config.pbtxt", "1/model.json"


def _renderer(placement: Placement) -> EntryRenderer:
    return ENTRIES[placement.engine]


def engine_args(placement: Placement) -> dict[str, object]:
    """What the engine is told, by vLLM's names where vLLM has one."""
    if placement.engine not in ENTRIES:
        return by_vllms_names(placement)
    return _renderer(placement).arguments(placement)


def digest(placement: Placement) -> str:
    """SHA-256 over all that an engine is made from; the server gives it back in its config."""
    made = _renderer(placement)
    others: list[object] = [dict(each) for each in (made.files(placement), made.parts(placement))]
    whole = [made.config(placement), engine_args(placement), *filter(None, others)]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def entry_files(placement: Placement) -> dict[str, str]:
    """Relative path → text, of the entry by which the model is called; empty without one."""
    if placement.engine not in ENTRIES:
        return {}
    config = _renderer(placement).config(placement) + DIGEST.format(digest=digest(placement))
    return {
        CONFIG: HEAD.format(model=placement.model) + config,
        ARGUMENTS: json.dumps(engine_args(placement), indent=2) + "\n",
        **_renderer(placement).files(placement),
    }


def needs(placement: Placement, name: str) -> str:
    """The directory that an entry of its reads, which must be there before it is written."""
    computes = part_name(placement.entry, "tensorrt_llm")
    return engine_dir(placement) if name == computes else weights_path(placement)


def parts(placement: Placement) -> dict[str, dict[str, str]]:
    """Name of each further entry → relative path → text."""
    found: Mapping[str, Mapping[str, str]] = _renderer(placement).parts(placement)
    head = HEAD.format(model=placement.model)
    return {
        name: {path: head + text if path == CONFIG else text for path, text in files.items()}
        for name, files in found.items()
    }
