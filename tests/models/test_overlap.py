"""The overlap rule, for any claims."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from models.overlap import Claim, overlaps

claims = st.lists(
    st.builds(
        Claim,
        host=st.sampled_from(["alpha", "beta"]),
        gpu=st.sampled_from(["GPU-0", "GPU-1", "GPU-2"]),
        owner=st.sampled_from(["a", "b", "c"]),
        mib=st.integers(1, 24000),
    )
)


@given(claims)
def test_what_is_accepted_never_puts_two_owners_on_one_gpu(given_claims: list[Claim]) -> None:
    if not overlaps(given_claims):
        owners: dict[tuple[str, str], str] = {}
        for claim in given_claims:
            assert owners.setdefault((claim.host, claim.gpu), claim.owner) == claim.owner


@given(claims, st.randoms(use_true_random=False))
def test_the_order_of_claims_does_not_matter(given_claims: list[Claim], random: object) -> None:
    shuffled = list(given_claims)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert [str(r) for r in overlaps(given_claims)] == [str(r) for r in overlaps(shuffled)]


def test_the_same_gpu_name_on_two_hosts_is_two_gpus() -> None:
    assert not overlaps([Claim("alpha", "GPU-0", "a", 1), Claim("beta", "GPU-0", "b", 1)])


def test_a_refusal_names_owners_memory_and_gpu() -> None:
    (refusal,) = overlaps(
        [Claim("alpha", "GPU-0", "dev: sentry", 100), Claim("alpha", "GPU-0", "dev: guard", 200)],
        {"GPU-0": "GPU 0"},
    )
    assert str(refusal).startswith(
        "host alpha: GPU 0 (GPU-0) is claimed by dev: guard (200 MiB) and dev: sentry (100 MiB)"
    )
