"""Loading and reloading a model in a real Triton, through the provider."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from typing import Any

import httpx
import pytest

from components.providers import berth_host
from components.providers.fallback import READY
from components.providers.triton_model import TritonModelProvider
from models.refusal import Refusal
from tests.triton.real_triton import GPUS, RealTriton

pytestmark = pytest.mark.triton
PROVIDER = TritonModelProvider()


def _create(props: dict[str, Any]) -> dict[str, Any]:
    return PROVIDER.create(props).outs or {}


def _refused(props: dict[str, Any]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        PROVIDER.create(props)
    return caught.value


def _serving(since: str) -> dict[str, str]:
    return {"state": READY, "reason": "", "attempt": "", "since": since}


def test_a_model_lives_from_create_to_delete_on_its_own_outputs(triton: RealTriton) -> None:
    triton.entry("life", digest="d1", gpus=GPUS[:1], mib=9000)
    inputs = triton.props("life", gpus=GPUS[:1], claim_mib=9000.0)
    created = PROVIDER.create(inputs)
    outs = created.outs or {}
    assert created.id == "sandbox:triton@2/life"
    since = outs["since"]
    assert since
    assert outs == inputs | _serving(since) | {"loaded_digest": "d1"}
    assert PROVIDER.diff(created.id, outs, inputs).changes is False

    read = PROVIDER.read(created.id, outs)
    assert (read.id, read.outs, read.inputs) == (created.id, outs, inputs)

    triton.entry("life", digest="d2", gpus=GPUS[:1], mib=9000)
    news = inputs | {"config_digest": "d2", "entry_revision": "r2"}
    assert PROVIDER.diff(created.id, outs, news).replaces == []
    updated = PROVIDER.update(created.id, outs, news).outs or {}
    assert updated["loaded_digest"] == "d2"

    PROVIDER.delete(created.id, updated)
    assert triton.state("life")["state"] == "UNAVAILABLE"
    assert PROVIDER.read(created.id, updated).id == ""
    PROVIDER.delete(created.id, updated)
    # Never two engines at once: a reload by Triton itself would be begin, begin, end, end.
    assert triton.lifetimes("life") == ["begin", "end", "begin", "end"]


def test_a_model_that_is_loaded_as_declared_is_kept(triton: RealTriton) -> None:
    triton.entry("kept")
    _create(triton.props("kept"))
    _create(triton.props("kept"))
    assert triton.lifetimes("kept") == ["begin"]


def test_a_model_that_a_killed_run_loaded_has_the_canary_before_it(triton: RealTriton) -> None:
    triton.entry("unseen", answer="")
    triton.by_hand("load", "unseen")
    assert "its answer is empty" in _refused(triton.props("unseen")).cause
    assert triton.state("unseen")["state"] == "UNAVAILABLE"


def test_a_model_loaded_with_another_configuration_is_unloaded_first(triton: RealTriton) -> None:
    triton.entry("other", digest="d1")
    triton.by_hand("load", "other")
    triton.entry("other", digest="d2")
    assert _create(triton.props("other", "d2"))["loaded_digest"] == "d2"
    assert triton.lifetimes("other") == ["begin", "end", "begin"]


def test_a_load_that_a_killed_run_began_is_waited_for_and_kept(triton: RealTriton) -> None:
    triton.entry("begun", load_s=1.5)
    with pytest.raises(httpx.TimeoutException):
        triton.by_hand("load", "begun", timeout=0.3)
    assert triton.state("begun")["state"] == "LOADING"
    _create(triton.props("begun"))
    assert triton.lifetimes("begun") == ["begin"]


def test_a_model_that_is_still_unloading_is_waited_for(triton: RealTriton) -> None:
    triton.entry("leaving", unload_s=1)
    _create(triton.props("leaving"))
    triton.by_hand("unload", "leaving")
    _create(triton.props("leaving"))
    assert triton.lifetimes("leaving") == ["begin", "end", "begin"]


def test_a_changed_entry_with_the_same_digest_is_loaded_again(triton: RealTriton) -> None:
    triton.entry("touched")
    outs = _create(triton.props("touched"))
    PROVIDER.update("x", outs, triton.props("touched", entry_revision="r2"))
    assert triton.lifetimes("touched") == ["begin", "end", "begin"]


def test_what_is_no_matter_of_the_engine_changes_without_touching_the_server(
    triton: RealTriton,
) -> None:
    serving = _serving("2026-11-21T08:00:00.000+00:00") | {"loaded_digest": "d1"}
    outs = triton.props("nobody") | serving
    news = triton.props("nobody", load_timeout_s=99.0, claim_mib=7.0, unit="other.service")
    assert PROVIDER.diff("x", outs, news).changes
    assert PROVIDER.update("x", outs, news).outs == news | serving


def test_a_killed_backend_process_is_healed_by_unloading_and_loading(triton: RealTriton) -> None:
    triton.entry("killed")
    _create(triton.props("killed"))
    os.kill(triton.stubs("killed")[0], signal.SIGKILL)
    outs = _create(triton.props("killed"))
    assert triton.lifetimes("killed") == ["begin", "begin"]
    assert triton.http("POST", "/v2/models/killed/generate", json={"text_input": "Hi"}).is_success
    PROVIDER.delete("x", outs)
    assert triton.state("killed")["reason"] == "unloaded"


def test_a_failed_load_is_refused_in_tritons_words_and_nothing_stays(triton: RealTriton) -> None:
    triton.entry("oom", raise_on_load="CUDA out of memory. Tried", gpus=GPUS[:1], mib=9000)
    refusal = _refused(triton.props("oom", gpus=GPUS[:1], claim_mib=9000.0))
    assert "does not fit into the memory" in refusal.cause
    assert "CUDA out of memory. Tried" in refusal.consequence
    assert "Nothing of the model is left loaded" in refusal.consequence
    assert triton.state("oom")["state"] == "UNAVAILABLE"


def test_a_missing_entry_is_refused_with_what_writes_it(triton: RealTriton) -> None:
    assert "pulumi up --refresh" in _refused(triton.props("absent")).fix


def test_an_entry_changed_meanwhile_is_not_served_under_the_declared_name(
    triton: RealTriton,
) -> None:
    triton.entry("swapped", digest="theirs")
    refusal = _refused(triton.props("swapped", "ours"))
    assert "theirs instead of ours" in refusal.cause
    assert triton.state("swapped")["state"] == "UNAVAILABLE"


def test_a_model_that_loads_and_cannot_answer_is_refused_and_unloaded(triton: RealTriton) -> None:
    triton.entry("mute", raise_on_answer="EngineDeadError")
    refusal = _refused(triton.props("mute"))
    assert "EngineDeadError" in refusal.cause
    assert "systemctl restart triton@2.service" in refusal.fix
    assert triton.state("mute")["state"] == "UNAVAILABLE"


def test_a_model_that_never_answers_is_refused_within_its_bound(triton: RealTriton) -> None:
    triton.entry("slow", answer_s=3)
    refusal = _refused(triton.props("slow", canary_timeout_s=1.0))
    assert "it does not answer: nothing within 1 s" in refusal.cause
    assert triton.state("slow")["state"] == "UNAVAILABLE"


def test_a_load_beyond_its_bound_is_refused_and_unloaded_when_it_ends(triton: RealTriton) -> None:
    triton.entry("endless", load_s=4)
    began = time.monotonic()
    refusal = _refused(triton.props("endless", load_timeout_s=1.0))
    assert "was not loaded within 1 s" in refusal.cause
    assert "load_timeout_s" in refusal.fix
    assert time.monotonic() - began < 5
    give_up = time.monotonic() + 15
    while triton.state("endless").get("reason") != "unloaded":
        assert time.monotonic() < give_up
        time.sleep(0.1)


def test_ten_loads_at_once_are_serialised_and_the_server_stays_healthy(triton: RealTriton) -> None:
    names = [f"many{number}" for number in range(10)]
    for name in names:
        triton.entry(name, load_s=0.2)
    failures: list[Exception] = []
    loading_at_once: list[int] = []
    probes: list[float] = []
    done = threading.Event()

    def load(name: str) -> None:
        try:
            _create(triton.props(name))
        except Exception as error:  # noqa: BLE001 - shown by the assertion
            failures.append(error)

    def watch() -> None:
        while not done.is_set():
            began = time.monotonic()
            triton.http("GET", "/v2/health/live", timeout=5)
            probes.append(time.monotonic() - began)
            rows = triton.http("POST", "/v2/repository/index", json={}).json()
            loading_at_once.append(sum(row.get("state") == "LOADING" for row in rows))

    watcher = threading.Thread(target=watch)
    watcher.start()
    threads = [threading.Thread(target=load, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    watcher.join()
    assert failures == []
    assert max(loading_at_once) == 1
    assert max(probes) < 2


def test_a_wrong_control_key_is_refused_with_a_restart_and_is_not_shown(
    triton: RealTriton,
) -> None:
    wrong = triton.place / "wrong-key"
    wrong.write_text("an0ther\n")
    refusal = _refused(triton.props("any", control_key_file=str(wrong)))
    assert str(wrong) in refusal.cause
    assert "restart triton@2.service" in refusal.fix
    assert "an0ther" not in str(refusal)


def test_a_missing_control_key_is_refused_with_its_path(triton: RealTriton) -> None:
    refusal = _refused(triton.props("any", control_key_file="/nowhere/key"))
    assert "/nowhere/key cannot be read on the host: No such file" in refusal.cause


def test_a_server_that_is_just_starting_is_waited_for(own_triton: RealTriton) -> None:
    own_triton.entry("early")
    own_triton.kill()
    starter = threading.Timer(1, own_triton.start)
    starter.start()
    assert _create(own_triton.props("early"))["state"] == "READY"
    starter.join()


def test_a_unit_that_failed_is_refused_at_once(own_triton: RealTriton) -> None:
    own_triton.kill()
    own_triton.unit_is("failed")
    began = time.monotonic()
    assert "its unit is failed" in _refused(own_triton.props("any")).cause
    assert time.monotonic() - began < 5


def test_a_server_that_dies_while_loading_is_refused(own_triton: RealTriton) -> None:
    own_triton.entry("fatal", load_s=10)
    killer = threading.Timer(1.5, own_triton.kill)
    killer.start()
    assert "the connection broke off" in _refused(own_triton.props("fatal")).cause
    killer.join()


@pytest.fixture
def clients(triton: RealTriton, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Inputs of a model that a gateway knows: what it closes is told among the models' lifetimes,
    by the name of the load."""
    triton.sshd.executable(
        "berth-host",
        f'#!/bin/sh\n[ "$2" = close ] && echo "close $(grep -o "in-[a-z]*")" >> '
        f"{triton.place}/lifetimes\n"
        """echo '{"closed": ["architect"], "left": 0, "claims": []}'\n""",
    )
    monkeypatch.setattr(berth_host, "PROGRAM", "berth-host")
    return {"holder": "berth/dev/shop"}


