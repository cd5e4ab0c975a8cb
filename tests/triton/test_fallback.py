"""A model that does not serve and the one that stands in for it, in a real Triton."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from components.providers import berth_host, ledger
from components.providers.claims import ClaimsProvider
from components.providers.triton_model import TritonModelProvider
from models.claim_record import ClaimRecord
from models.refusal import Refusal
from tests.providers.host_ledger import HOLDER, HostLedger, record
from tests.triton.real_triton import GPUS, RealTriton

pytestmark = pytest.mark.triton
PROVIDER = TritonModelProvider()
CLAIMS = ClaimsProvider()
MIB = 9000
HOPELESS = "this model answers nobody"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostLedger:
    made = HostLedger(tmp_path)
    monkeypatch.setattr(berth_host, "PROGRAM", str(made.program))
    return made


def claim_of(triton: RealTriton, name: str, gpu: int = 0, role: str = "architect") -> ClaimRecord:
    place: dict[str, Any] = {"http_port": triton.port, "control_key_file": str(triton.key_file)}
    held = record(name, gpu, instance=f"triton@{gpu}", mib=MIB, **place)
    return replace(held, roles=(role,))


def props(triton: RealTriton, held: ClaimRecord, **changed: Any) -> dict[str, Any]:
    """Inputs of the claim's model."""
    about: dict[str, Any] = {
        "gpus": [gpu.uuid for gpu in held.gpus],
        "claim_mib": float(MIB),
        "holder": HOLDER,
        "claim_name": held.name,
        "instance": held.instance,
        "roles": list(held.roles),
        "fallback": None,
        "wanted": "always",
    }
    return triton.props(held.entry, **(about | changed))


def write(triton: RealTriton, held: ClaimRecord, digest: str = "d1", **told: Any) -> None:
    gpus = [gpu.uuid for gpu in held.gpus]
    triton.entry(held.entry, digest=digest, **({"gpus": gpus, "mib": MIB} | told))


def used(triton: RealTriton) -> int:
    """MiB that the stand-ins hold on the first GPU."""
    files = (triton.place / "memory").glob(f"{GPUS[0]},*")
    return sum(int(file.name.split(",")[2]) for file in files)


class Pair:
    """A model and its fallback on the same GPU, as a run of the engine drives them."""

    def __init__(self, triton: RealTriton, name: str, fallback_gpu: int = 0) -> None:
        self.triton = triton
        self.first = claim_of(triton, name)
        second = claim_of(triton, f"{name}-stand-in", fallback_gpu)
        self.second = replace(second, instead_of=self.first.name)
        write(triton, self.second)
        self.states: dict[str, dict[str, Any]] = {}
        self.gives_back: list[dict[str, Any]] | None = None

    def up(self, digest: str = "d1", **changed: Any) -> None:
        """Bring both up, the first one first, and nothing that has not changed."""
        declared = ledger.declared(self.second)
        news = {"fallback": declared, "config_digest": digest, "entry_revision": digest}
        self._apply("first", props(self.triton, self.first, **(news | changed)))
        wanted = self.states["first"]["attempt"]
        about = props(self.triton, self.second, wanted=wanted, gives_back=self.gives_back)
        self._apply("second", about)

    def _apply(self, which: str, news: dict[str, Any]) -> None:
        olds = self.states.get(which)
        if olds is None:
            self.states[which] = PROVIDER.create(news).outs or {}
        elif PROVIDER.diff("x", olds, news).changes:
            self.states[which] = PROVIDER.update("x", olds, news).outs or {}
        assert not PROVIDER.diff("x", self.states[which], news).changes

    @property
    def serving(self) -> tuple[str, str]:
        return self.states["first"]["state"], self.states["second"]["state"]

    def lifetimes(self) -> tuple[list[str], list[str]]:
        return (
            self.triton.lifetimes(self.first.entry),
            self.triton.lifetimes(self.second.entry),
        )


def test_a_fallback_that_is_not_needed_is_not_loaded(triton: RealTriton) -> None:
    pair = Pair(triton, "well")
    write(triton, pair.first)
    pair.up()
    assert pair.serving == ("READY", "STANDBY")
    assert pair.lifetimes() == (["begin"], [])
    read = PROVIDER.read("x", pair.states["second"])
    assert (read.id, read.outs) == ("x", pair.states["second"])
    PROVIDER.delete("x", pair.states["first"])


