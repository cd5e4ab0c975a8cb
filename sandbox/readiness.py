"""Waiting, with a bound, until the host is one that somebody could log in to and deploy on."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from .adapter_image import ADAPTER, AdapterImage
from .container import shell
from .engine_images import ENGINE_IMAGES, EngineImage
from .process import SandboxError
from .settings import ADDRESS, Settings
from .triton_image import IMAGE, image_key

BOOT_SECONDS = 90
BUILT_IMAGES: tuple[EngineImage | AdapterImage, ...] = (*ENGINE_IMAGES, ADAPTER)
"""Those that the host's own Docker builds, from a tar that is made here."""
_KEYS = "".join(
    f"printf '{image.program}=%s\\n' "
    f"\"$(docker image inspect -f '{{{{.Config.Labels.key}}}}' {image.name} 2>/dev/null)\"\n"
    for image in BUILT_IMAGES
)
_CHECK = f"""
printf 'system=%s\\n' "$(systemctl is-system-running 2>&1)"
printf 'gpus=%s\\n' "$(ls -d /run/simgpu/GPU-* 2>/dev/null | wc -l)"
printf 'docker=%s\\n' "$(docker version -f '{{{{.Server.Version}}}}' 2>/dev/null)"
printf 'triton=%s\\n' "$(docker image inspect -f '{{{{.Config.Labels.key}}}}' {IMAGE} 2>/dev/null)"
printf 'weights=%s\\n' "$(ls /data/triton/weights 2>/dev/null | wc -l)"
{_KEYS}"""


def facts(name: str) -> dict[str, str]:
    """One look at the running host: system state, GPUs, Docker, the images' keys, weights."""
    lines = shell(name, _CHECK, check=False).splitlines()
    return {k: v for k, _, v in (line.partition("=") for line in lines)}


def ssh_answers(port: int) -> bool:
    try:
        with socket.create_connection((ADDRESS, port), timeout=2) as connection:
            connection.settimeout(2)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def is_booted(settings: Settings, found: dict[str, str]) -> bool:
    return (
        found.get("system") == "running"
        and found.get("gpus") == str(settings.gpus)
        and bool(found.get("docker"))
        and ssh_answers(settings.ssh_port)
    )


def has_triton(found: dict[str, str]) -> bool:
    return found.get("triton") == image_key()


def has_image(found: dict[str, str], image: EngineImage | AdapterImage) -> bool:
    return found.get(image.program) == image.key()


def wait_booted(settings: Settings, look: Callable[[str], dict[str, str]] = facts) -> None:
    """Poll until booted; what is still missing at the end is named."""
    deadline = time.monotonic() + BOOT_SECONDS
    while True:
        found = look(settings.name)
        if is_booted(settings, found):
            return
        if time.monotonic() > deadline:
            failed = shell(settings.name, "systemctl --failed --no-legend", check=False)
            raise SandboxError(
                f"{settings.name} did not come up in {BOOT_SECONDS} s: {found}, "
                f"SSH answers: {ssh_answers(settings.ssh_port)}. Failed units: {failed.strip()}"
            )
        time.sleep(0.4)
