"""Pydantic's errors in a person's words, each with its path into the config."""

from __future__ import annotations

import difflib
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from models.refusal import Refusal, Refusals

Section = TypeVar("Section", bound=BaseModel)


def parse(section: type[Section], value: object, at: str) -> Section:
    """Validate `value`, or raise `Refusals` with one refusal for each thing that is wrong.

    Args:
        section: the declaration to parse into.
        value: plain data, as YAML or JSON gives it.
        at: where the value stands, for the messages: `berth:`, `catalog/x.yaml`.
    """
    try:
        return section.model_validate(value)
    except ValidationError as error:
        refusals = [_refusal(section, detail, at) for detail in error.errors(include_url=False)]
        raise Refusals(refusals) from None


def _refusal(section: type[BaseModel], detail: ErrorDetails, at: str) -> Refusal:
    loc = detail["loc"]
    where = path(at, loc)
    untouched = "Nothing was touched."
    if detail["type"] == "extra_forbidden":
        key = str(loc[-1])
        known = _keys(_declared(section, loc[:-1])[0])
        close = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
        fix = f"did you mean `{close[0]}`?" if close else f"known here: {', '.join(known)}."
        return Refusal(f"unknown key `{key}`", consequence=untouched, fix=fix, at=where)
    meaning = _declared(section, loc)[1]
    fix = f"it is {meaning[:1].lower()}{meaning[1:]}" if meaning else ""
    if detail["type"] == "missing":
        return Refusal("required, but not there", consequence=untouched, fix=fix, at=where)
    if detail["type"] == "value_error":
        return Refusal(str(detail["ctx"]["error"]), consequence=untouched, at=where)
    said = detail["msg"][:1].lower() + detail["msg"][1:]
    given = f"{said}; given: {_shown(detail['input'])}"
    return Refusal(given, consequence=untouched, fix=fix, at=where)


def path(at: str, loc: tuple[int | str, ...]) -> str:
    """`at` and the way below it: `berth:hosts.sandbox.gpus[1].uuid`."""
    below = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return at + below[1:] if at.endswith(":") else f"{at}{': ' if below else ''}{below[1:]}"


def _shown(value: object) -> str:
    kinds = {dict: "a map", list: "a list", str: "text", bool: "true or false", type(None): "empty"}
    kind = kinds.get(type(value), "a number")
    text = repr(value)
    return f"{text if len(text) <= 80 else text[:79] + '…'} ({kind})"


def _declared(section: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[Any, str]:
    """The annotation and description of what stands at `loc`, as far as it is declared."""
    annotation: Any = section
    description = ""
    for part in loc:
        annotation = _unwrapped(annotation)
        if get_origin(annotation) in (dict, list):
            annotation = get_args(annotation)[-1]
        elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
            field = annotation.model_fields.get(str(part))
            if field is None:
                return None, ""
            annotation, description = field.annotation, field.description or ""
    return annotation, description


def _unwrapped(annotation: Any) -> Any:
    """`X` of `X | None` and of `Annotated[X, …]`."""
    inner = [arg for arg in get_args(annotation) if arg is not type(None)]
    if hasattr(annotation, "__metadata__") or type(None) in get_args(annotation):
        return _unwrapped(inner[0])
    return annotation


def _keys(annotation: Any) -> list[str]:
    model = _unwrapped(annotation)
    is_model = isinstance(model, type) and issubclass(model, BaseModel)
    return sorted(model.model_fields) if is_model else []