def test_a_model_that_fails_its_canary_leaves_its_gpu_to_the_fallback(triton: RealTriton) -> None:
    pair = Pair(triton, "mute")
    write(triton, pair.first, raise_on_answer=HOPELESS)
    pair.up()
    assert pair.serving == ("FAILED", "READY")
    assert HOPELESS in pair.states["first"]["reason"]
    assert "triton@0: shop.mute is loaded, but" in pair.states["first"]["reason"]
    assert pair.lifetimes() == (["begin", "end"], ["begin"])
    assert used(triton) == MIB
    PROVIDER.delete("x", pair.states["second"])
    PROVIDER.delete("x", pair.states["first"])
    assert used(triton) == 0


def test_it_is_left_at_that_until_something_of_it_changes(triton: RealTriton) -> None:
    pair = Pair(triton, "patient")
    write(triton, pair.first, raise_on_load="CUDA out of memory. Tried")
    pair.up()
    attempt = pair.states["first"]["attempt"]
    pair.states["first"] = PROVIDER.read("x", pair.states["first"]).outs or {}
    pair.up(owner="whoever")
    assert pair.serving == ("FAILED", "READY")
    assert pair.states["first"]["attempt"] == attempt
    assert pair.lifetimes() == (["begin", "end"], ["begin"])
    PROVIDER.delete("x", pair.states["second"])


def test_put_right_it_takes_its_place_again_and_never_beside_the_fallback(
    triton: RealTriton,
) -> None:
    pair = Pair(triton, "mended")
    write(triton, pair.first, raise_on_answer=HOPELESS)
    pair.up()
    write(triton, pair.first, digest="d2")
    pair.up("d2")
    assert pair.serving == ("READY", "STANDBY")
    assert pair.states["first"]["reason"] == ""
    assert pair.lifetimes() == (["begin", "end", "begin"], ["begin", "end"])
    assert used(triton) == MIB
    PROVIDER.delete("x", pair.states["first"])


def test_tried_again_in_vain_it_leaves_the_place_to_the_fallback_again(triton: RealTriton) -> None:
    pair = Pair(triton, "hopeless")
    write(triton, pair.first, raise_on_answer=HOPELESS)
    pair.up()
    write(triton, pair.first, digest="d2", raise_on_answer="and now this")
    pair.up("d2")
    assert pair.serving == ("FAILED", "READY")
    assert "and now this" in pair.states["first"]["reason"]
    assert pair.lifetimes() == (["begin", "end"] * 2, ["begin", "end", "begin"])
    PROVIDER.delete("x", pair.states["second"])


def test_a_fallback_on_gpus_of_its_own_serves_while_the_model_is_tried_again(
    triton: RealTriton,
) -> None:
    pair = Pair(triton, "apart", fallback_gpu=1)
    write(triton, pair.first, raise_on_answer=HOPELESS)
    pair.up()
    write(triton, pair.first, digest="d2", raise_on_answer=HOPELESS)
    pair.up("d2")
    assert pair.serving == ("FAILED", "READY")
    assert pair.lifetimes()[1] == ["begin"]
    PROVIDER.delete("x", pair.states["second"])


def test_its_clients_are_led_back_before_it_is_unloaded(
    triton: RealTriton, monkeypatch: pytest.MonkeyPatch
) -> None:
    triton.sshd.executable(
        "berth-host",
        f'#!/bin/sh\n[ "$2" = put ] && echo "$2 $(cat)" >> {triton.place}/lifetimes\n'
        """echo '{"closed": [], "left": 0, "claims": []}'\n""",
    )
    monkeypatch.setattr(berth_host, "PROGRAM", "berth-host")
    pair = Pair(triton, "led", fallback_gpu=1)
    back = {"demo": "shop", "role": "architect", "adapter": {}, "key_files": {}}
    pair.gives_back = [back | {"route": {"retry_after_s": 10.0}}]
    write(triton, pair.first, raise_on_answer=HOPELESS)
    pair.up()
    write(triton, pair.first, digest="d2")
    pair.up("d2")
    assert pair.serving == ("READY", "STANDBY")
    rows = (triton.place / "lifetimes").read_text().splitlines()
    done = [row for row in rows if row.startswith("put") or f" {pair.second.entry} " in row]
    assert [row.split()[0] for row in done] == ["begin", "put", "end"]
    assert json.loads(done[1].removeprefix("put ")) == back | {"route": {"retry_after_s": 10}}
    PROVIDER.delete("x", pair.states["first"])


