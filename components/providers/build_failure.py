"""Why a build failed, in a person's words, with what the step that failed printed.

Docker's answer to pulumi-docker names the step and its status only. The layers before it are in the
host's cache, so it is run once more there, by the host's own `docker build`, to hear what it says.
"""

from __future__ import annotations

import base64
import io
import re
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.providers.ssh import Session
from components.providers.ssh_shared import on_host
from models.build import PlannedBuild
from models.refusal import Refusal

AGAIN_TIMEOUT_S = 600.0
"""Bound on the second run, in seconds."""
LARGEST_CONTEXT = 64 * 2**20
"""Bytes of a context beyond which it is not sent a second time."""
LINES = 12
_STEP = re.compile(
    r"executor failed running \[(?:/bin/sh -c )?(?P<older>.+?)\]: exit code"
    r"|process \"(?:/bin/sh -c )?(?P<newer>.+?)\" did not complete",
    re.DOTALL,
)
_STATUS = re.compile(r"(?:exit code:|returned a non-zero code:) (\d+)")
_NO_BASE = re.compile(
    r"pull access denied|manifest unknown|not found|no such host|failed to do request"
)
_CONTAINERD = re.compile(r"failed to read downloaded context")
"""What Docker with containerd's image store answers to a context that is sent with the request
(terraform-provider-docker#534)."""
_OWN_WORDS = re.compile(r"(?:\d+ errors? occurred:|\*|Error running (?:legacy|buildx) build:)")
_SCRIPT = """\
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
base64 -d | tar -xz -C "$d"
cd "$d"
status=0
DOCKER_BUILDKIT=1 timeout 580 docker build --progress plain "$@" . >out 2>&1 </dev/null || status=$?
tail -c 20000 out
exit "$status"
"""


def refusal(build: PlannedBuild, host: str, said: str, heard: str) -> Refusal:
    """What a person is told.

    Args:
        build: what was built.
        host: the host's name.
        said: the Docker plugin's error.
        heard: what the failing step printed; empty where that is not known.
    """
    step, status = _STEP.search(said), _STATUS.search(said)
    reason = " ".join(_OWN_WORDS.sub(" ", said).split())[:600]
    if step:
        code = f" (status {status[1]})" if status else ""
        words = " ".join((step["older"] or step["newer"]).split())
        reason = f"`RUN {words[:300]}` fails{code}"
    if heard:
        reason += f":\n{heard}"
    fix = f"mend {build.context}/{build.dockerfile}, and run it again."
    if not step and _NO_BASE.search(said):
        names = ", ".join(build.bases)
        fix = f"`docker pull` on {host} shows whether it can be had there: {names}."
    elif not step and _CONTAINERD.search(said):
        fix = (
            "Docker keeps its images in containerd's store there, with which the plugin cannot "
            'build: `"features": {"containerd-snapshotter": false}` in /etc/docker/daemon.json '
            "there, and restart Docker."
        )
    return Refusal(
        f"the image cannot be built on {host}: {reason}",
        consequence="Nothing was stopped: what served goes on serving.",
        fix=fix,
        at=f"berth:builds.{build.name}",
    )


def printed(output: str) -> str:
    """The last lines that the failing step printed, from BuildKit's plain progress.

    A step's lines are `#7 0.412 text`; the one that fails ends with `#7 ERROR: …`.
    """
    failed = re.findall(r"^#(\d+) ERROR", output, re.M)
    if not failed:
        return ""
    lines = re.findall(rf"^#{failed[-1]} \d+\.\d+ (.*)$", output, re.M)
    return "\n".join(f"    {line.rstrip()[:300]}" for line in lines[-LINES:] if line.strip())


def heard_again(ssh: Mapping[str, Any], project: Path, build: PlannedBuild) -> str:
    """What the step that failed prints; empty where that cannot be had.

    Raises:
        Refusal: the host cannot be reached.
    """
    context = _archive(project / build.context)
    if context is None:
        return ""
    args = [f"--build-arg={name}={value}" for name, value in sorted(build.args.items())]

    async def work(session: Session) -> str:
        done = await session.run(
            *("/bin/sh", "-euc", _SCRIPT, "sh", f"--file={build.dockerfile}", *args),
            doing=f"hearing why build {build.name} fails",
            stdin=context,
            timeout_s=AGAIN_TIMEOUT_S,
        )
        return printed(done.stdout)

    return on_host(ssh, work)


def _archive(context: Path) -> str | None:
    """The context as base64 of a compressed tar; None where it is large."""
    files = [path for path in context.rglob("*") if path.is_file() and not path.is_symlink()]
    if sum(path.stat().st_size for path in files) > LARGEST_CONTEXT:
        return None
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(context, arcname=".")
    return base64.b64encode(packed.getvalue()).decode()
