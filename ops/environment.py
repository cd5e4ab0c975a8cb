"""The environment in which the Pulumi CLI is run."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from models.refusal import Refusal

PROJECT = Path(__file__).resolve().parents[1]
"""Where `berth` belongs to. A stack is looked for in the working directory first."""


def project_directory() -> Path:
    """The nearest directory upwards that holds a `Pulumi.yaml`, else the checkout of `berth`."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "Pulumi.yaml").is_file():
            return folder
    return PROJECT


def pulumi_environment(project: Path) -> dict[str, str]:
    """`os.environ`, with what `.berth/env` says where the caller has not set it.

    Raises:
        Refusal: if no backend is chosen and the project was not set up.
    """
    environment = dict(os.environ)
    file = project / ".berth" / "env"
    if not file.is_file():
        if "PULUMI_BACKEND_URL" in environment or (project / ".pulumi").exists():
            return environment
        raise Refusal(
            "this checkout is not set up",
            consequence="No Pulumi state is known, so nothing was done.",
            fix="run `tools/setup` (`make up` does), or set PULUMI_BACKEND_URL.",
        )
    path = environment.get("PATH", "")
    for line in file.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            if name == "PATH":
                environment["PATH"] = value.replace("$PATH", path)
            else:
                environment.setdefault(name, shlex.split(value)[0] if value else "")
    return environment
