"""The adapter's image in the sandbox is the product's."""

from __future__ import annotations

from pathlib import Path

from sandbox.adapter_image import ADAPTER, DOCKERFILE

ROOT = Path(__file__).parents[2]


def test_it_is_the_products_dockerfile_but_for_where_its_packages_come_from() -> None:
    theirs, ours = DOCKERFILE.read_text().splitlines(), ADAPTER.recipe().splitlines()
    differing = [(a, b) for a, b in zip(theirs, ours, strict=False) if a != b]
    assert [a.split("=")[0].split(",")[0] for a, _ in differing] == [
        "ARG BASE",
        'RUN ["python3"',
        "ARG VERSION",
    ]
    assert "pip" not in ADAPTER.recipe().replace("python3-pip", "")
    assert ours[len(theirs) :] == [f"LABEL key={ADAPTER.key()}"]


def test_its_version_follows_from_every_source_that_it_holds() -> None:
    sources = {str(path.relative_to(ROOT)) for path in ADAPTER.sources()}
    assert {
        "gateway/table.py",
        "gateway/requirements.lock",
        "engines/link.py",
        "models/refusal.py",
    } <= sources
    assert not any(name.startswith(("tests/", "sandbox/")) for name in sources)
