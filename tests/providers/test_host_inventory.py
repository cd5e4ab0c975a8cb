"""A host that is not set up is asked through a real sshd, and is left as it was."""

from __future__ import annotations

import tempfile
from pathlib import Path

from components.providers.host_inventory import ask
from components.providers.ssh import Session
from components.providers.ssh_shared import on_host
from models.host import Host
from models.inventory import Inventory
from tests.declarations import SECTIONS, plan_of
from tests.providers.local_sshd import LocalSshd


def test_a_host_that_is_not_set_up_answers_and_nothing_is_left_behind(
    sshd: LocalSshd, tmp_path: Path
) -> None:
    (tmp_path / "weights/broken").mkdir(parents=True)
    declared = plan_of(SECTIONS).hosts["alpha"]
    host = Host.model_validate(declared.model_dump() | {"data_dir": str(tmp_path)})
    before = set(Path(tempfile.gettempdir()).iterdir())

    async def work(session: Session) -> Inventory:
        return await ask(session, host)

    found = on_host(sshd.ssh, work)
    assert found.berth_host == ""
    assert found.free_mib > 0
    assert list(found.weights) == ["broken"]
    left = {path.name for path in set(Path(tempfile.gettempdir()).iterdir()) - before}
    assert not {name for name in left if "berth-host" in name}
