"""The config file that `pulumi` is given, so that a local salt never dirties the declared one.

With a passphrase, Pulumi keeps the salt of a stack's secrets in `Pulumi.<stack>.yaml`. That file is
declared, shared and reviewed here, while passphrase and state of a local backend are one machine's;
so `berth` gives Pulumi a copy under `.berth/` with the salt in it. A declared file that says itself
how its secrets are kept is given as it is.
"""

from __future__ import annotations

import re
from pathlib import Path

from config.files import stack_names
from models.refusal import Refusal

KEPT_IN_FILE = re.compile(r"^(encryptionsalt|secretsprovider|encryptedkey):", re.MULTILINE)
SALT = re.compile(r"^encryptionsalt:.*$", re.MULTILINE)


def scratch(project: Path) -> Path:
    """A directory in which `pulumi stack init` may write; it has the project's Pulumi.yaml."""
    folder = project / ".berth" / "config"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Pulumi.yaml").write_text((project / "Pulumi.yaml").read_text())
    return folder


def arguments(project: Path, stack: str) -> list[str]:
    """`--config-file …`, or nothing where the declared file is to be used itself.

    Raises:
        Refusal: if the stack has no config.
    """
    declared = project / f"Pulumi.{stack}.yaml"
    try:
        text = declared.read_text()
    except FileNotFoundError:
        raise Refusal(
            f"no config of a stack `{stack}`: {declared.name} is not there",
            consequence="Nothing was done.",
            fix=f"write it, or name one of: {', '.join(stack_names(project))}.",
        ) from None
    copy = scratch(project) / declared.name
    salt = SALT.search(copy.read_text()) if copy.is_file() else None
    if KEPT_IN_FILE.search(text) or salt is None:
        return []
    copy.write_text(f"{text.rstrip()}\n{salt[0]}\n")
    return ["--config-file", str(copy)]
