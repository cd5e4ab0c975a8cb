"""`python3 -m sandbox up|down|status|exec|power-cut|weights`: a throwaway GPU host."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from . import container
from .boot import down, up
from .machine import start_docker
from .process import SandboxError
from .progress import step
from .readiness import facts, ssh_answers, wait_booted
from .settings import Settings
from .simgpu.devices import L4_MEMORY_MIB
from .write_weights import write_weights

DEFAULT_NAME = "berth-dev"
DEFAULT_DIRECTORY = Path(".berth/sandbox")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m sandbox", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, words in (
        ("up", "build what is missing, boot, wait until it can be used"),
        ("down", "remove it; caches stay"),
        ("status", "what state it is in; status 1 unless it is up"),
        ("exec", "run a command as root on the host: exec -- CMD"),
        ("power-cut", "cut the power and boot again"),
        ("weights", "write weights directories anew"),
    ):
        command = commands.add_parser(name, help=words)
        command.add_argument("--name", default=DEFAULT_NAME)
        if name in ("up", "down"):
            command.add_argument("--dir", type=Path, default=DEFAULT_DIRECTORY)
        if name == "up":
            command.add_argument("--ssh-port", type=int, default=2222)
            command.add_argument("--gateway-port", type=int, default=0)
            command.add_argument("--gpus", type=int, default=4)
            command.add_argument("--memory-mib", type=int, default=L4_MEMORY_MIB)
        if name == "exec":
            command.add_argument("words", nargs=argparse.REMAINDER, metavar="CMD")
        if name == "weights":
            command.add_argument("--spec", action="append", default=[], help="name:layers:hidden:…")
    return parser


def _status(name: str) -> int:
    state = container.look(name)
    if state is None:
        print(f"{name}: absent")
        return 1
    found = facts(name) if state.running else {}
    print(f"{name}: {'running' if state.running else 'stopped'}; {state.settings.to_label()}")
    print(f"  ssh answers: {ssh_answers(state.settings.ssh_port)}")
    for key, value in found.items():
        print(f"  {key}: {value}")
    return 0 if found.get("system") == "running" else 1


def _existing(name: str) -> container.State:
    state = container.look(name)
    if state is None:
        raise SandboxError(f"there is no sandbox {name}: `python3 -m sandbox up --name {name}`")
    return state


def _run(options: argparse.Namespace) -> int:
    name: str = options.name
    if options.command == "up":
        memory, gateway = options.memory_mib, options.gateway_port
        made = Settings(name, options.ssh_port, options.gpus, memory, gateway)
        up(made, options.dir.resolve())
        return 0
    if options.command == "down":
        down(name, options.dir.resolve())
        return 0
    start_docker()
    if options.command == "status":
        return _status(name)
    state = _existing(name)
    if options.command == "exec":
        words = options.words[1:] if options.words[:1] == ["--"] else options.words
        terminal = ["-t"] if sys.stdin.isatty() and sys.stdout.isatty() else []
        command = ["docker", "exec", "-i", *terminal, name, *words]
        os.execvp("docker", command)  # noqa: S606 (becomes docker exec, with its exit status)
    if options.command == "power-cut":
        with step(f"cutting the power of {name}"):
            container.power_cut(name)
            wait_booted(state.settings)
        return 0
    print(write_weights(name, options.spec), end="")
    return 0


def main() -> int:
    try:
        return _run(_parser().parse_args())
    except SandboxError as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
