"""Unloading a model from a real Triton until its memory is back."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest

from components.providers.triton_model import TritonModelProvider
from models.engine import part_name
from models.refusal import Refusal
from tests.triton.real_triton import GPUS, RealTriton

pytestmark = pytest.mark.triton
PROVIDER = TritonModelProvider()


def _load(triton: RealTriton, model: str, **told: Any) -> dict[str, Any]:
    triton.entry(model, gpus=GPUS[:2], mib=9000, **told)
    return PROVIDER.create(triton.props(model, gpus=GPUS[:2], claim_mib=9000.0)).outs or {}


def _used(triton: RealTriton) -> int:
    asked = [str(triton.sshd.bin / "nvidia-smi"), "--query-gpu=uuid,memory.used"]
    rows = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
    return sum(int(row.split(",")[1]) for row in rows if row.split(",")[0] in GPUS[:2])


def _until(what: Callable[[], bool], within_s: float = 10) -> None:
    give_up = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < give_up
        time.sleep(0.02)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives on, as a worker that its engine forgot."""
    process = subprocess.Popen(["sleep", "300"])
    yield process
    process.kill()
    process.wait()


def test_a_delete_ends_only_when_the_memory_is_back(triton: RealTriton) -> None:
    outs = _load(triton, "lingering", unload_s=1.5)
    assert _used(triton) > 18000
    PROVIDER.delete("x", outs)
    assert _used(triton) < 100


def test_memory_that_does_not_come_back_is_refused_with_who_holds_it(
    triton: RealTriton, sleeper: subprocess.Popen[bytes]
) -> None:
    outs = _load(triton, "leaking", leak_pid=sleeper.pid)
    with pytest.raises(Refusal) as caught:
        PROVIDER.delete("x", outs | {"unload_timeout_s": 2.0})
    assert "memory is not back after 2 s" in caught.value.cause
    assert f"pid {sleeper.pid}, 9000 MiB" in caught.value.consequence
    assert "restart triton@2.service" in caught.value.fix
    sleeper.kill()
    sleeper.wait()
    PROVIDER.delete("x", outs)


def test_another_model_on_the_same_gpus_does_not_hide_that_memory_is_back(
    triton: RealTriton,
) -> None:
    outs = _load(triton, "leaves", unload_s=2)
    triton.entry("arrives", gpus=GPUS[:2], mib=9000)
    newcomer = threading.Timer(1, triton.by_hand, ("load", "arrives"))
    newcomer.start()
    PROVIDER.delete("x", outs)
    newcomer.join()
    assert _used(triton) > 18000
    triton.by_hand("unload", "arrives")


def test_a_model_that_is_loading_is_loaded_and_then_unloaded(triton: RealTriton) -> None:
    triton.entry("midway", load_s=1.5)
    with pytest.raises(httpx.TimeoutException):
        triton.by_hand("load", "midway", timeout=0.3)
    PROVIDER.delete("x", triton.props("midway"))
    assert triton.state("midway")["reason"] == "unloaded"
    assert triton.lifetimes("midway") == ["begin", "end"]


def test_a_model_whose_entry_was_removed_is_unloaded_although_no_index_shows_it(
    triton: RealTriton,
) -> None:
    outs = _load(triton, "orphaned", unload_s=1)
    shutil.rmtree(triton.place / "models" / "orphaned")
    assert triton.state("orphaned") == {}
    PROVIDER.delete("x", outs)
    assert _used(triton) < 100


def test_a_model_whose_entry_was_removed_while_it_loads_is_unloaded_too(
    triton: RealTriton,
) -> None:
    triton.entry("unseen", load_s=2)
    loading = threading.Thread(target=triton.by_hand, args=("load", "unseen"))
    loading.start()
    _until(lambda: triton.lifetimes("unseen") == ["begin"])
    shutil.rmtree(triton.place / "models" / "unseen")
    PROVIDER.delete("x", triton.props("unseen"))
    loading.join()
    _until(lambda: triton.lifetimes("unseen") == ["begin", "end"])


def test_an_unload_waits_for_a_request_that_is_being_answered_within_its_bound(
    triton: RealTriton,
) -> None:
    outs = _load(triton, "answering", answer_s=2)
    asked = threading.Thread(
        target=triton.http,
        args=("POST", "/v2/models/answering/generate"),
        kwargs={"json": {"text_input": "Hi"}},
    )
    asked.start()
    with pytest.raises(Refusal, match="still UNLOADING after 1 s"):
        PROVIDER.delete("x", outs | {"unload_timeout_s": 1.0})
    asked.join()
    PROVIDER.delete("x", outs)


