"""Drives a stack through the Pulumi CLI, whatever an earlier run left behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from models.refusal import Refusal
from ops import config_file
from ops.environment import pulumi_environment
from ops.lock import wait_for_others


class Stack:
    """One stack of a project."""

    def __init__(self, project: Path, name: str) -> None:
        self.project = project
        self.name = name
        self.environment = pulumi_environment(project)

    def pulumi(self, *arguments: str, quiet: bool = False) -> subprocess.CompletedProcess[str]:
        """Run `pulumi` on this stack; its output is the person's unless `quiet`."""
        command = ["pulumi", *arguments, "--stack", self.name, "--non-interactive"]
        try:
            return subprocess.run(
                command,
                cwd=self.project,
                env=self.environment,
                text=True,
                capture_output=quiet,
                check=False,
            )
        except FileNotFoundError:
            raise Refusal(
                "`pulumi` is not on PATH",
                consequence="Nothing was done.",
                fix="run `tools/setup`, or install Pulumi.",
            ) from None

    def exists(self) -> bool:
        """Whether the backend knows the stack."""
        return self.pulumi("stack", "export", quiet=True).returncode == 0

    def prepare(self) -> None:
        """Make the stack where it is not there, and clear the lock of a run that was killed."""
        backend = self.environment.get("PULUMI_BACKEND_URL", "")
        if wait_for_others(backend, self.name, say):
            say("the last run was killed; its lock is released")
            self.pulumi("cancel", "--yes", quiet=True)
        if not self.exists():
            made = self._init()
            if made.returncode != 0:
                raise Refusal(
                    f"stack {self.name} cannot be made: {made.stderr.strip()}",
                    consequence="Nothing was done.",
                )

    def _init(self) -> subprocess.CompletedProcess[str]:
        config_file.arguments(self.project, self.name)  # Refuses a stack without a config.
        command = ["pulumi", "stack", "init", self.name, "--no-select", "--non-interactive"]
        return subprocess.run(
            command,
            cwd=config_file.scratch(self.project),
            env=self.environment,
            text=True,
            capture_output=True,
            check=False,
        )

    def up(self, extra: Sequence[str] = ()) -> int:
        """Bring the stack up, judged by the policy pack; the CLI's exit status."""
        self.prepare()
        return self.pulumi("up", "--yes", *self._judged(), *self._config(), *extra).returncode

    def preview(self, extra: Sequence[str] = ()) -> int:
        """Show what `up` would do, judged by the policy pack; the CLI's exit status."""
        self.prepare()
        return self.pulumi("preview", *self._judged(), *self._config(), *extra).returncode

    def down(self) -> int:
        """Take the stack down and forget it; the CLI's exit status."""
        if not self.exists():
            say(f"stack {self.name} is not there")
            return 0
        self.prepare()
        status = self.pulumi("destroy", "--yes", "--skip-preview", *self._config()).returncode
        if status != 0:
            return status
        return self.pulumi("stack", "rm", "--yes", "--preserve-config").returncode

    def outputs(self) -> int:
        """Print the outputs as JSON; the CLI's exit status."""
        return self.pulumi("stack", "output", "--json").returncode

    def _config(self) -> list[str]:
        return config_file.arguments(self.project, self.name)

    def _judged(self) -> list[str]:
        return ["--policy-pack", str(self.project / "policy")]


def say(what: str) -> None:
    """Tell the person, beside what goes to standard output."""
    print(f"[berth] {what}", file=sys.stderr, flush=True)
