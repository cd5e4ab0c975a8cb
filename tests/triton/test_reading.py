"""What a refresh sees of a model in a real Triton."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest

from components.providers.fallback import READY
from components.providers.triton_model import TritonModelProvider
from models.refusal import Refusal
from tests.providers.local_sshd import free_port
from tests.triton.real_triton import RealTriton

pytestmark = pytest.mark.triton
PROVIDER = TritonModelProvider()


def _outs(triton: RealTriton, model: str, **changed: Any) -> dict[str, Any]:
    serving = {"state": READY, "reason": "", "attempt": "", "since": "now"}
    outs: dict[str, Any] = triton.props(model, **changed) | serving | {"loaded_digest": "d1"}
    return outs


def test_a_model_that_nobody_loaded_is_gone(triton: RealTriton) -> None:
    triton.entry("fresh")
    assert PROVIDER.read("x", _outs(triton, "fresh")).id == ""


def test_a_reload_that_failed_shows_as_drift_although_the_index_says_ready(
    triton: RealTriton,
) -> None:
    triton.entry("half", digest="d1")
    triton.by_hand("load", "half")
    triton.entry("half", digest="d2", raise_on_load="no")
    assert triton.by_hand("load", "half").status_code == 400
    assert triton.state("half")["state"] == "READY"
    declared = triton.props("half", "d2")
    outs = declared | {"state": "READY", "loaded_digest": "d2"}
    read = PROVIDER.read("x", outs)
    assert read.inputs == declared | {"config_digest": "d1"}
    assert (read.outs or {})["loaded_digest"] == "d1"
    assert PROVIDER.diff("x", read.outs or {}, declared).changes


def test_a_model_loaded_by_hand_with_its_own_configuration_shows_as_drift(
    triton: RealTriton,
) -> None:
    triton.entry("manual")
    config = triton.place / "models" / "manual" / "config.pbtxt"
    config.write_text(config.read_text().partition("parameters")[0])
    triton.by_hand("load", "manual")
    read = PROVIDER.read("x", _outs(triton, "manual"))
    assert (read.inputs or {})["config_digest"] == "none"


def test_a_touched_configuration_is_no_drift(triton: RealTriton) -> None:
    triton.entry("touched")
    triton.by_hand("load", "touched")
    os.utime(triton.place / "models" / "touched" / "config.pbtxt")
    triton.by_hand("load", "touched")
    outs = _outs(triton, "touched")
    assert PROVIDER.read("x", outs).outs == outs
    assert triton.lifetimes("touched") == ["begin"]


def test_a_killed_backend_process_is_gone_although_triton_says_ready(triton: RealTriton) -> None:
    triton.entry("killed")
    triton.by_hand("load", "killed")
    os.kill(triton.stubs("killed")[0], signal.SIGKILL)
    assert triton.state("killed")["state"] == "READY"
    assert triton.http("GET", "/v2/models/killed/ready").status_code == 200
    assert PROVIDER.read("x", _outs(triton, "killed")).id == ""


def test_a_model_that_is_busy_is_not_gone(
    triton: RealTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    triton.entry("busy", answer_s=4)
    triton.by_hand("load", "busy")
    outs = _outs(triton, "busy")
    assert PROVIDER.read("x", outs).outs == outs
    assert "taken to be as it was" in capsys.readouterr().err


def test_a_model_that_is_loading_is_not_gone_and_wants_an_update(triton: RealTriton) -> None:
    triton.entry("coming", load_s=2)
    with pytest.raises(Exception, match="timed out"):
        triton.by_hand("load", "coming", timeout=0.3)
    outs = _outs(triton, "coming")
    read = PROVIDER.read("x", outs)
    assert (read.outs or {})["state"] == "LOADING"
    assert PROVIDER.diff("x", read.outs or {}, triton.props("coming")).changes
    updated = PROVIDER.update("x", read.outs or {}, triton.props("coming"))
    assert (updated.outs or {})["state"] == "READY"
    assert triton.lifetimes("coming") == ["begin"]


def test_a_read_is_quick(triton: RealTriton) -> None:
    triton.entry("quick")
    triton.by_hand("load", "quick")
    outs = _outs(triton, "quick")
    began = time.monotonic()
    PROVIDER.read("x", outs)
    assert time.monotonic() - began < 3  # well below 1 s on a machine with nothing else to do


def test_after_a_restart_nothing_is_loaded_and_an_update_of_nothing_loads_it(
    own_triton: RealTriton,
) -> None:
    own_triton.entry("lost")
    outs = PROVIDER.create(own_triton.props("lost")).outs or {}
    own_triton.kill()
    own_triton.start()
    own_triton.wait_live()
    assert own_triton.state("lost") == {"name": "lost"}
    assert PROVIDER.read("x", outs).id == ""
    assert (PROVIDER.create(own_triton.props("lost")).outs or {})["state"] == "READY"


def test_a_server_that_is_down_makes_the_model_gone_and_not_the_refresh_fail(
    own_triton: RealTriton,
) -> None:
    own_triton.kill()
    (own_triton.place / "control-key").unlink()
    assert PROVIDER.read("x", _outs(own_triton, "any")).id == ""


def test_a_host_that_cannot_be_reached_is_refused_and_not_taken_for_gone(
    triton: RealTriton,
) -> None:
    ssh = triton.sshd.ssh | {"port": free_port()}
    with pytest.raises(Refusal, match="cannot reach the host"):
        PROVIDER.read("x", _outs(triton, "any", ssh=ssh))
    with pytest.raises(Refusal, match="cannot reach the host"):
        PROVIDER.delete("x", _outs(triton, "any", ssh=ssh))
