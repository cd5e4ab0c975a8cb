"""Files of images: Python's wheels and the stand-ins' own packages, with their byte code."""

from __future__ import annotations

import io
import py_compile
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from .wheels import SERVING_LOCK, wheels

HERE = Path(__file__).parent
DIST_PACKAGES = "usr/local/lib/python3.11/dist-packages"
"""Where Debian's Python looks."""
File = tuple[str, bytes, int]
"""Name without a leading slash, content, mode."""


def compiled(name: str, source: bytes) -> Iterator[File]:
    """Byte code beside the source, where this interpreter writes the image's kind (3.11).

    Without it every new container compiles numpy at its first load of a model: a second each.
    """
    if sys.version_info[:2] != (3, 11) or not name.endswith(".py"):
        return
    folder, _, file = name.rpartition("/")
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, file)
        path.write_bytes(source)
        target = f"{place}/out.pyc"
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(path), target, f"/{name}", doraise=True, invalidation_mode=mode)
        compiled = Path(target).read_bytes()
    yield f"{folder}/__pycache__/{file[:-3]}.cpython-311.pyc", compiled, 0o644


def serving_wheels() -> Iterator[File]:
    """Everything that the wheels of serving.lock hold."""
    return wheel_files(SERVING_LOCK)


def wheel_files(lock: Path) -> Iterator[File]:
    """Everything that the wheels of a lock file hold."""
    with zipfile.ZipFile(wheels(lock)) as outer:
        for wheel in outer.namelist():
            with zipfile.ZipFile(io.BytesIO(outer.read(wheel))) as inner:
                for name in inner.namelist():
                    if not name.endswith("/"):
                        yield f"{DIST_PACKAGES}/{name}", inner.read(name), 0o644


def packages(*names: str) -> Iterator[File]:
    """Packages of the sandbox, under their own names: `sandbox.<name>`."""
    yield f"{DIST_PACKAGES}/sandbox/__init__.py", b"", 0o644
    for name in names:
        for file in sorted((HERE / name).glob("*.py")):
            yield f"{DIST_PACKAGES}/sandbox/{name}/{file.name}", file.read_bytes(), 0o644


def add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    archive.addfile(member, io.BytesIO(content))
