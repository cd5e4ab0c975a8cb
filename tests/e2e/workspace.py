"""A project directory of a test's own: the program as it is, other stacks, state of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import yaml

from ops.environment import pulumi_environment
from tests.e2e.host import ROOT, TestHost

PROGRAM = ("models", "config", "engines", "components", "policy", "host", "catalog", "releases",
           "ops", "tools", "__main__.py", "Pulumi.yaml")  # fmt: skip
TIMEOUT_S = 400
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Workspace:
    """A copy of the program, with a file backend and a passphrase of its own."""

    def __init__(self, folder: Path, host: TestHost) -> None:
        self.folder = folder
        self.host = host
        for name in PROGRAM:
            source = ROOT / name
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, folder / name)
        (folder / ".venv").symlink_to(ROOT / ".venv")
        shutil.copytree(host.directory, folder / ".berth" / "sandbox")
        (folder / "state").mkdir()
        (folder / "passphrase").write_text("for this test only")
        self.environment = pulumi_environment(ROOT) | {
            "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(folder / "passphrase"),
            "PYTHONPATH": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def end(self) -> None:
        """End what a killed engine left running: its plugins outlive it."""
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if str(self.folder).encode() in (process / "cmdline").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)

    def write_stack(self, name: str, sections: dict[str, Any]) -> None:
        """Declare a stack."""
        config = {f"berth:{key}": value for key, value in sections.items()}
        (self.folder / f"Pulumi.{name}.yaml").write_text(
            yaml.safe_dump({"config": config}, sort_keys=False)
        )

    def write_model(self, name: str, **entry: Any) -> None:
        """Declare a catalog entry."""
        (self.folder / "catalog" / f"{name}.yaml").write_text(yaml.safe_dump(entry))

    def change_model(self, name: str, **entry: Any) -> None:
        """Change a catalog entry."""
        file = self.folder / "catalog" / f"{name}.yaml"
        file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | entry))

    def restore_model(self, name: str) -> None:
        """Declare a catalog entry as it is shipped."""
        shutil.copy(ROOT / "catalog" / f"{name}.yaml", self.folder / "catalog")

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start `berth …` as the leader of a process group."""
        return subprocess.Popen(
            [self.folder / ".venv/bin/python", "-m", "ops", *words],
            cwd=self.folder,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def berth(self, *words: str) -> tuple[int, str]:
        """Run `berth …`; its exit status and all that it printed."""
        process = self.start(*words)
        try:
            said, _ = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            raise
        return process.returncode, COLOUR.sub("", said)

    def pulumi(self, *words: str) -> tuple[int, str]:
        """Run plain `pulumi …`, as someone who does without `berth`."""
        done = subprocess.run(
            ["pulumi", *words, "--non-interactive", "--suppress-progress"],
            cwd=self.folder,
            env=self.environment,
            text=True,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def init(self, stack: str) -> None:
        """Make a stack that is not declared yet, for plain `pulumi`."""
        command = ["pulumi", "stack", "init", stack, "--no-select", "--non-interactive"]
        subprocess.run(
            command, cwd=self.folder, env=self.environment, timeout=TIMEOUT_S, check=True
        )

    def up(self, stack: str) -> str:
        """Bring a stack up; fails the test where that fails."""
        status, said = self.berth("up", stack)
        assert status == 0, said
        return said

    def down(self, stack: str) -> str:
        """Take a stack down; fails the test where that fails."""
        status, said = self.berth("down", stack)
        assert status == 0, said
        return said

    def outputs(self, stack: str) -> dict[str, Any]:
        """The stack's outputs."""
        done = subprocess.run(
            [self.folder / ".venv/bin/python", "-m", "ops", "outputs", stack],
            cwd=self.folder,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            timeout=TIMEOUT_S,
            check=True,
        )
        outputs: dict[str, Any] = json.loads(done.stdout)
        return outputs

    def state(self, stack: str) -> str:
        """The stack's state file, as it lies on the disk."""
        file = self.folder / "state/.pulumi/stacks/berth" / f"{stack}.json"
        return file.read_text()


def reference(host: TestHost) -> dict[str, Any]:
    """The sections of the shipped `dev` stack, at this host's ports."""
    config = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())["config"]
    sections = {key.removeprefix("berth:"): value for key, value in config.items()}
    declared = sections["hosts"]["sandbox"]
    declared["ssh"]["port"] = host.description["ssh"]["port"]
    if port := host.description["gateway"]["port"]:
        declared["gateway"]["url"] = f"https://127.0.0.1:{port}"
    else:
        del declared["gateway"]
    return sections


def only(sections: dict[str, Any], *instances: str, **roles: tuple[str, str]) -> dict[str, Any]:
    """The sections with just these instances and roles (role=(model, instance)); no gateway."""
    for each in sections["hosts"].values():
        each.pop("gateway", None)
    kept = {name: sections["instances"][name] for name in instances}
    changed = sections | {"instances": kept}
    changed["demo"] = {
        "name": "reference",
        "roles": {role: {"model": m, "instance": i} for role, (m, i) in roles.items()},
    }
    if not roles:
        del changed["demo"]
    return changed


def reachable(host: TestHost, *instances: str, **roles: tuple[str, str]) -> dict[str, Any]:
    """As `only`, with the gateway that the reference layout has."""
    sections = reference(host)
    gateway = sections["hosts"]["sandbox"]["gateway"]
    made = only(sections, *instances, **roles)
    made["hosts"]["sandbox"]["gateway"] = gateway
    return made
