"""What weights directories hold, from their headers (Python ≥ 3.9, stdlib only).

Values are never read: a checkpoint of 60 GB costs a few megabytes of reading. What is wrong with a
directory is part of the answer, in the words a person is shown; nothing here raises for it.
"""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from host.safetensors import Trouble, header, link_target, open_plain, why

LONGEST_CONFIG = 16 * 2**20  # bytes
INDEX = "model.safetensors.index.json"
DEEPEST = 20  # levels of a config.json
FORMAT = 1  # of what is cached: another one is read anew
_LAYER_PARENTS = ("layers", "h", "blocks")
# Long, and of no use for arithmetic; dropped so that a recorded inventory can be reviewed.
_DROPPED = (
    "id2label",
    "label2id",
    "auto_map",
    "ignore",
    "modules_to_not_convert",
    "exclude_modules",
)
_OTHER_FORMATS = ("*.gguf", "*.bin", "*.pt", "*.pth", "*.engine")


def read(directory: Path) -> dict[str, Any]:
    """Config, tensor groups and trouble of one directory; the JSON of `models.weights.Weights`."""
    trouble: list[str] = []
    try:
        os.listdir(directory)  # noqa: PTH208
    except OSError as error:
        return {**_NOTHING, "trouble": [why(error, directory)]}
    config = _json(directory / "config.json", trouble, required=True)
    modelopt = _json(directory / "hf_quant_config.json", trouble).get("quantization")
    groups: dict[tuple[str, str, tuple[int, ...], int], dict[int | None, int]] = {}
    files = _files(directory, trouble)
    seen: set[str] = set()
    for file in files:
        try:
            tensors = header(file)
        except Trouble as found:
            trouble.append(f"{file.name}: {found}")
            continue
        for raw, (dtype, shape, size) in tensors.items():
            name = _clean(raw)
            if name not in seen:
                seen.add(name)
                pattern, layer = split_name(name)
                per_layer = groups.setdefault((pattern, dtype, shape, size), {})
                per_layer[layer] = per_layer.get(layer, 0) + 1
    return {
        "config": _trimmed(config),
        "quantization": _trimmed(modelopt) if isinstance(modelopt, dict) else {},
        "groups": [
            {
                "name": name,
                "dtype": dtype,
                "shape": list(shape),
                "bytes": size,
                "count": sum(per_layer.values()),
                "layers": _runs({k: n for k, n in per_layer.items() if k is not None}),
            }
            for (name, dtype, shape, size), per_layer in sorted(groups.items())
        ],
        "files": len(files),
        "trouble": trouble,
    }


def read_all(weights_dir: Path, cache: Path | None = None) -> dict[str, dict[str, Any]]:
    """Every directory below `weights_dir`, by name.

    Args:
        cache: a JSON file with earlier answers; one is used while the directory's files have the
            same names, sizes and times. It may be missing or broken, and not be writable.
    """
    known: dict[str, Any] = _cached(cache)
    answers: dict[str, dict[str, Any]] = {}
    kept: dict[str, Any] = {}
    try:
        entries = sorted(os.scandir(weights_dir), key=lambda entry: entry.name)
    except OSError:
        return {}
    for entry in entries:
        if entry.name.startswith("."):
            continue
        path = Path(entry.path)
        if not path.is_dir():
            if entry.is_symlink() and not path.is_file():
                said = f"a link to {link_target(path)}, which is not there"
                answers[entry.name] = {**_NOTHING, "trouble": [said]}
            continue
        state = _state(path)
        before = known.get(entry.name)
        if isinstance(before, dict) and state and before.get("state") == state and _whole(before):
            answer = before["answer"]
        else:
            answer = read(path)
        answers[entry.name] = answer
        kept[entry.name] = {"state": state, "answer": answer}
    if cache is not None and kept != known:
        _write(cache, {"format": FORMAT, "directories": kept})
    return answers


_NOTHING: dict[str, Any] = {
    "config": {},
    "quantization": {},
    "groups": [],
    "files": 0,
    "trouble": [],
}


def split_name(name: str) -> tuple[str, int | None]:
    """The name with `*` for numbers, and the layer it belongs to.

    >>> split_name("model.layers.7.mlp.experts.12.up_proj.weight")
    ('model.layers.*.mlp.experts.*.up_proj.weight', 7)
    """
    layer = None
    parts = name.split(".")
    for place, part in enumerate(parts):
        if re.fullmatch(r"[0-9]{1,9}", part):
            if layer is None and place and parts[place - 1] in _LAYER_PARENTS:
                layer = int(part)
            parts[place] = "*"
    return ".".join(parts), layer


