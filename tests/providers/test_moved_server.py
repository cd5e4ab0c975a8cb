"""Servers of one model's own that go to other GPUs: what is ended, when, and who may take them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components.providers import berth_host, ledger
from components.providers.claims import ClaimsProvider
from components.providers.served_model import ServedModelProvider
from components.providers.ssh_shared import on_host
from components.providers.vacating import clear, in_its_way
from models.claim_record import ClaimedGpu, ClaimRecord
from models.refusal import Refusal
from tests.providers.host_ledger import CUDA_MIB, GPUS, HOLDER, HostLedger, record
from tests.providers.local_sshd import LocalSshd

# A unit runs where the file of its name is; one that is asked to start says so, and ends again.
SYSTEMCTL = """#!/bin/sh
for unit; do :; done
unit=PLACE/units/${unit%.service}
case "$*" in
  is-active*) [ -e $unit ] && echo active || { echo inactive; exit 3; } ;;
  *--now*) echo "$*" >> PLACE/asked; rm -f $unit ;;
  *NRestarts*) echo 0 ;;
  show*)
    [ -e $unit ] && state=active || state=inactive
    echo ActiveState=$state; [ -e $unit ] && echo UnitFileState=enabled ;;
esac
"""


class Alpha:
    """A host with two servers, through one `up` of their demo after the other."""

    def __init__(self, sshd: LocalSshd, place: Path) -> None:
        self.ledger = HostLedger(place)
        self.about: dict[str, Any] = {"ssh": sshd.ssh, "host": "alpha", "holder": HOLDER}
        self.units = sshd.place / "units"
        self.units.mkdir(exist_ok=True)
        self.journal = sshd.place / "asked"
        self.journal.write_text("")
        self.claims: dict[str, Any] = {}

    def claim(self, *asked: ClaimRecord) -> None:
        """What `up` does first, after its refresh; nothing where nothing changes."""
        wanted = self.about | {"claims": [ledger.declared(each) for each in asked]}
        provider = ClaimsProvider()
        olds = provider.read("x", self.claims).outs or {} if self.claims else {"claims": []}
        if provider.diff("x", olds, wanted).changes:
            self.claims = provider.update("x", {"holder": HOLDER, **olds}, wanted).outs or {}

    def vacate(self, load: ClaimRecord) -> None:
        """What a load does once everything else of it is on the host."""
        uuids = [gpu.uuid for gpu in load.gpus]
        of = in_its_way(load.name, uuids, load.http_port, self.claims["conflicting"])
        on_host(self.about["ssh"], lambda session: clear(session, self.about | {"vacates": of}))

    def model(self, load: ClaimRecord) -> dict[str, Any]:
        """The inputs of a server's resource."""
        return self.about | {
            "unit": f"{load.instance}.service",
            "engine": "vllm",
            "port": 1.0,
            "model": load.model,
            "incarnation": "c1/0",
            "prepare": f"echo prepare {load.instance} >> {self.journal}\n",
            "gpus": [gpu.uuid for gpu in load.gpus],
            "claim_mib": 20309.0,
            "owner": HOLDER,
            "claim_name": load.name,
            "load_timeout_s": 5.0,
            "unload_timeout_s": 5.0,
            "canary_timeout_s": 5.0,
        }

    def start(self, load: ClaimRecord) -> None:
        """Its server; here it ends as soon as it is started."""
        with pytest.raises(Refusal, match="does not load"):
            ServedModelProvider().create(self.model(load))

    def asked(self) -> list[str]:
        """What was asked of systemd, and the preparations."""
        return self.journal.read_text().splitlines()


def served(model: str, gpu: int) -> ClaimRecord:
    on = f"shop-{model}"
    port = {"big": 8201, "small": 8202, "aide": 8203}[model]
    it = record(model, gpu, instance=on, control_key_file="", http_port=port)
    return replace(it, engine="vllm")


OLD, NEW = (served("small", 2), served("big", 3)), (served("small", 3), served("big", 2))
STOP_SMALL = "disable --now --quiet shop-small.service"
STOP_BIG = "disable --now --quiet shop-big.service"


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSshd]:
    server = LocalSshd(tmp_path_factory.mktemp("sshd"))
    server.executable("systemctl", SYSTEMCTL.replace("PLACE", str(server.place)))
    server.executable("journalctl", "#!/bin/sh\n")
    yield server
    server.stop()


