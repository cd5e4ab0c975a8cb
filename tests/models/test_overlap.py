"""The overlap rule, for any claims."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from models.overlap import Claim, Foreign, Room, overlaps

GPUS = ("GPU-0", "GPU-1", "GPU-2")
ROOM_MIB = 22565

claims = st.lists(
    st.builds(
        Claim,
        host=st.sampled_from(["alpha", "beta"]),
        gpu=st.sampled_from(GPUS),
        name=st.sampled_from(["a", "b", "c", "d"]),
        owner=st.just("berth/dev/shop"),
        mib=st.integers(1, 24000),
        shared=st.booleans(),
    )
)
foreign = st.lists(st.builds(Foreign, st.just("python3"), st.integers(1, 9), st.integers(1, 9000)))
rooms = st.fixed_dictionaries(
    {
        (host, gpu): st.builds(Room, st.just(0), st.just(ROOM_MIB), foreign.map(tuple))
        for host in ("alpha", "beta")
        for gpu in GPUS
    }
)


def claim(
    name: str, mib: int = 20309, *, shared: bool = False, gpu: str = "GPU-0", instead_of: str = ""
) -> Claim:
    return Claim("alpha", gpu, name, f"berth/dev/shop: {name}", mib, shared, instead_of)


def room(*held: Foreign) -> dict[tuple[str, str], Room]:
    return {("alpha", "GPU-0"): Room(0, ROOM_MIB, held)}


@given(claims, rooms)
def test_what_is_accepted_never_exceeds_a_gpu(
    given_claims: list[Claim], given_rooms: dict[tuple[str, str], Room]
) -> None:
    if overlaps(given_claims, given_rooms):
        return
    for place, there in given_rooms.items():
        held = {c for c in given_claims if (c.host, c.gpu) == place}
        assert not held or sum(c.mib for c in held) <= there.left_mib
        assert len({c.name for c in held}) < 2 or all(c.shared for c in held)


@given(claims, rooms)
def test_what_is_refused_has_a_reason(
    given_claims: list[Claim], given_rooms: dict[tuple[str, str], Room]
) -> None:
    for found in overlaps(given_claims, given_rooms):
        there = given_rooms[found.host, found.gpu]
        assert found.exclusive or found.mib > there.left_mib


@given(claims, rooms, st.randoms(use_true_random=False))
def test_the_order_of_claims_does_not_matter(
    given_claims: list[Claim], given_rooms: dict[tuple[str, str], Room], order: random.Random
) -> None:
    shuffled = list(given_claims)
    order.shuffle(shuffled)
    assert overlaps(given_claims, given_rooms) == overlaps(shuffled, given_rooms)


@given(claims, claims, rooms)
def test_what_fits_still_fits_when_something_is_released(
    kept: list[Claim], released: list[Claim], given_rooms: dict[tuple[str, str], Room]
) -> None:
    if not overlaps(kept + released, given_rooms):
        assert not overlaps(kept, given_rooms)


@given(st.integers(1, 24000), st.integers(1, 24000), claims, rooms)
def test_a_model_and_its_fallback_count_as_the_larger_of_them(
    first: int, second: int, others: list[Claim], given_rooms: dict[tuple[str, str], Room]
) -> None:
    one = claim("first", first)
    other = claim("fallback", second, instead_of="first")
    larger = one if first >= second else replace(other, name="first", instead_of="")
    assert [(o.host, o.gpu, o.mib) for o in overlaps([*others, one, other], given_rooms)] == [
        (o.host, o.gpu, o.mib) for o in overlaps([*others, larger], given_rooms)
    ]


@given(claims, rooms)
def test_everybody_else_meets_the_fallback_as_if_it_stood_alone(
    others: list[Claim], given_rooms: dict[tuple[str, str], Room]
) -> None:
    standing = [claim("first", 5000, gpu="GPU-1"), claim("fallback", 9000, instead_of="first")]
    alone = [standing[0], claim("fallback", 9000)]
    place = ("alpha", "GPU-0")
    met = [o.mib for o in overlaps([*others, *standing], given_rooms) if (o.host, o.gpu) == place]
    assert met == [
        o.mib for o in overlaps([*others, *alone], given_rooms) if (o.host, o.gpu) == place
    ]


def test_a_refusal_names_the_model_and_its_fallback_where_another_comes_between() -> None:
    held = [claim("first"), claim("fallback", instead_of="first"), claim("guard", 200)]
    (found,) = overlaps(held, room())
    assert found.exclusive
    assert found.mib == 20509
    assert len(found.claims) == 3


def test_a_fallback_larger_than_the_gpu_is_refused_although_its_model_fits() -> None:
    (found,) = overlaps([claim("first"), claim("fallback", 22566, instead_of="first")], room())
    assert not found.exclusive


def test_the_same_gpu_name_on_two_hosts_is_two_gpus() -> None:
    assert not overlaps([claim("a"), Claim("beta", "GPU-0", "b", "b", 1)])


def test_one_model_on_several_gpus_is_one_claimant() -> None:
    assert not overlaps([claim("a"), claim("a", gpu="GPU-1")], room())


def test_a_model_that_is_not_shared_stands_alone_however_small_both_are() -> None:
    (found,) = overlaps([claim("a", 10), claim("b", 10, shared=True)], room())
    assert found.exclusive


def test_shared_models_stand_side_by_side_while_their_budgets_fit() -> None:
    assert not overlaps([claim("a", 14720, shared=True), claim("b", 5760, shared=True)], room())
    (found,) = overlaps([claim("a", 14720, shared=True), claim("b", 7846, shared=True)], room())
    assert not found.exclusive


def test_a_refusal_names_both_owners_their_memory_and_the_gpu() -> None:
    (found,) = overlaps([claim("sentry", 100), claim("guard", 200)], room())
    assert str(found.refusal()) == (
        "host alpha: GPU 0 (GPU-0) is claimed by berth/dev/shop: guard: 200 MiB and by "
        "berth/dev/shop: sentry: 100 MiB\n"
        "  Each engine takes its share of the whole card at start, so the one loaded later would "
        "end in CUDA out of memory. Nothing was touched.\n"
        "  Fix: move one of the roles to an instance on other GPUs, or remove it."
    )


def test_a_refusal_of_budgets_says_the_sum_and_what_there_is() -> None:
    (found,) = overlaps([claim("a", 14720, shared=True), claim("b", 9000, shared=True)], room())
    assert "That is 23720 MiB; CUDA can give 22565 MiB." in str(found.refusal())


def test_memory_that_a_foreign_process_holds_is_named_and_not_counted_as_free() -> None:
    (found,) = overlaps([claim("a")], room(Foreign("python3", 4711, 3000)))
    assert (
        "CUDA can give 22565 MiB, of which 19565 MiB are left: not Berth's and holding memory are "
        "python3 (pid 4711) 3000 MiB"
    ) in str(found.refusal())


def test_ways_out_stand_in_place_of_general_advice() -> None:
    (found,) = overlaps([claim("a"), claim("b")], room())
    assert "Fix: move `b` to triton@1. Or: serve `c`." in str(
        found.refusal(["move `b` to triton@1.", "serve `c`."])
    )
