"""Runs the weights generator on the host: sent as a zip, so that it needs nothing installed."""

from __future__ import annotations

import io
import shlex
import zipfile
from pathlib import Path

from .container import shell

WEIGHTS = "/data/triton/weights"
_ENTRY = "from sandbox.weights.__main__ import main\nmain()\n"


def _zipapp() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("__main__.py", _ENTRY)
        archive.writestr("sandbox/__init__.py", "")
        for file in sorted((Path(__file__).parent / "weights").glob("*.py")):
            archive.write(file, f"sandbox/weights/{file.name}")
    return buffer.getvalue()


def write_weights(name: str, specs: list[str]) -> str:
    """The standard models, or those of `specs` (name:layers:hidden:…); returns what was written."""
    options = " ".join(f"--spec {shlex.quote(spec)}" for spec in specs)
    script = (
        "set -e; f=$(mktemp); trap 'rm -f $f' EXIT; cat > $f; "
        f"python3 $f {WEIGHTS} {options}; chown -R berth:berth {WEIGHTS}"
    )
    return shell(name, script, stdin=_zipapp())
