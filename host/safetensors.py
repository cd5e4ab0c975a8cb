"""The header of a safetensors file: names, types, shapes and sizes (Python ≥ 3.9, stdlib only)."""

from __future__ import annotations

import errno
import json
import os
import stat
import struct
from pathlib import Path
from typing import BinaryIO

LONGEST = 100 * 2**20  # bytes of a header; the safetensors library's own bound is 100 MB


class Trouble(Exception):  # noqa: N818 (its words are the answer)
    """Told with the file's name."""


def header(file: Path) -> dict[str, tuple[str, tuple[int, ...], int]]:
    """Name → (dtype, shape, bytes) of every tensor in a safetensors file.

    Raises:
        Trouble: with what is wrong with the file.
    """
    try:
        with open_plain(file) as stream:
            size = os.fstat(stream.fileno()).st_size
            start = stream.read(8)
            if len(start) < 8:
                raise Trouble(f"not a safetensors file: it has {size} bytes")
            (length,) = struct.unpack("<Q", start)
            if length > LONGEST:
                raise Trouble(
                    f"not a safetensors file: its header would be {length} bytes long "
                    f"(the file has {size}, a header at most {LONGEST})"
                )
            if 8 + length > size:
                raise Trouble(f"header is cut off: says {length} bytes, file has {size}")
            text = stream.read(length)
    except OSError as error:
        raise Trouble(why(error, file)) from None
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        raise Trouble(f"header is not JSON ({length} bytes)") from None
    if not isinstance(entries, dict):
        raise Trouble("header is not a map of tensors")
    tensors = {}
    end = 0
    for name, entry in entries.items():
        if name == "__metadata__":
            continue
        try:
            dtype, shape = str(entry["dtype"]), tuple(int(part) for part in entry["shape"])
            first, last = (int(offset) for offset in entry["data_offsets"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise Trouble(f"tensor {name} has no dtype, shape and data_offsets") from None
        if not 0 <= first <= last:
            raise Trouble(f"tensor {name} has data_offsets {first} to {last}")
        tensors[name] = (dtype, shape, last - first)
        end = max(end, last)
    if 8 + length + end > size:
        raise Trouble(f"tensors are cut off: they end at {8 + length + end}, file has {size} bytes")
    return tensors


def open_plain(file: Path) -> BinaryIO:
    """Only plain files: opening a pipe would wait for ever."""
    if not stat.S_ISREG(file.stat().st_mode):
        raise OSError(errno.EINVAL, "not a plain file")
    return file.open("rb")


def link_target(link: Path) -> str:
    try:
        return os.readlink(link)  # noqa: PTH115 (it is a text that is shown)
    except OSError:
        return "?"


def why(error: OSError, file: Path) -> str:
    if isinstance(error, FileNotFoundError) and file.is_symlink():
        return f"a link to {link_target(file)}, which is not there"
    if isinstance(error, PermissionError):
        return "may not be read (permission denied)"
    return error.strerror or str(error)