def test_a_model_that_dies_in_its_first_answer_is_tried_again_once_it_is_mended(
    own_triton: RealTriton,
) -> None:
    pair = Pair(own_triton, "dying")
    write(own_triton, pair.first, die_on_answer=True)
    pair.up()
    assert pair.serving == ("FAILED", "READY")
    write(own_triton, pair.first, digest="d2")
    began = time.monotonic()
    pair.up("d2")
    assert pair.serving == ("READY", "STANDBY")
    assert time.monotonic() - began < 20


def test_one_that_says_nothing_does_not_serve(triton: RealTriton) -> None:
    pair = Pair(triton, "silent")
    write(triton, pair.first, answer="")
    pair.up()
    assert pair.serving == ("FAILED", "READY")
    assert "its answer is empty" in pair.states["first"]["reason"]
    PROVIDER.delete("x", pair.states["second"])


def test_one_that_takes_more_than_it_has_claimed_does_not_serve(triton: RealTriton) -> None:
    pair = Pair(triton, "greedy")
    write(triton, pair.first, mib=MIB + 1537)
    pair.up()
    assert pair.serving == ("FAILED", "READY")
    assert f"{GPUS[0]}: {MIB + 1537} MiB instead of {MIB}" in pair.states["first"]["reason"]
    assert used(triton) == MIB
    PROVIDER.delete("x", pair.states["second"])


def test_one_whose_server_is_down_does_not_serve(own_triton: RealTriton) -> None:
    pair = Pair(own_triton, "down")
    own_triton.kill()
    own_triton.unit_is("failed")
    declared = ledger.declared(pair.second)
    outs = PROVIDER.create(props(own_triton, pair.first, fallback=declared)).outs or {}
    assert outs["state"] == "FAILED"
    assert "its unit is failed" in outs["reason"]


def killed_when(triton: RealTriton, ripe: Callable[[], bool]) -> threading.Thread:
    """End the server, and all its processes, as soon as something is so; it is started again."""

    def watch() -> None:
        give_up = time.monotonic() + 60
        while not ripe() and time.monotonic() < give_up:
            time.sleep(0.02)
        triton.kill()
        triton.start()

    watching = threading.Thread(target=watch)
    watching.start()
    return watching


def test_one_that_takes_its_server_down_as_it_loads_leaves_its_gpu_to_the_fallback(
    own_triton: RealTriton,
) -> None:
    pair = Pair(own_triton, "fatal")
    write(own_triton, pair.first, load_s=30)
    killing = killed_when(own_triton, lambda: bool(own_triton.lifetimes(pair.first.entry)))
    pair.up()
    killing.join()
    assert pair.serving == ("FAILED", "READY")
    assert "Triton ended as it loaded shop.fatal" in pair.states["first"]["reason"]
    assert own_triton.stubs(pair.first.entry) == []


def test_one_that_takes_its_server_down_in_its_first_answer_does_so_too(
    own_triton: RealTriton,
) -> None:
    pair = Pair(own_triton, "deadly")
    write(own_triton, pair.first, answer_s=30)
    path = f"/v2/models/{pair.first.entry}/ready"
    killing = killed_when(own_triton, lambda: own_triton.http("GET", path).is_success)
    pair.up(canary_timeout_s=20.0)
    killing.join()
    assert pair.serving == ("FAILED", "READY")
    assert own_triton.stubs(pair.first.entry) == []


def test_a_load_that_hangs_is_ended_with_a_server_that_holds_nothing_else(
    own_triton: RealTriton,
) -> None:
    pair = Pair(own_triton, "hanging")
    write(own_triton, pair.first, load_s=120)
    own_triton.restartable()
    again = own_triton.starts_again()
    pair.up(load_timeout_s=2.0)
    again.join()
    assert (own_triton.place / "asked").read_text() == "restart triton@2.service\n"
    assert pair.serving == ("FAILED", "READY")
    assert "shop.hanging was not loaded within 2 s" in pair.states["first"]["reason"]
    assert own_triton.stubs(pair.first.entry) == []


