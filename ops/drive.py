"""Drives a stack through the Pulumi CLI, whatever an earlier run left behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from components.providers.fallback import FAILED
from config.files import stack_sections
from models.refusal import Refusal
from ops import config_file
from ops.changes import would_change
from ops.environment import pulumi_environment
from ops.lock import wait_for_others
from ops.unrecorded import unmake

INVENTORY = "BERTH_INVENTORY"
"""What the program takes in place of `berth:inventory` for one run."""


class Stack:
    """One stack of a project."""

    def __init__(self, project: Path, name: str) -> None:
        self.project = project
        self.name = name
        self.environment = pulumi_environment(project)

    def pulumi(self, *arguments: str, quiet: bool = False) -> subprocess.CompletedProcess[str]:
        """Run `pulumi` on this stack; its output is the person's unless `quiet`."""
        return self._run(*arguments, "--stack", self.name, quiet=quiet)

    def _run(
        self, *arguments: str, quiet: bool = False, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        # Ctrl-C reaches the engine too, which ends what is under way and writes its state; killing
        # it at once, as `subprocess` would, leaves both half-way.
        before = signal.signal(signal.SIGINT, lambda *_: say("interrupted: the engine winds up"))
        try:
            return subprocess.run(
                ["pulumi", *arguments, "--non-interactive"],
                cwd=cwd or self.project,
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
        finally:
            signal.signal(signal.SIGINT, before)

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
        folder = config_file.scratch(self.project)
        return self._run("stack", "init", self.name, "--no-select", quiet=True, cwd=folder)

    def up(self) -> int:
        """Bring the stack up, judged by the policy pack before anything is touched.

        A preview that finds nothing to change ends it. A model that fails does not stop the others.

        Returns:
            The CLI's exit status.
        """
        self.prepare()
        self.environment[INVENTORY] = "live"  # Whatever changes a host asks it.
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "events.json"
            # The Automation API reads the engine's events the same way.
            self.environment["PULUMI_DEBUG_COMMANDS"] = "true"
            status = self._judged("preview", "--suppress-outputs", "--event-log", str(log))
            if status != 0:
                return status
            if not would_change(log):
                say(f"stack {self.name} is as declared: nothing to change")
                return 0
        return self._judged("up", "--yes", "--skip-preview", "--continue-on-error")

    def retry(self, claim_name: str) -> int:
        """Try a model again that had failed and left its place to its fallback.

        Returns:
            The CLI's exit status.

        Raises:
            Refusal: it has not failed.
        """
        self.prepare()
        exported = json.loads(self.pulumi("stack", "export", quiet=True).stdout)
        found = [
            each["urn"]
            for each in exported.get("deployment", {}).get("resources") or []
            if (each.get("outputs") or {}).get("claim_name") == claim_name
            and each["outputs"].get("state") == FAILED
        ]
        if not found:
            raise Refusal(
                "its model has not failed: there is nothing to try again",
                consequence="Nothing was done.",
                fix="`berth status` shows what serves; `berth up` tries what has changed.",
            )
        self.environment[INVENTORY] = "live"
        replaced = [word for urn in found for word in ("--replace", urn)]
        return self._judged("up", "--yes", "--skip-preview", "--continue-on-error", *replaced)

    def reasons(self) -> dict[str, str]:
        """Role → why its fallback serves, from the stack's outputs; empty where none are known."""
        said = self.pulumi("stack", "output", "--json", quiet=True)
        if said.returncode != 0:
            return {}
        roles = json.loads(said.stdout).get("roles") or {}
        return {role: str(its.get("reason") or "") for role, its in roles.items()}

    def preview(self, recorded: bool | None = None) -> int:
        """Show what `up` would do, judged by the policy pack.

        Args:
            recorded: whether hosts are known from their recorded inventories, so that none is
                reached; None: as the stack says.

        Returns:
            The CLI's exit status.
        """
        self.prepare()
        if recorded is not None:
            self.environment[INVENTORY] = "recorded" if recorded else "live"
        declared = stack_sections(self.project, self.name).get("inventory")
        asks = self.environment.get(INVENTORY, declared) != "recorded"
        # A refresh would ask every host what its resources are.
        return self._judged("preview", *([] if asks else ["--refresh=false"]))

    def down(self) -> int:
        """Take the stack down and forget it; the CLI's exit status."""
        if not self.exists():
            say(f"stack {self.name} is not there")
            return 0
        self.prepare()
        for what in unmake(json.loads(self.pulumi("stack", "export", quiet=True).stdout)):
            say(f"a killed run had begun to make {what}: it is gone")
        status = self.pulumi(
            "destroy", "--yes", "--skip-preview", "--suppress-progress", *self._config()
        ).returncode
        if status != 0:
            return status
        return self.pulumi("stack", "rm", "--yes", "--preserve-config").returncode

    def forget(self) -> int:
        """Forget the stack and what it had made; the CLI's exit status."""
        if not self.exists():
            say(f"stack {self.name} is not there")
            return 0
        return self.pulumi("stack", "rm", "--force", "--yes", "--preserve-config").returncode

    def outputs(self) -> int:
        """Print the outputs as JSON; the CLI's exit status."""
        return self.pulumi("stack", "output", "--json").returncode

    def keys(self) -> dict[str, str]:
        """Name → key of the stack's demo, in clear.

        Raises:
            Refusal: the stack was never brought up, or cannot be read.
        """
        shown = self.pulumi("stack", "output", "--json", "--show-secrets", quiet=True)
        if shown.returncode != 0:
            said = shown.stderr.strip().splitlines()
            raise Refusal(
                f"the outputs of stack {self.name} cannot be read: {said[-1] if said else ''}",
                fix=f"`berth up {self.name}` first; its passphrase must be the one of that run.",
            )
        found: dict[str, str] = json.loads(shown.stdout).get("keys", {})
        return found

    def _config(self) -> list[str]:
        return config_file.arguments(self.project, self.name)

    def _judged(self, *arguments: str) -> int:
        pack = ["--policy-pack", str(self.project / "policy"), "--suppress-progress"]
        return self.pulumi(*arguments, *pack, *self._config()).returncode


def say(what: str) -> None:
    """Tell the person, beside what goes to standard output."""
    print(f"[berth] {what}", file=sys.stderr, flush=True)
