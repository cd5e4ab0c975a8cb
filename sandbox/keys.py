"""The sandbox's SSH keys: the user's and the host's own, kept for as long as the sandbox lives."""

from __future__ import annotations

import shutil
from pathlib import Path

from .process import run

FILES = ("id_ed25519", "id_ed25519.pub", "host_key", "host_key.pub")


def _generate(path: Path, comment: str, image: str) -> None:
    """With the machine's ssh-keygen, else with the host image's."""
    arguments = ["-q", "-t", "ed25519", "-N", "", "-C", comment, "-f"]
    if shutil.which("ssh-keygen"):
        run(["ssh-keygen", *arguments, str(path)])
        return
    script = (
        f"ssh-keygen {' '.join(a or repr(a) for a in arguments)} /tmp/k && cat /tmp/k /tmp/k.pub"
    )
    text = run(["docker", "run", "--rm", image, "sh", "-c", script]).stdout.decode()
    end = text.index("\nssh-ed25519 ") + 1
    path.touch(mode=0o600)
    path.write_text(text[:end])
    Path(f"{path}.pub").write_text(text[end:])


def ensure_keys(directory: Path, name: str, image: str) -> None:
    """Make whichever of the two pairs is missing."""
    directory.mkdir(parents=True, exist_ok=True)
    for stem, comment in (("id_ed25519", f"berth@{name}"), ("host_key", f"root@{name}")):
        path = directory / stem
        if not (path.exists() and Path(f"{path}.pub").exists()):
            path.unlink(missing_ok=True)
            Path(f"{path}.pub").unlink(missing_ok=True)
            _generate(path, comment, image)
        path.chmod(0o600)


def remove_keys(directory: Path) -> None:
    for name in (*FILES, "sandbox.json"):
        (directory / name).unlink(missing_ok=True)
    if directory.is_dir() and not any(directory.iterdir()):
        directory.rmdir()
