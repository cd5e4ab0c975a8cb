"""The GPU map tells a reviewer all that the overlap rule knows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from models.gpu_map import FOREIGN, LEDGER, OVERLAP, PLANNED, Mapped, gpu_map
from models.overlap import Claim, Foreign, Room, overlaps
from tests.declarations import G0, G1, G9

ROOMS = {("alpha", G0): Room(0, 22565), ("alpha", G1): Room(1, 22565)}
SENTRY = Claim("alpha", G0, "berth/dev/shop.small/triton@0", "berth/dev/shop: sentry", 20000)
CLERK = Claim("alpha", G0, "berth/desk/desk.small/triton@0", "berth/desk/desk: clerk", 9000)


def line_of(text: str, word: str) -> str:
    (line,) = [each for each in text.splitlines() if word in each]
    return line


def test_a_gpu_shows_what_it_has_what_is_taken_and_what_is_free() -> None:
    text = gpu_map(Mapped(ROOMS, planned=(SENTRY,), in_use={("alpha", G0): 15000}))
    shown = " ".join(line_of(text, "GPU 0").split())
    assert shown == "GPU 0 GPU-00000000 22565 in all 20000 taken 2565 free 15000 in use"
    assert "22565 free" in line_of(text, "GPU 1")
    assert OVERLAP not in text


def test_each_holder_stands_below_its_gpu_and_says_whose_it_is() -> None:
    notebook = Room(1, 22565, (Foreign("python3", 41, 9000),))
    shown = Mapped(ROOMS | {("alpha", G1): notebook}, (SENTRY,), (CLERK,))
    lines = [" ".join(line.split()) for line in gpu_map(shown).splitlines()]
    assert lines[2:4] == [
        f"20000 {PLANNED} berth/dev/shop: sentry",
        f"9000 {LEDGER} berth/desk/desk: clerk",
    ]
    assert lines[-1] == f"9000 {FOREIGN} python3 (pid 41)"
    assert "13565 free" in lines[-2]


def test_the_gpu_that_cannot_carry_its_claims_is_marked_and_no_other() -> None:
    text = gpu_map(Mapped(ROOMS, (SENTRY,), (CLERK,)))
    assert "6435 too many" in line_of(text, OVERLAP)
    assert "GPU 0" in line_of(text, OVERLAP)


def test_the_age_of_the_facts_stands_above_their_host() -> None:
    text = gpu_map(Mapped(ROOMS, facts={"alpha": "facts of 2026-11-18 10:20 UTC, 3 days old"}))
    title = "GPU map of host alpha, in MiB: facts of 2026-11-18 10:20 UTC, 3 days old"
    assert text.splitlines()[0] == title


def test_empty_gpus_of_a_fleet_are_counted_and_a_held_one_is_still_shown() -> None:
    fleet = {("alpha", f"GPU-{number:08}"): Room(number, 22565) for number in range(64)}
    held = Claim("alpha", "GPU-00000063", "n", "berth/dev/shop: sentry", 20000)
    text = gpu_map(Mapped(fleet, (held,)))
    assert "and 63 GPUs that nobody has claimed" in text
    assert "2565 free" in line_of(text, "GPU 63")
    assert len(text.splitlines()) == 4


def test_a_claim_on_a_gpu_that_nobody_knows_is_shown() -> None:
    text = gpu_map(Mapped({}, (Claim("alpha", G9, "n", "berth/dev/shop: sentry", 20000),)))
    assert "size not known, 20000 taken" in text


claims = st.builds(
    Claim,
    host=st.sampled_from(["alpha", "beta"]),
    gpu=st.sampled_from([G0, G1, G9]),
    name=st.sampled_from("abcd"),
    owner=st.sampled_from(["one", "two", "three"]),
    mib=st.integers(1, 30000),
    shared=st.booleans(),
)
rooms = st.dictionaries(
    st.tuples(st.sampled_from(["alpha", "beta"]), st.sampled_from([G0, G1])),
    st.builds(
        Room,
        index=st.integers(0, 7),
        mib=st.integers(1, 40000),
        foreign=st.lists(
            st.builds(Foreign, name=st.just("python3"), pid=st.integers(1, 9), mib=st.just(77)),
            max_size=2,
        ).map(tuple),
    ),
)


@given(rooms, st.lists(claims), st.lists(claims))
def test_what_the_rule_refuses_is_marked_and_every_claim_is_shown(
    known: dict[tuple[str, str], Room], planned: list[Claim], ledger: list[Claim]
) -> None:
    text = gpu_map(Mapped(known, tuple(planned), tuple(ledger)))
    assert text.count(OVERLAP) == len(overlaps([*planned, *ledger], known))
    assert text.count(PLANNED) == len(set(planned))
    assert text.count(LEDGER) == len(set(ledger))
    assert text.count(FOREIGN) == sum(len(room.foreign) for room in known.values())
    again = Mapped(known, tuple(reversed(planned)), tuple(reversed(ledger)))
    assert gpu_map(again) == text


def test_a_fallback_is_shown_below_its_model_and_not_counted_beside_it() -> None:
    name = "berth/dev/shop.tiny/triton@0"
    said = "berth/dev/shop: sentry (tiny on triton@0), the fallback"
    text = gpu_map(Mapped(ROOMS, planned=(SENTRY, Claim("alpha", G0, name, said, 9000, False,
                                                        SENTRY.name))))  # fmt: skip
    assert "20000 taken" in line_of(text, "GPU 0")
    assert line_of(text, "the fallback").split()[0] == "9000"
    assert OVERLAP not in text