def test_one_that_a_run_before_has_left_hanging_is_ended_too(own_triton: RealTriton) -> None:
    pair = Pair(own_triton, "left")
    write(own_triton, pair.first, load_s=120)
    with pytest.raises(httpx.TimeoutException):
        own_triton.by_hand("load", pair.first.entry, timeout=0.5)
    own_triton.restartable()
    again = own_triton.starts_again()
    pair.up(load_timeout_s=1.0)
    again.join()
    assert pair.serving == ("FAILED", "READY")
    assert own_triton.stubs(pair.first.entry) == []


def test_a_server_that_holds_another_model_is_not_restarted_for_a_load_that_hangs(
    own_triton: RealTriton,
) -> None:
    pair = Pair(own_triton, "selfish")
    own_triton.entry("theirs")
    own_triton.by_hand("load", "theirs")
    write(own_triton, pair.first, load_s=120)
    own_triton.restartable()
    with pytest.raises(Refusal) as caught:
        pair.up(load_timeout_s=1.0)
    assert "It holds theirs too, so it was not restarted" in caught.value.consequence
    assert "systemctl restart triton@2.service" in caught.value.fix
    assert own_triton.state("theirs")["state"] == "READY"


def test_without_a_fallback_it_is_refused_and_says_that_nothing_serves_the_role(
    triton: RealTriton, host: HostLedger
) -> None:
    alone = claim_of(triton, "alone")
    write(triton, alone, raise_on_answer=HOPELESS)
    with pytest.raises(Refusal) as caught:
        PROVIDER.create(props(triton, alone))
    assert HOPELESS in caught.value.cause
    assert "Nothing serves architect now" in caught.value.consequence
    assert host.records() == {}


def inputs_of(triton: RealTriton, claims: list[ClaimRecord]) -> dict[str, Any]:
    """Of the resource that claims them."""
    declared = [ledger.declared(each) for each in claims]
    return {"ssh": triton.sshd.ssh, "host": "sandbox", "holder": HOLDER, "claims": declared}


def moved(
    triton: RealTriton, host: HostLedger, name: str, **told: Any
) -> tuple[dict[str, Any], Callable[[], dict[str, Any]]]:
    """A role that serves on one GPU and is declared on another: the old model, the new's load."""
    assert host.records() == {}
    old, new = claim_of(triton, name, 1), claim_of(triton, f"{name}-new", 2)
    claims = CLAIMS.create(inputs_of(triton, [old])).outs or {}
    write(triton, old)
    served = PROVIDER.create(props(triton, old)).outs or {}
    write(triton, new, **told)
    CLAIMS.update("x", claims, inputs_of(triton, [new]))
    return served, lambda: PROVIDER.create(props(triton, new)).outs or {}


def test_what_served_on_other_gpus_stays_until_its_successor_serves(
    triton: RealTriton, host: HostLedger
) -> None:
    old, load = moved(triton, host, "elsewhere", raise_on_answer=HOPELESS)
    with pytest.raises(Refusal) as caught:
        load()
    assert "elsewhere on triton@1 goes on serving architect" in caught.value.consequence
    with pytest.raises(Refusal, match="elsewhere on triton@1 is kept"):
        PROVIDER.delete("x", old)
    again = inputs_of(triton, [claim_of(triton, "elsewhere-new", 2)])
    read = CLAIMS.read("x", again).outs or {}
    CLAIMS.update("x", read, again)
    assert triton.state(old["model"])["state"] == "READY"
    assert len(host.records()) == 2
    host.call("release", "--name", old["claim_name"])
    PROVIDER.delete("x", old)


def test_it_goes_once_its_successor_serves(triton: RealTriton, host: HostLedger) -> None:
    old, load = moved(triton, host, "onward")
    new = load()
    PROVIDER.delete("x", old)
    assert triton.state(old["model"])["state"] == "UNAVAILABLE"
    assert list(host.records()) == [new["claim_name"]]
    PROVIDER.delete("x", new)
