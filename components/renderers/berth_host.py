"""`berth-host`: one file for the host, made of the very rules that judge a plan.

A zipapp: the same sources give the same bytes wherever it is built, so nothing changes on a host
because another person ran `pulumi up`. Its files are stored, not compressed: zlib's output differs
between its versions.
"""

from __future__ import annotations

import base64
import bz2
import hashlib
import io
import zipfile
from functools import cache
from pathlib import Path

PATH = "/usr/local/bin/berth-host"
LEDGER = "/var/lib/berth/ledger.db"
_ROOT = Path(__file__).parents[2]
_SHEBANG = b"#!/usr/bin/python3 -IS\n"
_HOST = ("__init__", "__main__", "claims", "command", "docker", "gate", "gateway", "gpus",
         "guard", "images", "inventory", "ledger", "listing", "lock_holder", "routes",
         "safetensors",
         "weights")  # fmt: skip
_MODELS = ("__init__", "claim_record", "claiming", "engine", "overlap", "refusal", "start_gate")
_MAIN = "import sys\n\nfrom host.__main__ import main\n\nsys.exit(main())\n"


def sources() -> dict[str, str]:
    """Path in the file → Python text, in a stable order."""
    found = {"__main__.py": _MAIN}
    for package, names in (("host", _HOST), ("models", _MODELS)):
        for name in names:
            path = f"{package}/{name}.py"
            found[path] = (_ROOT / path).read_text()
    return dict(sorted(found.items()))


@cache
def build() -> bytes:
    """The file."""
    packed = io.BytesIO()
    packed.write(_SHEBANG)
    with zipfile.ZipFile(packed, "a", zipfile.ZIP_STORED) as archive:
        for path, text in sources().items():
            about = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            about.external_attr = 0o644 << 16
            about.create_system = 3
            archive.writestr(about, text)
    return packed.getvalue()


@cache
def version() -> str:
    """What the inventory calls it: the start of its digest."""
    return hashlib.sha256(build()).hexdigest()[:12]


@cache
def packed() -> str:
    """The file as text, for a script's standard input: bzip2 (its output is settled) in base64."""
    text = base64.b64encode(bz2.compress(build())).decode()
    return "\n".join(text[at : at + 100] for at in range(0, len(text), 100)) + "\n"


UNPACK = (
    "import base64,bz2,sys;"
    "sys.stdout.buffer.write(bz2.decompress(base64.b64decode(sys.stdin.buffer.read())))"
)
"""A program that makes the file of `packed` again, from standard input to standard output."""
