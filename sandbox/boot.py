"""`up`: whatever state the sandbox is in, afterwards it runs as asked."""

from __future__ import annotations

import subprocess
from pathlib import Path

from . import container
from .cache import one_at_a_time
from .engine_images import base_rootfs
from .host_image import host_image
from .keys import FILES, ensure_keys, remove_keys
from .machine import prepare
from .process import SandboxError
from .progress import say, step
from .readiness import BUILT_IMAGES, facts, has_image, has_triton, is_booted, wait_booted
from .settings import ADDRESS, USER, Settings, write_description
from .triton_image import CHANGES, IMAGE, image_key, triton_rootfs
from .weights.catalog import STANDARD
from .write_weights import write_weights

_IMAGES = {"triton": IMAGE} | {image.program: image.name for image in BUILT_IMAGES}


def up(settings: Settings, directory: Path) -> None:
    """Build, boot and fill the host; a running, complete one is left alone."""
    prepare()
    with one_at_a_time(settings.name):
        _up(settings, directory)


def _up(settings: Settings, directory: Path) -> None:
    state = container.look(settings.name)
    if state and state.running and state.settings == settings and _keys_kept(directory):
        found = facts(settings.name)
        if is_booted(settings, found) and _has_images(found):
            write_description(directory, settings, _IMAGES)
            _say_older(state.image)
            say(f"{settings.name} is up: {_login(settings, directory)}")
            return
    if state and (differences := settings.differences(state.settings)):
        say(f"{settings.name} changes ({', '.join(differences)}): made anew, its disk is lost")
        container.remove(settings.name)
        state = None
    elif state and not _keys_kept(directory):
        say(f"{directory} lacks the keys of {settings.name}: made anew, its disk is lost")
        container.remove(settings.name)
        state = None
    _boot(settings, directory, state)
    _load_triton(settings.name)
    _load_built(settings.name)
    if int(facts(settings.name).get("weights") or 0) < len(STANDARD):
        with step("writing weights directories"):
            write_weights(settings.name, [])
    write_description(directory, settings, _IMAGES)
    say(f"{settings.name} is up: {_login(settings, directory)}")


def down(name: str, directory: Path) -> None:
    """Remove the container, its volumes and the directory's files; caches stay."""
    prepare()
    with one_at_a_time(name):
        if container.look(name):
            with step(f"removing {name}"):
                container.remove(name)
        remove_keys(directory)


def _keys_kept(directory: Path) -> bool:
    return all((directory / name).exists() for name in FILES)


def _login(settings: Settings, directory: Path) -> str:
    return f"ssh -i {directory / 'id_ed25519'} -p {settings.ssh_port} {USER}@{ADDRESS}"


def _say_older(image: str) -> None:
    if image != host_image():
        say("note: it was made from an older recipe of the host image; `down` and `up` renew it")


def _boot(settings: Settings, directory: Path, state: container.State | None) -> None:
    image = host_image()
    ensure_keys(directory, settings.name, image)
    if state is None:
        container.create(settings, image, directory)
    with step(f"booting {settings.name}"):
        try:
            container.start(settings.name)
        except SandboxError:
            # A port that is taken, for instance: do not leave a container that cannot start.
            container.remove(settings.name)
            raise
        try:
            wait_booted(settings)
        except SandboxError as error:
            say(f"{error}; cutting its power once")
            container.power_cut(settings.name)
            wait_booted(settings)


def _load_triton(name: str) -> None:
    if has_triton(facts(name)):
        return
    changes = [f"--change={change}" for change in (*CHANGES, f"LABEL key={image_key()}")]
    tar = triton_rootfs()
    with step(f"loading {IMAGE} into the host's Docker"):
        _docker(name, ["import", *changes, "-", IMAGE], tar)


def _load_built(name: str) -> None:
    """The engines' that serve by themselves, and the adapter's: their Debian once, and layers."""
    found = facts(name)
    for image in BUILT_IMAGES:
        if has_image(found, image):
            continue
        context = image.context()
        with step(f"loading {image.name} into the host's Docker"):
            if not container.shell(name, f"docker image ls --quiet {image.base}").strip():
                _docker(name, ["import", "-", image.base], base_rootfs())
            _docker(name, ["build", "--quiet", "--tag", image.name, "-"], context)


def _docker(name: str, words: list[str], tar: Path) -> None:
    """Docker's command inside the host, fed with a tar."""
    command = ["docker", "exec", "--env=DOCKER_BUILDKIT=0", "-i", name, "docker", *words]
    with tar.open("rb") as stream:
        done = subprocess.run(command, stdin=stream, capture_output=True, check=False)
    if done.returncode:
        raise SandboxError(f"docker {words[0]} in {name} failed: {done.stderr.decode().strip()}")


def _has_images(found: dict[str, str]) -> bool:
    return has_triton(found) and all(has_image(found, image) for image in BUILT_IMAGES)
