"""How the unit of a server with one model for life is ended, whatever it is just doing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from components.providers import served_unit
from components.providers.ssh_shared import on_host
from tests.providers.host_ledger import GPUS
from tests.providers.local_sshd import LocalSshd

UNIT = "shop-architect.service"
SYSTEMCTL = """#!/bin/sh
cd {place}
case "$1" in
show) cat unit ;;
is-active) sed -n 's/^ActiveState=//p' unit ;;
*) echo "$@" >> asked; printf 'LoadState=loaded\\nActiveState=inactive\\n' > unit ;;
esac
"""


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSshd]:
    """A host whose systemd has one unit, which ends when it is told to."""
    server = LocalSshd(tmp_path_factory.mktemp("sshd"))
    server.executable("systemctl", SYSTEMCTL.format(place=server.place))
    server.executable("nvidia-smi", "#!/bin/sh\nexit 9\n")
    yield server
    server.stop()


def ended(reached: LocalSshd, load: str, active: str, file: str) -> list[str]:
    """What systemd is asked to do with a unit that it says this of."""
    asked: Path = reached.place / "asked"
    asked.unlink(missing_ok=True)
    said = f"LoadState={load}\nActiveState={active}\nUnitFileState={file}\n"
    (reached.place / "unit").write_text(said)
    on_host(reached.ssh, lambda session: served_unit.end(session, UNIT, GPUS[:1], 20309, 5.0))
    return asked.read_text().splitlines() if asked.exists() else []


@pytest.mark.parametrize("active", ["active", "activating", "deactivating", "failed", "inactive"])
def test_a_unit_that_runs_or_would_come_back_is_stopped_for_good(
    reached: LocalSshd, active: str
) -> None:
    assert ended(reached, "loaded", active, "enabled") == [f"disable --now --quiet {UNIT}"]


def test_one_that_was_started_by_hand_is_stopped_too(reached: LocalSshd) -> None:
    assert ended(reached, "loaded", "active", "disabled") == [f"disable --now --quiet {UNIT}"]


@pytest.mark.parametrize(
    ("load", "active", "file"),
    [("not-found", "inactive", ""), ("loaded", "failed", "disabled")],
)
def test_one_that_is_not_there_or_over_is_left_alone(
    reached: LocalSshd, load: str, active: str, file: str
) -> None:
    assert ended(reached, load, active, file) == []
