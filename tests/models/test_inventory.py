"""What follows from an inventory for a plan."""

from __future__ import annotations

from typing import Any

from models.inventory import Inventory
from models.overlap import Foreign
from tests.declarations import G0, G1, SECTIONS, plan_of
from tests.models.test_readiness import GOOD

HOST = plan_of(SECTIONS).hosts["alpha"]
CLAIM = {
    "name": "berth/dev/shop.small/triton@0",
    "owner": "berth/dev/shop",
    "gpus": [{"uuid": G0, "mib": 9000}],
    "stack": "berth/dev",
    "roles": ["sentry"],
    "shared": True,
    "since": "2026-01-01T00:00:00Z",
}


def inventory(**changed: Any) -> Inventory:
    return Inventory.model_validate(GOOD | changed)


def test_what_a_foreign_process_holds_is_not_there_to_be_claimed() -> None:
    notebook = {"gpu": G0, "pid": 42, "name": "python3", "mib": 3000}
    ours = {"gpu": G0, "pid": 43, "name": "tritonserver", "mib": 9000, "instance": "triton@0"}
    rooms = inventory(processes=[notebook, ours]).rooms("alpha", HOST)
    assert rooms["alpha", G0].foreign == (Foreign("python3", 42, 3000),)
    assert rooms["alpha", G0].left_mib == HOST.gpus[0].cuda_mib - 3000
    assert rooms["alpha", G1].left_mib == HOST.gpus[1].cuda_mib


def test_a_card_is_called_by_the_index_that_it_has_now() -> None:
    moved = [gpu | {"index": 7} for gpu in GOOD["gpus"]["found"][:1]]
    rooms = inventory(gpus=GOOD["gpus"] | {"found": moved}).rooms("alpha", HOST)
    assert (rooms["alpha", G0].index, rooms["alpha", G1].index) == (7, 1)


def test_claims_of_others_are_as_the_overlap_rule_takes_them() -> None:
    found = inventory(claims=[CLAIM])
    assert found.claims_of_others("alpha", "berth/dev/shop") == []
    (claim,) = found.claims_of_others("alpha", "berth/dev/desk")
    assert (claim.host, claim.gpu, claim.mib, claim.shared) == ("alpha", G0, 9000, True)
    assert claim.owner == "berth/dev/shop: sentry since 2026-01-01T00:00:00Z"


def test_a_recorded_inventory_is_read_again_as_it_was_written() -> None:
    found = inventory(claims=[CLAIM])
    text = found.model_dump_json(indent=2)
    assert Inventory.model_validate_json(text) == found
    assert Inventory.model_validate_json(text).model_dump_json(indent=2) == text
