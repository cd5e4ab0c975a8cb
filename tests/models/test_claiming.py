"""Properties of what may be claimed, whatever is asked and in whatever order."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.claim_record import ClaimedGpu, ClaimRecord
from models.claiming import Granted, grant
from models.overlap import Room
from models.refusal import Refusal

ALPHA = "alpha"
GPUS = ("G0", "G1", "G2")
MIB = 100
ROOMS = {(ALPHA, gpu): Room(index, MIB) for index, gpu in enumerate(GPUS)}
HOLDERS = ("berth/a/a", "berth/b/b", "berth/c/c")
Standing = dict[str, ClaimRecord]


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, tuple[ClaimRecord, ...]]:
    """A holder with the set that it wants."""
    holder = draw(st.sampled_from(HOLDERS))
    names = draw(st.lists(st.integers(0, 4), max_size=3, unique=True))
    return holder, tuple(
        ClaimRecord(
            name=f"{holder}/{name}",
            owner=holder,
            gpus=tuple(
                ClaimedGpu(gpu, draw(st.integers(1, MIB + 10)))
                for gpu in draw(st.lists(st.sampled_from(GPUS), min_size=1, unique=True))
            ),
            shared=draw(st.booleans()),
        )
        for name in names
    )


def claimed(standing: Standing, holder: str, asked: tuple[ClaimRecord, ...]) -> Standing | None:
    """What stands afterwards with everything that leaves gone; None where it is refused."""
    try:
        granted = grant(holder, asked, list(standing.values()), ROOMS, ALPHA, "now")
    except Refusal:
        return None
    others = {name: record for name, record in standing.items() if record.owner != holder}
    return others | {record.name: record for record in granted.claims}


def taken(standing: Standing, gpu: str) -> list[tuple[ClaimRecord, int]]:
    return [
        (record, claim.mib)
        for record in standing.values()
        for claim in record.gpus
        if claim.uuid == gpu
    ]


@given(st.lists(requests(), max_size=12))
def test_no_gpu_is_ever_exceeded_or_shared_by_one_that_must_be_alone(
    asked: list[tuple[str, tuple[ClaimRecord, ...]]],
) -> None:
    standing: Standing = {}
    for holder, records in asked:
        after = claimed(standing, holder, records)
        standing = standing if after is None else after
        for gpu in GPUS:
            here = taken(standing, gpu)
            assert sum(mib for _, mib in here) <= MIB
            assert len(here) < 2 or all(record.shared for record, _ in here)


@given(st.lists(requests(), max_size=8), requests())
def test_releasing_what_was_claimed_gives_back_the_state_before(
    asked: list[tuple[str, tuple[ClaimRecord, ...]]], more: tuple[str, tuple[ClaimRecord, ...]]
) -> None:
    standing: Standing = {}
    for holder, records in asked:
        standing = claimed(standing, holder, records) or standing
    holder, records = more
    before = {name: record for name, record in standing.items() if record.owner != holder}
    after = claimed(before, holder, records)
    if after is not None:
        released = {n: r for n, r in after.items() if n not in {record.name for record in records}}
        assert released == before
        assert claimed(released, holder, records) == after


@given(st.lists(requests(), min_size=2, max_size=3, unique_by=lambda request: request[0]))
@settings(max_examples=300)
def test_whether_a_set_stands_does_not_depend_on_the_order(
    asked: list[tuple[str, tuple[ClaimRecord, ...]]],
) -> None:
    """A set that is accepted whole in one order is accepted whole in every order."""
    outcomes = set()
    for order in permutations(asked):
        standing: Standing | None = {}
        for holder, records in order:
            standing = None if standing is None else claimed(standing, holder, records)
        outcomes.add(None if standing is None else frozenset(standing.items()))
    assert len(outcomes) == 1


@given(st.lists(requests(), max_size=6), requests())
def test_once_the_conflicting_ones_are_gone_all_that_is_left_stands_together(
    asked: list[tuple[str, tuple[ClaimRecord, ...]]], more: tuple[str, tuple[ClaimRecord, ...]]
) -> None:
    standing: Standing = {}
    for holder, records in asked:
        standing = claimed(standing, holder, records) or standing
    holder, records = more
    try:
        granted = grant(holder, records, list(standing.values()), ROOMS, ALPHA, "now")
    except Refusal:
        return
    left = {
        record.name: record
        for record in (
            *(record for record in standing.values() if record.owner != holder),
            *granted.claims,
            *(r for r in granted.leaving if r.name not in granted.conflicting),
        )
    }
    for gpu in GPUS:
        here = taken(left, gpu)
        assert sum(mib for _, mib in here) <= MIB
        assert len(here) < 2 or all(record.shared for record, _ in here)


def test_asking_again_while_old_claims_leave_names_the_same_conflicts() -> None:
    holder = HOLDERS[0]
    old = ClaimRecord("old", holder, (ClaimedGpu("G0", 60),), since="before")
    new = replace(old, name="new")
    first = grant(holder, [new], [old], ROOMS, ALPHA, "now")
    again = grant(holder, [new], [*first.claims, *first.leaving], ROOMS, ALPHA, "later")
    assert first.conflicting == ("old",)
    assert again == first


def test_of_two_that_leave_only_one_has_to_go_first_where_both_are_too_much() -> None:
    holder = HOLDERS[0]
    old = [
        ClaimRecord(name, holder, (ClaimedGpu("G0", 40),), shared=True) for name in ("old", "other")
    ]
    new = ClaimRecord("new", holder, (ClaimedGpu("G0", 30),), shared=True)
    granted = grant(holder, [new], old, ROOMS, ALPHA, "now")
    assert [record.name for record in granted.leaving] == ["old", "other"]
    assert granted.conflicting == ("other",)


def model(name: str, gpu: str = "G0", mib: int = MIB, instead_of: str = "") -> ClaimRecord:
    return ClaimRecord(name, HOLDERS[0], (ClaimedGpu(gpu, mib),), instead_of=instead_of)


def granted(asked: list[ClaimRecord], standing: list[ClaimRecord]) -> Granted:
    return grant(HOLDERS[0], asked, standing, ROOMS, ALPHA, "now")


def test_a_model_and_its_fallback_are_claimed_on_the_same_gpu() -> None:
    asked = [model("new"), model("old", instead_of="new")]
    assert [record.name for record in granted(asked, []).claims] == ["new", "old"]


def test_a_fallback_of_nothing_is_refused() -> None:
    asked = [model("old", instead_of="new")]
    with pytest.raises(Refusal, match="instead of new, which is not claimed"):
        granted(asked, [])


def test_nobody_has_a_fallback_of_anothers_model() -> None:
    standing = [replace(model("new"), name="theirs", owner=HOLDERS[1])]
    with pytest.raises(Refusal, match="instead of theirs, which is not claimed"):
        granted([model("old", instead_of="theirs")], standing)


def test_a_fallback_has_no_fallback() -> None:
    asked = [model("a"), model("b", instead_of="a"), model("c", instead_of="b")]
    with pytest.raises(Refusal, match="instead of b"):
        granted(asked, [])


def test_a_fallback_that_leaves_has_to_go_before_its_model_may_load() -> None:
    standing = [model("new"), model("old", instead_of="new")]
    assert granted([model("new")], standing).conflicting == ("old",)


def test_another_fallback_takes_the_place_only_once_the_first_has_gone() -> None:
    standing = [model("new"), model("old", instead_of="new")]
    asked = [model("new"), model("older", instead_of="new")]
    assert granted(asked, standing).conflicting == ("old",)


def served(
    name: str, *gpus: str, mib: int = MIB, port: int = 1, shared: bool = False
) -> ClaimRecord:
    """A claim of a unit that serves one model for life."""
    return ClaimRecord(
        name,
        HOLDERS[0],
        tuple(ClaimedGpu(gpu, mib) for gpu in gpus),
        roles=(name,),
        instance=f"shop-{name}",
        engine="vllm",
        http_port=port,
        shared=shared,
    )


def places(granted: Granted) -> dict[str, list[str]]:
    return {record.name: [gpu.uuid for gpu in record.gpus] for record in granted.leaving}


def test_a_server_that_moves_keeps_the_place_where_it_may_still_be() -> None:
    first = granted([served("a", "G0")], [served("a", "G1")])
    assert places(first) == {"a/former": ["G1"]}
    assert first.conflicting == ()
    assert first.leaving[0].load == "a"
    standing = [*first.claims, *first.leaving]
    assert granted([served("a", "G0")], standing) == first
    asked = replace(served("b", "G1"), owner=HOLDERS[1])
    with pytest.raises(Refusal, match=r"GPU 1 .*berth/a/a: a, about to leave"):
        grant(HOLDERS[1], [asked], standing, ROOMS, ALPHA, "now")


def test_of_two_servers_that_exchange_gpus_each_is_in_the_others_way() -> None:
    asked = [served("a", "G1"), served("b", "G0")]
    both = granted(asked, [served("a", "G0"), served("b", "G1")])
    assert both.conflicting == ("a/former", "b/former")
    one_gone = [*both.claims, *(place for place in both.leaving if place.name == "a/former")]
    assert granted(asked, one_gone).conflicting == ("a/former",)


def test_a_server_that_takes_more_gpus_or_fewer_moves_and_is_not_in_its_own_way() -> None:
    more = granted([served("a", "G0", "G1")], [served("a", "G0")])
    assert places(more) == {"a/former": ["G0"]}
    assert more.conflicting == ()
    assert granted([served("a", "G0")], [*more.claims, *more.leaving]).leaving == ()
    fewer = granted([served("a", "G0"), served("b", "G1")], [served("a", "G0", "G1")])
    assert places(fewer) == {"a/former": ["G0", "G1"]}
    assert fewer.conflicting == ("a/former",)


def test_a_server_that_is_to_be_where_it_still_is_has_left_nothing() -> None:
    moved = granted([served("a", "G0")], [replace(served("a", "G1"), since="before")])
    assert moved.claims[0].since == "now"
    back = granted([served("a", "G1")], [*moved.claims, *moved.leaving])
    assert (back.leaving, back.dropped) == ((), ("a/former",))
    assert back.claims[0].since == "before"


def test_what_a_server_has_left_goes_with_its_role() -> None:
    moved = granted([served("a", "G0")], [served("a", "G1")])
    gone = granted([], [*moved.claims, *moved.leaving])
    assert places(gone) == {"a": ["G0"], "a/former": ["G1"]}


def test_a_unit_that_leaves_its_port_to_another_one_has_to_go_before_that_starts() -> None:
    """As where a server is named after another of its roles: both budgets would fit."""
    old = served("sentry", "G2", mib=40, shared=True)
    new = served("aide", "G2", mib=40, shared=True)
    assert granted([new], [old]).conflicting == ("sentry",)
    assert granted([replace(new, http_port=2)], [old]).conflicting == ()


def test_a_unit_is_one_holders_whatever_demo_and_role_its_name_is_made_of() -> None:
    theirs = replace(served("architect", "G0"), instance="shop-eu-architect")
    mine = replace(served("eu-architect", "G1"), instance="shop-eu-architect", owner=HOLDERS[1])
    with pytest.raises(Refusal, match=r"unit shop-eu-architect of berth/b/b is taken here by"):
        grant(HOLDERS[1], [mine], [theirs], ROOMS, ALPHA, "now")
    triton = [replace(each, instance="triton@0", engine="triton-vllm") for each in (theirs, mine)]
    assert grant(HOLDERS[1], triton[1:], triton[:1], ROOMS, ALPHA, "now").claims


GPU_SETS = st.lists(st.sampled_from(GPUS), min_size=1, unique=True)


@given(st.lists(st.one_of(st.tuples(GPU_SETS, GPU_SETS), st.sampled_from(("a", "b")))))
def test_wherever_servers_are_sent_and_whenever_they_move_their_gpus_stay_claimed(
    steps: list[tuple[list[str], list[str]] | str],
) -> None:
    """A server moves only once nothing of its demo is in its way, its own former place apart."""
    standing: Standing = {}
    runs: dict[str, set[str]] = {}
    for step in steps:
        if isinstance(step, str):  # A run comes as far as this server's start.
            asked = [record for record in standing.values() if not record.leaving]
            now = granted(asked, list(standing.values()))
            wanted = {gpu.uuid for each in asked if each.name == step for gpu in each.gpus}
            for place in now.leaving:
                in_the_way = place.name in now.conflicting and wanted & {
                    gpu.uuid for gpu in place.gpus
                }
                if wanted and (place.load == step or in_the_way):
                    del standing[place.name]
                    runs.pop(place.load, None)
            if wanted and wanted != runs.get(step):
                runs[step] = wanted
        else:
            asked = [served(name, *gpus) for name, gpus in zip("ab", step, strict=True)]
            try:
                now = granted(asked, list(standing.values()))
            except Refusal:
                continue
            standing = {record.name: record for record in (*now.claims, *now.leaving)}
        for name, gpus in runs.items():
            mine = [each for each in standing.values() if each.load == name]
            assert gpus <= {gpu.uuid for record in mine for gpu in record.gpus}
            assert not any(gpus & theirs for other, theirs in runs.items() if other != name)
