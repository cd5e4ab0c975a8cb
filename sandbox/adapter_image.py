"""The adapter's image: the product's own code and Dockerfile, on the sandbox's own Debian.

What the Dockerfile lets pip fetch is laid out here instead, because the host has no way to a
registry; everything else in it is carried out as it stands.
"""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

from .cache import cached, key
from .engine_images import VLLM
from .image_files import DIST_PACKAGES, add, compiled, wheel_files
from .process import SandboxError
from .progress import step

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = ROOT / "gateway/Dockerfile"
LOCK = ROOT / "gateway/requirements.lock"
_PIP = re.compile(r'^RUN \["python3", "-m", "pip", "install".*$', re.MULTILINE)
_COPY = re.compile(r"^COPY (.*) \S+$", re.MULTILINE)


class AdapterImage:
    """One image, made anew whenever a source of it changes."""

    name = "berth-sandbox/adapter:0.1.0"
    program = "adapter"
    base = VLLM.base

    def key(self) -> str:
        """Of everything that it is made from; it is the version in its label, too."""
        own = [ROOT / "sandbox/image_files.py", Path(__file__)]
        return key([self.base, DOCKERFILE, *self.sources(), *own])

    def sources(self) -> list[Path]:
        """The files that the Dockerfile copies."""
        patterns = [each for line in _COPY.findall(DOCKERFILE.read_text()) for each in line.split()]
        return sorted({file for pattern in patterns for file in ROOT.glob(pattern)})

    def recipe(self) -> str:
        """The Dockerfile with its packages laid out already.

        Raises:
            SandboxError: it does not fetch them in the one line that is known here.
        """
        text, times = _PIP.subn(f"COPY packages/ /{DIST_PACKAGES}/", DOCKERFILE.read_text())
        if times != 1:
            raise SandboxError(f"{DOCKERFILE} fetches its packages in a way that is not known here")
        text = re.sub(r"^ARG BASE=.*$", f"ARG BASE={self.base}", text, flags=re.MULTILINE)
        text = re.sub(r"^ARG VERSION=.*$", f"ARG VERSION={self.key()}", text, flags=re.MULTILINE)
        return f"{text}LABEL key={self.key()}\n"

    def context(self) -> Path:
        """A tar for `docker build -`: the recipe, the packages and the sources."""

        def build(target: Path) -> None:
            with step(f"assembling {self.name}"), tarfile.open(target, "w") as archive:
                add(archive, "Dockerfile", self.recipe().encode(), 0o644)
                for name, content, mode in wheel_files(LOCK):
                    for file in ((name, content, mode), *compiled(name, content)):
                        inside = file[0].removeprefix(f"{DIST_PACKAGES}/")
                        add(archive, f"packages/{inside}", *file[1:])
                for source in self.sources():
                    add(archive, str(source.relative_to(ROOT)), source.read_bytes(), 0o644)

        return cached("adapter-context.tar", self.key(), build)


ADAPTER = AdapterImage()
