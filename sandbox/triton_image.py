"""The Triton image's root file system: a small Debian, the real server, all the stand-ins.

Laid out like NVIDIA's: /opt/tritonserver with bin, lib and backends. Inside the sandbox it is
imported by the inner Docker, so it is a plain tar.
"""

from __future__ import annotations

import io
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from .all_models import all_models
from .cache import cached, key
from .image_files import File, add, compiled, packages, serving_wheels
from .process import run
from .progress import step
from .rootfs import SUITE, TRITON_PACKAGES, rootfs
from .wheels import LOCK, SERVING_LOCK, wheels

IMAGE = "berth-sandbox/tritonserver:2.51.0-vllm"
"""Its name in the sandbox's Docker: no registry has it."""
HERE = Path(__file__).parent / "triton"
STANDIN = Path(__file__).parent / "vllm_standin"
_PACKAGES = ("vllm_standin", "serving", "openai_frontend", "trtllm_standin", "trtllm_triton")
"""On Python's path, for the OpenAI frontend and TensorRT-LLM's models."""
_RECIPE = [
    Path(__file__),
    *(Path(__file__).with_name(n) for n in ("all_models.py", "image_files.py")),
]
PREFIX = "opt/tritonserver"
_CUDART = "libcudart-09529672.so.12.6.77"
"""Under the very name that the wheel's binaries ask for, in place of the wheel's own."""
_STUB = "pytriton/tritonserver/python_backend_stubs/3.11/"
_LEFT_OUT = ("/tests/", "/__pycache__/")
_PLACES = {
    _STUB: f"{PREFIX}/backends/python/",
    "pytriton/tritonserver/bin/": f"{PREFIX}/bin/",
    "pytriton/tritonserver/backends/": f"{PREFIX}/backends/",
    "pytriton/tritonserver/caches/": f"{PREFIX}/caches/",
    "nvidia_pytriton.libs/": f"{PREFIX}/lib/",
    "numpy/": "usr/local/lib/python3.11/dist-packages/numpy/",
    "numpy.libs/": "usr/local/lib/python3.11/dist-packages/numpy.libs/",
}
CHANGES = (
    "ENV PATH=/opt/tritonserver/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "ENV LD_LIBRARY_PATH=/opt/tritonserver/lib",
    "ENV TRITON_SERVER_VERSION=2.51.0",
    "ENV LANG=C.UTF-8",
    "WORKDIR /opt/tritonserver",
    'CMD ["/bin/bash"]',
)
"""What `docker import` sets: without the library path a load of a model hangs for ever."""


def image_key() -> str:
    own = [*(STANDIN.parent / name for name in _PACKAGES), *_RECIPE]
    return key([SUITE, *TRITON_PACKAGES, LOCK, SERVING_LOCK, HERE, *own, *CHANGES])


def _files() -> Iterator[File]:
    """Name, content and mode of everything that is added to Debian."""
    with zipfile.ZipFile(wheels()) as outer:
        for wheel in outer.namelist():
            with zipfile.ZipFile(io.BytesIO(outer.read(wheel))) as inner:
                for name in inner.namelist():
                    place = next((p for p in _PLACES if name.startswith(p)), None)
                    wanted = not any(part in name for part in _LEFT_OUT)
                    if place and wanted and not name.endswith(("/", _CUDART)):
                        executable = "/bin/" in name or "stub" in name or ".so" in name
                        target = _PLACES[place] + name.removeprefix(place)
                        yield target, inner.read(name), 0o755 if executable else 0o644
    for file in sorted(STANDIN.glob("*.py")):
        yield f"{PREFIX}/backends/vllm/vllm_standin/{file.name}", file.read_bytes(), 0o644
    for file in sorted((HERE / "backends").glob("*/*.py")):
        yield f"{PREFIX}/backends/{file.parent.name}/{file.name}", file.read_bytes(), 0o644
    yield from serving_wheels()
    yield from packages(*_PACKAGES)
    frontend = (HERE / "frontend" / "main.py").read_bytes()
    yield f"{PREFIX}/python/openai/openai_frontend/main.py", frontend, 0o644
    for name, content in all_models():
        yield f"app/all_models/{name}", content, 0o644


def _cuda_runtime() -> bytes:
    """The stand-in for libcudart, compiled: see triton/cudart.c."""
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/libcudart.so"
        command = ["gcc", "-O1", "-fPIC", "-shared", "-o", library, str(HERE / "cudart.c")]
        command += [f"-Wl,--version-script={HERE / 'cudart.map'}"]
        run([*command, f"-Wl,-soname,{_CUDART}"])
        return Path(library).read_bytes()


def triton_rootfs() -> Path:
    base = rootfs("triton", TRITON_PACKAGES)

    def build(target: Path) -> None:
        with step("assembling the Triton image"):
            shutil.copyfile(base, target)
            with tarfile.open(target, "a") as archive:
                for name, content, mode in _files():
                    add(archive, name, content, mode)
                    for code in compiled(name, content):
                        add(archive, *code)
                add(archive, f"{PREFIX}/lib/{_CUDART}", _cuda_runtime(), 0o755)

    return cached("triton-image.tar", image_key(), build)
