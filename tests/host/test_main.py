"""What the host's own faults become for the one who asked."""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path

import pytest

from host import __main__ as program
from host import routes
from host.gateway import Gateway


def test_a_disk_that_is_full_is_told_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_gateway: Gateway, _asked: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "revision"))

    asked = tmp_path / "asked"
    asked.write_text('{"demo": "desk"}')
    monkeypatch.setitem(routes.ACTIONS, "show", full)
    monkeypatch.setattr(sys, "argv", ["berth-host", "routes", "show"])
    with asked.open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert program.main() == 0
    refused = json.loads(capsys.readouterr().out)["refused"]
    assert refused["cause"] == f"{tmp_path}/revision: No space left on device"
    assert "run this again" in refused["fix"]
