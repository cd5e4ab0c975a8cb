"""The scripts that a host runs: exact where a word matters, and run by a real shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from components.renderers import berth_host, host_setup
from tests.declarations import SECTIONS, plan_of

PLAN = plan_of(SECTIONS)
ALPHA = [instance for instance in PLAN.instances if instance.host_name == "alpha"]
WIDE = PLAN.instances[1]
START = host_setup.preamble(
    WIDE, "triton-wide-01-abc", "0123", "berth/dev"
) + host_setup.start_instance(WIDE)


@pytest.mark.parametrize(
    "script",
    [
        host_setup.setup(PLAN.hosts["alpha"], ALPHA),
        host_setup.teardown(PLAN.hosts["alpha"], "berth/dev"),
        START,
        host_setup.stop_instance(WIDE),
    ],
    ids=["setup", "teardown", "start", "stop"],
)
def test_every_script_is_one_that_sh_can_read(script: str) -> None:
    done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0


def test_a_key_is_made_once_for_each_instance_and_readable_by_root_alone() -> None:
    script = host_setup.setup(PLAN.hosts["alpha"], ALPHA)
    for name in ("0", "wide-01"):
        assert f"[ -s /etc/berth/instances/{name}.key ] || (umask 0377;" in script
    assert "b0.key" not in script


def test_a_key_goes_once_its_instance_is_neither_declared_nor_there(tmp_path: Path) -> None:
    there = ("0.key", "0.env", "wide-01.key", "gone.key", "going.key", "going.env")
    for name in there:
        (tmp_path / name).touch()
    script = host_setup.setup(PLAN.hosts["alpha"], ALPHA)
    loop = script[script.index("for k in") :]
    loop = loop[: loop.index("done") + len("done")].replace("/etc/berth/instances", str(tmp_path))
    subprocess.run(["sh", "-eu", "-c", loop], check=True)
    assert {file.name for file in tmp_path.iterdir()} == {*there} - {"gone.key"}


def test_a_host_that_still_holds_a_demos_entries_is_not_taken_down() -> None:
    script = host_setup.teardown(PLAN.hosts["alpha"], "berth/dev")
    assert script.index("exit 1") < script.index("rm -f")


def test_a_ledger_with_others_claims_keeps_everything_where_it_is() -> None:
    script = host_setup.teardown(PLAN.hosts["alpha"], "berth/dev")
    assert script.index("dismantle --stack berth/dev") < script.index("rm -f")
    assert script.index("rm -rf /etc/berth /var/lib/berth") < script.index(
        "rm -f /usr/local/bin/berth-host"
    )


def test_what_a_gate_would_refuse_is_told_before_the_server_is_restarted() -> None:
    assert START.index("berth-host gate triton@wide-01\n") < START.index("systemctl restart")


def berth_host_part(target: Path) -> str:
    """The lines of `setup` that install berth-host, with everything below another root."""
    script = host_setup.setup(PLAN.hosts["alpha"], ALPHA)
    functions = script[script.index("install_file() {") : script.index("}\n") + 2]
    part = script[script.index("mkdir -p /usr/local/bin") :]
    part = part[: part.index("berth-host.new\nchanged=") + len("berth-host.new\n")]
    return (
        (functions + part)
        .replace("/usr/local/bin", f"{target}/bin")
        .replace("/var/lib/berth", str(target))
    )


def test_berth_host_is_installed_whole_and_left_alone_where_it_is_right(tmp_path: Path) -> None:
    def install() -> None:
        subprocess.run(["sh", "-eu"], input=berth_host_part(tmp_path), text=True, check=True)

    install()
    file = tmp_path / "bin/berth-host"
    assert file.read_bytes() == berth_host.build()
    assert file.stat().st_mode & 0o777 == 0o755
    before = file.stat()
    install()
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    file.write_text("changed by hand")
    install()
    assert file.read_bytes() == berth_host.build()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["berth-host", "bin"]


def test_a_python_that_fails_leaves_the_installed_berth_host(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/berth-host").write_text("as it was")
    script = "python3() { return 1; }\n" + berth_host_part(tmp_path)
    done = subprocess.run(["sh", "-eu"], input=script, text=True, check=False)
    assert done.returncode != 0
    assert (tmp_path / "bin/berth-host").read_text() == "as it was"


def test_root_needs_no_sudo() -> None:
    assert host_setup.from_stdin("root") == "/bin/sh -eu"
    assert (
        host_setup.as_argument("berth", "echo 'a'") == "sudo -n /bin/sh -euc 'echo '\"'\"'a'\"'\"''"
    )