@pytest.fixture
def kept(own_triton: RealTriton) -> Iterator[dict[str, Any]]:
    """A model with a part that stays UNLOADING, as an ensemble's whose request Triton keeps."""
    outs = _load(own_triton, "kept")
    part = part_name("kept", "tensorrt_llm")
    own_triton.entry(part, answer_s=60)
    own_triton.by_hand("load", part)

    def ask() -> None:
        with suppress(httpx.TransportError):
            own_triton.http("POST", f"/v2/models/{part}/generate", json={"text_input": "Hi"})

    asked = threading.Thread(target=ask)
    asked.start()
    _until(lambda: bool(own_triton.lifetimes(part)))
    time.sleep(0.5)
    own_triton.by_hand("unload", part)
    _until(lambda: own_triton.state(part).get("state") == "UNLOADING")
    own_triton.restartable()
    yield outs | {"unload_timeout_s": 1.0}
    own_triton.kill()
    asked.join()


def test_an_ensemble_that_stays_is_ended_with_a_server_that_holds_nothing_else(
    own_triton: RealTriton, kept: dict[str, Any]
) -> None:
    again = own_triton.starts_again()
    PROVIDER.delete("x", kept)
    again.join()
    assert (own_triton.place / "asked").read_text() == "restart triton@2.service\n"
    assert _used(own_triton) < 100


def test_a_server_that_holds_another_model_is_not_restarted_for_an_ensemble_that_stays(
    own_triton: RealTriton, kept: dict[str, Any]
) -> None:
    own_triton.entry("theirs")
    own_triton.by_hand("load", "theirs")
    with pytest.raises(Refusal, match="never let go of an ensemble's request") as caught:
        PROVIDER.delete("x", kept)
    assert caught.value.consequence.endswith("was not restarted: theirs")
    assert "systemctl restart triton@2.service" in caught.value.fix
    assert own_triton.state("theirs")["state"] == "READY"


def test_a_failed_model_and_an_unknown_one_are_deleted_at_once(triton: RealTriton) -> None:
    triton.entry("failed", raise_on_load="no")
    triton.by_hand("load", "failed")
    began = time.monotonic()
    PROVIDER.delete("x", triton.props("failed"))
    PROVIDER.delete("x", triton.props("nobody"))
    assert time.monotonic() - began < 5


def test_a_model_whose_process_was_killed_is_deleted_within_seconds(triton: RealTriton) -> None:
    outs = _load(triton, "killed")
    os.kill(triton.stubs("killed")[0], signal.SIGKILL)
    began = time.monotonic()
    PROVIDER.delete("x", outs)
    assert time.monotonic() - began < 9
    assert _used(triton) < 100


@pytest.mark.parametrize("state", ["inactive", "failed", "unknown"])
def test_a_server_whose_unit_has_stopped_holds_nothing(own_triton: RealTriton, state: str) -> None:
    own_triton.kill()
    own_triton.unit_is(state)
    own_triton.key_file.unlink()
    PROVIDER.delete("x", own_triton.props("any"))


def test_a_server_that_is_starting_with_the_model_is_waited_for(own_triton: RealTriton) -> None:
    own_triton.entry("boot", load_s=1.5)
    own_triton.kill()
    own_triton.start("--load-model=boot")
    PROVIDER.delete("x", own_triton.props("boot"))
    assert own_triton.state("boot")["reason"] == "unloaded"


def test_a_unit_that_gives_up_while_it_is_waited_for_holds_nothing(own_triton: RealTriton) -> None:
    own_triton.kill()
    own_triton.unit_is("activating")
    stopper = threading.Timer(1, own_triton.unit_is, ("failed",))
    stopper.start()
    PROVIDER.delete("x", own_triton.props("any"))
    stopper.join()


def test_a_unit_that_never_comes_up_is_refused_within_the_bound(own_triton: RealTriton) -> None:
    own_triton.kill()
    own_triton.unit_is("activating")
    with pytest.raises(Refusal, match="its unit is activating"):
        PROVIDER.delete("x", own_triton.props("any", unload_timeout_s=1.0))