@pytest.fixture
def alpha(reached: LocalSshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Alpha:
    """Both of its units run, as they are claimed."""
    host = Alpha(reached, tmp_path)
    monkeypatch.setattr(berth_host, "PROGRAM", str(host.ledger.program))
    host.claim(*OLD)
    for each in OLD:
        (host.units / each.instance).touch()
    return host


def stranger(alpha: Alpha, gpu: int) -> None:
    """Another stack claims the whole of a GPU."""
    holder = "berth/desk/desk"
    wanted = record("guard", gpu, holder=holder, mib=CUDA_MIB)
    claims = [ledger.declared(wanted)]
    ClaimsProvider().create(alpha.about | {"holder": holder, "claims": claims})


def test_nobody_gets_the_gpu_of_a_server_that_moved_before_it_has_ended(alpha: Alpha) -> None:
    moved = served("small", 1)
    alpha.claim(moved, OLD[1])
    assert alpha.asked() == []
    with pytest.raises(Refusal, match=r"GPU 2 .*about to leave"):
        stranger(alpha, 2)
    ServedModelProvider().delete("x", alpha.model(OLD[0]) | {"state": "READY"})
    assert alpha.asked() == [STOP_SMALL]
    stranger(alpha, 2)


def test_a_run_that_was_killed_after_it_claimed_ends_nothing_before_its_time(alpha: Alpha) -> None:
    moved = served("small", 1)
    alpha.claim(moved, OLD[1])
    for _ in range(2):
        alpha.claim(moved, OLD[1])
        alpha.vacate(moved)
    assert alpha.asked() == []
    assert len(alpha.ledger.records()) == 3


def test_a_second_up_changes_nothing(alpha: Alpha) -> None:
    alpha.claim(*NEW)
    for load in NEW:
        alpha.vacate(load)
    before = alpha.claims
    assert len(alpha.ledger.records()) == 2
    alpha.claim(*NEW)
    assert alpha.claims is before


def test_servers_that_exchange_gpus_start_once_the_other_one_has_ended(alpha: Alpha) -> None:
    alpha.claim(*NEW)
    alpha.vacate(NEW[0])
    assert alpha.asked() == [STOP_BIG]
    ServedModelProvider().delete("x", alpha.model(OLD[0]) | {"state": "READY"})
    alpha.start(NEW[0])
    assert alpha.asked()[:3] == [STOP_BIG, STOP_SMALL, "prepare shop-small"]


def test_a_server_that_started_anew_is_not_ended_for_the_place_that_it_left(alpha: Alpha) -> None:
    alpha.claim(*NEW)
    alpha.vacate(NEW[0])
    ServedModelProvider().delete("x", alpha.model(OLD[0]) | {"state": "READY"})
    (alpha.units / "shop-small").touch()
    before = alpha.asked()
    alpha.vacate(NEW[1])
    assert alpha.asked() == before


def test_whoever_of_several_ends_a_server_first_it_is_ended_once(alpha: Alpha) -> None:
    alpha.claim(*NEW)
    together = threading.Barrier(4)

    def end(number: int) -> None:
        together.wait()
        if number:
            alpha.vacate(NEW[1])
        else:
            ServedModelProvider().delete("x", alpha.model(OLD[0]) | {"state": "READY"})

    enders = [threading.Thread(target=end, args=(number,)) for number in range(4)]
    for ender in enders:
        ender.start()
    for ender in enders:
        ender.join()
    assert alpha.asked() == [STOP_SMALL]


def test_a_server_that_no_resource_knows_any_more_ends_before_it_starts_elsewhere(
    alpha: Alpha,
) -> None:
    alpha.claim(served("small", 1), OLD[1])
    alpha.start(served("small", 1))
    assert alpha.asked()[:2] == [STOP_SMALL, "prepare shop-small"]
    assert sorted(alpha.ledger.records()) == sorted(each.name for each in OLD)


def test_one_that_moved_back_before_it_had_moved_goes_on(alpha: Alpha) -> None:
    before = alpha.ledger.records()
    alpha.claim(*NEW)
    alpha.claim(*OLD)
    for load in OLD:
        alpha.vacate(load)
    assert alpha.asked() == []
    assert alpha.ledger.records() == before


def test_a_destroy_in_the_midst_of_a_move_ends_both_and_leaves_no_claim(alpha: Alpha) -> None:
    alpha.claim(*NEW)
    alpha.vacate(NEW[0])
    for load in OLD:
        ServedModelProvider().delete("x", alpha.model(load) | {"state": "READY"})
    ClaimsProvider().delete("x", alpha.claims)
    assert sorted(alpha.asked()) == [STOP_BIG, STOP_SMALL]
    assert alpha.ledger.records() == {}


def test_a_role_that_goes_while_it_moves_leaves_no_claim(alpha: Alpha) -> None:
    alpha.claim(served("small", 1), OLD[1])
    alpha.claim(OLD[1])
    ServedModelProvider().delete("x", alpha.model(OLD[0]) | {"state": "READY"})
    assert sorted(alpha.ledger.records()) == [OLD[1].name]


def test_one_that_was_to_take_more_gpus_and_did_not_is_settled_again(alpha: Alpha) -> None:
    before = alpha.ledger.records()
    wide = replace(OLD[0], gpus=tuple(ClaimedGpu(GPUS[index], 20309) for index in (1, 2)))
    alpha.claim(wide, OLD[1])
    alpha.claim(*OLD)
    assert alpha.ledger.records() == before


def test_a_unit_is_ended_for_another_one_that_has_its_port(alpha: Alpha) -> None:
    other = replace(served("aide", 1), http_port=OLD[0].http_port)
    alpha.claim(other, OLD[1])
    alpha.vacate(other)
    assert alpha.asked() == [STOP_SMALL]


def test_a_state_of_before_places_were_kept_is_as_declared(alpha: Alpha) -> None:
    wanted = alpha.about | {"claims": [ledger.declared(each) for each in OLD]}
    assert all("left_by" not in claim for claim in wanted["claims"])
    olds = wanted | {"leaving": [], "conflicting": [ledger.declared(NEW[0])]}
    assert not ClaimsProvider().diff("x", olds, wanted).changes
