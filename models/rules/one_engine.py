"""Exactly one engine for each model of Triton's vLLM backend, and of TensorRT-LLM's LLM API.

KIND_GPU makes an engine for each visible GPU, and each takes its share of the whole card (Triton,
model configuration: instance groups). KIND_MODEL with count 1 makes one, whatever GPUs are there.
The LLM API is a model of the Python backend, for which KIND_CPU says the same.
"""

from __future__ import annotations

from models.engine import VLLM_ENTRY
from models.finding import Finding, wrong
from models.judged import Judged, JudgedModel
from models.text_format import Message, Unreadable, Value, parse

NAME = "one-engine"
DESCRIPTION = "A model is one engine: one instance group, KIND_MODEL (or KIND_CPU), count 1."
REMEDY = "Leave `config_pbtxt` out, or give it one instance group of KIND_MODEL with count 1."

RIGHT = "instance_group [ { count: 1, kind: KIND_MODEL } ]"
_BACKENDS = dict.fromkeys(VLLM_ENTRY, "vllm") | {"triton-llmapi": "python"}
_KINDS = {"vllm": ("KIND_MODEL",), "python": ("KIND_MODEL", "KIND_CPU")}
_NUMBERED = {"0": "KIND_AUTO", "1": "KIND_GPU", "2": "KIND_CPU", "3": "KIND_MODEL"}


def findings(judged: Judged) -> list[Finding]:
    """One for each model whose configuration makes another number of engines than one."""
    found = []
    for model in judged.models:
        if model.engine not in _BACKENDS:
            continue
        instance = judged.instance(model.instance, model.host)
        visible = len(instance.gpus) if instance else len(model.claims)
        problems = _problems(model, max(1, visible))
        if problems:
            found.append(
                wrong(
                    f"{model.model or model.entry} on {model.instance}: {'; '.join(problems)}",
                    consequence="It would not load as one engine on its GPUs.",
                    fix=f"write `{RIGHT}`, or leave `config_pbtxt` out: Berth renders that.",
                    at=f"{model.file}: config_pbtxt",
                )
            )
    return found


def _problems(model: JudgedModel, visible: int) -> list[str]:
    try:
        config = parse(model.config_pbtxt)
    except Unreadable as error:
        return [f"its configuration cannot be read: {error}"]
    backend = config.all("backend")
    own = _BACKENDS[model.engine]
    if len(backend) > 1:
        return ["`backend` stands there more than once"]
    if backend and backend[0] != own:
        return []
    groups = config.all("instance_group")
    if not groups:
        return [f"it has no instance_group: Triton would make an engine for each of {visible} GPUs"]
    if len(groups) > 1:
        return [f"it has {len(groups)} instance groups: one engine or more for each"]
    return _group_problems(groups[0], visible, _KINDS[own])


def _group_problems(group: Value, visible: int, kinds: tuple[str, ...]) -> list[str]:
    if not isinstance(group, Message):
        return [f"its instance_group is `{group:.40}`, which is no group"]
    problems = [
        f"`{name}` stands there more than once"
        for name in ("kind", "count")
        if len(group.all(name)) > 1
    ]
    kind, count = (_scalar(group, name) for name in ("kind", "count"))
    kind = _NUMBERED.get(kind, kind)
    if kind not in kinds:
        engines = f": one engine for each of {visible} GPU(s)" if kind == "KIND_GPU" else ""
        problems.append(f"its instance group is {kind or 'of no kind'}{engines}")
    if count not in ("", "1"):
        problems.append(f"its instance group has count {count}")
    pins = ", ".join(str(pin) for pin in group.all("gpus") if isinstance(pin, str))
    if group.all("gpus"):
        problems.append(f"`gpus: [{pins}]` would be silently ignored: the instance pins its GPUs")
    if "true" in group.all("passive"):
        problems.append("a passive instance group answers nothing")
    return problems


def _scalar(group: Message, name: str) -> str:
    return next((value for value in group.all(name) if isinstance(value, str)), "")