def _runs(per_layer: dict[int, int]) -> list[list[int]]:
    """{0: 1, 1: 1, 2: 1, 5: 2} as [[0, 2, 1], [5, 5, 2]]."""
    runs: list[list[int]] = []
    for layer, number in sorted(per_layer.items()):
        if runs and runs[-1][1] == layer - 1 and runs[-1][2] == number:
            runs[-1][1] = layer
        else:
            runs.append([layer, layer, number])
    return runs


def _files(directory: Path, trouble: list[str]) -> list[Path]:
    """The safetensors files that an engine would load: those of the index where there is one."""
    there = {file.name: file for file in _glob(directory, "*.safetensors")}
    weight_map = _json(directory / INDEX, trouble).get("weight_map")
    if isinstance(weight_map, dict) and weight_map:
        named = sorted({str(shard) for shard in weight_map.values()})
        # A link to nowhere is listed, and told when it is opened; a file that is not there is not.
        missing = [name for name in named if name not in there]
        trouble.extend(f"{name}: not there, but {INDEX} names it" for name in missing[:3])
        if len(missing) > 3:
            trouble.append(f"and {len(missing) - 3} more files that {INDEX} names are not there")
        return [there[name] for name in named if name in there]
    # Mistral's own copy of the same weights lies beside the one that engines load.
    plain = [file for name, file in there.items() if not name.startswith("consolidated")]
    found = sorted(plain or there.values())
    if not found:
        others = sorted(file.name for kind in _OTHER_FORMATS for file in _glob(directory, kind))
        beside = f" (only {', '.join(others[:3])}, which are not read)" if others else ""
        trouble.append(f"no *.safetensors files{beside}")
    return found


def _glob(directory: Path, pattern: str) -> list[Path]:
    try:
        return sorted(directory.glob(pattern))
    except OSError:
        return []


def _json(file: Path, trouble: list[str], required: bool = False) -> dict[str, Any]:
    try:
        with open_plain(file) as stream:
            text = stream.read(LONGEST_CONFIG + 1)
        found = json.loads(text) if len(text) <= LONGEST_CONFIG else None
    except FileNotFoundError:
        if required:
            trouble.append(f"no {file.name}" if not file.is_symlink() else _dangling(file))
        return {}
    except OSError as error:
        trouble.append(f"{file.name}: {why(error, file)}")
        return {}
    except (ValueError, RecursionError):
        trouble.append(f"{file.name}: not JSON")
        return {}
    if not isinstance(found, dict):
        trouble.append(f"{file.name}: not a JSON object")
        return {}
    return found


def _dangling(file: Path) -> str:
    return f"{file.name}: a link to {link_target(file)}, which is not there"


def _trimmed(value: Any, depth: int = 0) -> Any:
    """Without what is dropped, and without what JSON allows and others choke on."""
    if depth > DEEPEST:
        return None
    if isinstance(value, dict):
        kept = {key: part for key, part in value.items() if key not in _DROPPED}
        return {_clean(key): _trimmed(part, depth + 1) for key, part in kept.items()}
    if isinstance(value, list):
        return [_trimmed(part, depth + 1) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return _clean(value) if isinstance(value, str) else value


def _clean(text: str) -> str:
    """JSON's escapes can make half characters, which cannot be written anywhere."""
    return text.encode("utf-8", "replace").decode()


def _state(directory: Path) -> list[list[Any]] | None:
    """Names, sizes and times of what `read` looks at; None where that cannot be seen."""
    found: list[list[Any]] = []
    try:
        for entry in os.scandir(directory):
            if entry.name.endswith((".safetensors", ".json")):
                try:
                    about = entry.stat()
                    found.append([entry.name, about.st_size, about.st_mtime_ns])
                except OSError:
                    found.append([entry.name, -1, -1])
    except OSError:
        return None
    return sorted(found)


def _whole(kept: dict[str, Any]) -> bool:
    answer = kept.get("answer")
    return isinstance(answer, dict) and all(
        isinstance(answer.get(key), type(value)) for key, value in _NOTHING.items()
    )


def _cached(cache: Path | None) -> dict[str, Any]:
    try:
        found = json.loads(cache.read_bytes()) if cache is not None else {}
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        return {}
    directories = found.get("directories")
    return directories if isinstance(directories, dict) else {}


def _write(cache: Path, content: dict[str, Any]) -> None:
    """Whole or not at all; a cache that cannot be written is done without."""
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=str(cache.parent), prefix=f".{cache.name}.")
        try:
            with os.fdopen(handle, "w") as stream:
                json.dump(content, stream)
            os.replace(temporary, cache)  # noqa: PTH105
        except OSError:
            os.unlink(temporary)  # noqa: PTH108
    except OSError:
        return
