"""Images of the engines that serve by themselves: a small Debian and the stand-in, as two layers.

They have the names, entry points and package versions of vLLM's and NVIDIA's images, and nothing
else of them: the same command line starts both.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .cache import cached, key
from .image_files import DIST_PACKAGES, File, add, compiled, packages, serving_wheels
from .progress import step
from .rootfs import SUITE, TRITON_PACKAGES, rootfs
from .wheels import SERVING_LOCK

HERE = Path(__file__).parent
_SHARED = ("serving", "vllm_standin")
_PROGRAM = """#!/usr/bin/python3
import sys

from sandbox.{package}.__main__ import main

sys.exit(main())
"""
_NVIDIA_ENTRY = '#!/bin/sh\n# NVIDIA\'s prints a banner and runs the command.\nexec "$@"\n'


@dataclass(frozen=True)
class EngineImage:
    """One image; `versions` are those that Python's package metadata tells in it."""

    name: str
    program: str
    packages: tuple[str, ...]
    versions: tuple[tuple[str, str], ...]
    instructions: str
    entry: str | None = None

    @property
    def base(self) -> str:
        """The Debian below, as an image of its own that all of these share."""
        return f"berth-sandbox/python:{key([SUITE, *TRITON_PACKAGES])}"

    def key(self) -> str:
        """Of everything that it is made from."""
        parts = [*_SHARED, *self.packages]
        told = [self.name, self.program, self.instructions, self.base, *map(str, self.versions)]
        own = [HERE / "image_files.py", Path(__file__)]
        return key([*told, *(HERE / part for part in parts), SERVING_LOCK, *own])

    def files(self) -> Iterator[File]:
        """What is added to Debian."""
        yield from serving_wheels()
        yield from packages(*_SHARED, *self.packages)
        for name, version in self.versions:
            metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
            module = f'__version__ = "{version}"\n'.encode()
            yield f"{DIST_PACKAGES}/{name}-{version}.dist-info/METADATA", metadata, 0o644
            yield f"{DIST_PACKAGES}/{name}/__init__.py", module, 0o644
        program = _PROGRAM.format(package=self.packages[0]).encode()
        yield f"usr/local/bin/{self.program}", program, 0o755
        if self.entry:
            yield self.entry, _NVIDIA_ENTRY.encode(), 0o755

    def context(self) -> Path:
        """A tar for `docker build -`: the recipe and the files."""

        def build(target: Path) -> None:
            with step(f"assembling {self.name}"), tarfile.open(target, "w") as archive:
                recipe = (
                    f"FROM {self.base}\nLABEL key={self.key()}\nCOPY files/ /\n{self.instructions}"
                )
                add(archive, "Dockerfile", recipe.encode(), 0o644)
                for name, content, mode in self.files():
                    add(archive, f"files/{name}", content, mode)
                    for path, code, code_mode in compiled(name, content):
                        add(archive, f"files/{path}", code, code_mode)

        return cached(f"{self.program}-context.tar", self.key(), build)


VLLM = EngineImage(
    name="berth-sandbox/vllm-openai:0.32.0",
    program="vllm",
    packages=("vllm_serve",),
    versions=(("vllm", "0.32.0"), ("transformers", "5.16.1"), ("torch", "2.13.0")),
    instructions='ENV LANG=C.UTF-8\nWORKDIR /vllm-workspace\nENTRYPOINT ["vllm", "serve"]\n',
)
TRTLLM = EngineImage(
    name="berth-sandbox/tensorrt-llm:1.2.1",
    program="trtllm-serve",
    packages=("trtllm_serve", "trtllm_standin"),
    versions=(("tensorrt_llm", "1.2.1"),),
    instructions=(
        "ENV LANG=C.UTF-8\nWORKDIR /app/tensorrt_llm\n"
        'ENTRYPOINT ["/opt/nvidia/nvidia_entrypoint.sh"]\nCMD ["/bin/bash"]\n'
    ),
    entry="opt/nvidia/nvidia_entrypoint.sh",
)
ENGINE_IMAGES = (VLLM, TRTLLM)


def base_rootfs() -> Path:
    """The tar of the Debian below."""
    return rootfs("triton", TRITON_PACKAGES)