def test_a_model_that_its_server_has_lost_gets_no_client_before_its_canary(
    triton: RealTriton, clients: dict[str, Any]
) -> None:
    triton.entry("in-lost")
    assert _create(triton.props("in-lost", claim_name="in-lost", **clients))["state"] == READY
    assert triton.lifetimes("in-lost") == ["close", "begin"]


def test_one_that_is_unloaded_to_be_loaded_again_is_closed_once_and_before(
    triton: RealTriton, clients: dict[str, Any]
) -> None:
    triton.entry("in-hand", digest="theirs")
    triton.by_hand("load", "in-hand")
    triton.entry("in-hand")
    _create(triton.props("in-hand", claim_name="in-hand", **clients))
    assert triton.lifetimes("in-hand") == ["begin", "close", "end", "begin"]


def test_one_that_is_only_looked_at_keeps_its_clients(
    triton: RealTriton, clients: dict[str, Any]
) -> None:
    triton.entry("in-use")
    triton.by_hand("load", "in-use")
    about = {"claim_name": "in-use", **clients}
    outs = _create(triton.props("in-use", **about))
    PROVIDER.update("x", outs, triton.props("in-use", wanted="again", **about))
    PROVIDER.read("x", outs)
    assert triton.lifetimes("in-use") == ["begin"]


def test_a_gateway_that_cannot_be_changed_keeps_no_model_from_loading(
    triton: RealTriton, clients: dict[str, Any]
) -> None:
    refused = {"refused": {"cause": "the gateway does not answer"}}
    triton.sshd.executable("berth-host", f"#!/bin/sh\necho '{json.dumps(refused)}'\n")
    triton.entry("in-dark")
    assert _create(triton.props("in-dark", claim_name="in-dark", **clients))["state"] == READY
