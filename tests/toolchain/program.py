"""A small Pulumi project with a file backend, driven through the CLI as a person would."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from tests.toolchain.conftest import Toolchain


@dataclass(frozen=True)
class Program:
    toolchain: Toolchain
    folder: Path

    def write(self, source: str) -> None:
        (self.folder / "state").mkdir(exist_ok=True)
        (self.folder / "Pulumi.yaml").write_text(
            f"name: small\nruntime:\n  name: python\n  options:\n    virtualenv: {sys.prefix}\n",
            encoding="utf-8",
        )
        (self.folder / "__main__.py").write_text(textwrap.dedent(source), encoding="utf-8")

    def pulumi(self, *arguments: str) -> tuple[int, str]:
        """The exit status and all that was said; never a question, never a colour."""
        env = {
            "PULUMI_BACKEND_URL": f"file://{self.folder}/state",
            "PULUMI_CONFIG_PASSPHRASE": "only for this test",
        }
        options = ("--non-interactive", "--color", "never")
        ran = self.toolchain.run(*arguments, *options, cwd=self.folder, env=env)
        return ran.returncode, ran.stdout + ran.stderr

    def must(self, *arguments: str) -> str:
        code, said = self.pulumi(*arguments)
        assert code == 0, said
        return said
