"""What is claimed, refused and released, asked of the program itself."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.host.conftest import GPUS, L4_MIB, BerthHost, record

ANNA, BOB = "berth/anna/shop", "berth/bob/desk"


def test_a_claim_is_listed_with_its_owner_and_since_when(host: BerthHost) -> None:
    answer = host.claim(ANNA, record(ANNA, 2))
    (claim,) = host.ask("claims")["claims"]
    assert answer == {"claims": [claim], "leaving": [], "conflicting": []}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", claim["since"])
    assert claim == record(
        ANNA,
        2,
        since=claim["since"],
        leaving=False,
        shared=False,
        engine="triton-vllm",
        instead_of="",
        left_by="",
    )
    gpus = host.ask("claims")["gpus"]
    assert gpus[2] == {"uuid": GPUS[2], "index": 2, "cuda_mib": L4_MIB}


def test_the_loser_is_told_who_has_the_gpu_and_has_nothing(host: BerthHost) -> None:
    host.claim(ANNA, record(ANNA, 2))
    since = host.ask("claims")["claims"][0]["since"]
    refused = host.claim(BOB, record(BOB, 1), record(BOB, 2))["refused"]
    assert f"GPU 2 ({GPUS[2]})" in refused["cause"]
    assert f"{ANNA}: guard-shop-2 (small on triton@2) since {since}" in refused["cause"]
    assert BOB in refused["cause"]
    assert refused["at"] == "host alpha"
    assert all(refused.values())
    assert host.names() == ["berth/anna/shop.small/triton@2"]


def test_a_claim_made_again_keeps_its_time(host: BerthHost) -> None:
    before = host.claim(ANNA, record(ANNA, 2))
    again = host.claim(ANNA, record(ANNA, 2, since="1970-01-01T00:00:00Z"))
    assert again == before


def test_what_a_holder_gives_up_leaves_and_still_counts_against_others(host: BerthHost) -> None:
    host.claim(ANNA, record(ANNA, 2))
    answer = host.claim(ANNA, record(ANNA, 3))
    assert [claim["name"] for claim in answer["leaving"]] == ["berth/anna/shop.small/triton@2"]
    assert answer["conflicting"] == []
    refused = host.claim(BOB, record(BOB, 2))["refused"]
    assert "about to leave" in refused["cause"]
    host.ask("release", {"holder": ANNA, "names": [answer["leaving"][0]["name"]]})
    assert "refused" not in host.claim(BOB, record(BOB, 2))


def test_models_that_swap_their_gpus_are_told_who_has_to_leave_first(host: BerthHost) -> None:
    host.claim(ANNA, record(ANNA, 1, name="a/1"), record(ANNA, 2, name="b/2"))
    swapped = record(ANNA, 2, name="a/2"), record(ANNA, 1, name="b/1")
    answer = host.claim(ANNA, *swapped)
    assert sorted(answer["conflicting"]) == ["a/1", "b/2"]
    # Killed before anything was unloaded, and run again.
    assert host.claim(ANNA, *swapped) == answer


def test_budgets_share_a_gpu_until_they_do_not_fit(host: BerthHost) -> None:
    half = L4_MIB // 2
    assert "claims" in host.claim(ANNA, record(ANNA, 0, mib=half, shared=True))
    assert "claims" in host.claim(BOB, record(BOB, 0, mib=half, shared=True))
    more = host.claim("berth/c/c", record("berth/c/c", 0, mib=1, shared=True))
    assert f"CUDA can give {L4_MIB} MiB" in more["refused"]["consequence"]
    alone = host.claim("berth/c/c", record("berth/c/c", 0, mib=1))
    assert "refused" in alone


def test_more_than_a_gpu_has_is_refused_though_it_is_empty(host: BerthHost) -> None:
    assert "refused" in host.claim(ANNA, record(ANNA, 0, mib=L4_MIB + 1))
    assert host.names() == []


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"roles": ["sentry"]}, "role sentry"),
        ({"demo": "shop"}, "demo shop"),
        ({"name": "berth/anna/shop.small/triton@0"}, "claim berth/anna/shop.small/triton@0"),
    ],
)
def test_names_are_one_holders_on_a_host(host: BerthHost, more: dict[str, Any], says: str) -> None:
    host.claim(ANNA, record(ANNA, 0, roles=["sentry"]))
    refused = host.claim(BOB, record(BOB, 1, **more))["refused"]
    assert says in refused["cause"]
    assert ANNA in refused["cause"]


def test_a_gpu_that_is_not_there_is_refused_with_those_that_are(host: BerthHost) -> None:
    refused = host.claim(ANNA, record(ANNA, 0, gpus=[{"uuid": "GPU-9", "mib": 1}]))["refused"]
    assert "GPU-9" in refused["cause"]
    assert f"2: {GPUS[2]}" in refused["fix"]


def test_releasing_gives_back_the_state_before_and_may_be_repeated(host: BerthHost) -> None:
    host.claim(ANNA, record(ANNA, 2))
    before = host.ask("claims")
    host.claim(BOB, record(BOB, 0), record(BOB, 1))
    released = host.ask("release", {"holder": BOB, "names": None})["released"]
    assert len(released) == 2
    assert host.ask("release", {"holder": BOB, "names": None}) == {"released": []}
    assert host.ask("claims") == before


def test_a_holder_releases_nothing_of_others(host: BerthHost) -> None:
    host.claim(ANNA, record(ANNA, 2))
    host.ask("release", {"holder": BOB, "names": host.names()})
    assert host.names() == ["berth/anna/shop.small/triton@2"]


def test_a_person_releases_by_exact_name_and_is_told_whose_it_was(host: BerthHost) -> None:
    host.claim(ANNA, record(ANNA, 2))
    wrong = host.run("release", "--name", "triton@2")
    assert wrong.returncode == 1
    assert "claims here: berth/anna/shop.small/triton@2" in wrong.stderr
    done = host.run("release", "--name", "berth/anna/shop.small/triton@2")
    assert (done.returncode, host.names()) == (0, [])
    assert ANNA in done.stdout


def test_a_person_can_hold_a_gpu_and_give_it_back(host: BerthHost) -> None:
    name = host.run("hold", "--gpu", "2", "--mib", "8000", "--owner", "anna: notebook").stdout
    again = host.run("hold", "--gpu", "2", "--mib", "8000", "--owner", "anna: notebook").stdout
    assert name == again == "held/2-1\n"
    assert "anna: notebook" in host.claim(BOB, record(BOB, 2))["refused"]["cause"]
    host.run("release", "--name", name.strip())
    assert "claims" in host.claim(BOB, record(BOB, 2))
    held = host.run("hold", "--gpu", "2", "--owner", "anna: notebook")
    assert held.returncode == 1
    assert BOB in held.stderr
    assert "there: 0, 1, 2, 3" in host.run("hold", "--gpu", "7", "--owner", "anna").stderr


def test_claims_are_a_table_for_people(host: BerthHost) -> None:
    host.claim(ANNA, record(ANNA, 2, 3, mib=9000))
    head, *rows = host.run("claims", "--text").stdout.splitlines()
    assert head.split()[:5] == ["NAME", "OWNER", "ROLES", "GPU", "MIB"]
    assert [row.split()[1:6] for row in rows] == [
        [ANNA, "guard-shop-2", gpu, "9000", "no"] for gpu in ("2", "3")
    ]


@pytest.mark.parametrize(
    "asked",
    [
        [],
        {},
        {"holder": ANNA},
        {"holder": ANNA, "claims": [3]},
        {"holder": ANNA, "claims": [{"name": "a"}]},
        {"holder": ANNA, "claims": [record(ANNA, 0, roles=[1])]},
        {"holder": ANNA, "claims": [record(ANNA, 0, http_port="x")]},
        {"holder": ANNA, "claims": [record(ANNA, 0, gpus=[{"uuid": GPUS[0], "mib": -1}])]},
        {"holder": ANNA, "claims": [record(ANNA, 0, gpus=[{"uuid": GPUS[0]}] * 2)]},
        {"holder": ANNA, "claims": [record(ANNA, 0), record(ANNA, 0)]},
        {"holder": ANNA, "claims": [record(BOB, 0)]},
    ],
)
def test_what_is_no_claim_is_refused_in_words(host: BerthHost, asked: object) -> None:
    assert host.ask("claim", asked)["refused"]["cause"]
    assert host.names() == []


def test_what_is_no_json_is_refused_in_words(host: BerthHost) -> None:
    assert "not JSON" in host.run("claim", stdin="{").stdout
