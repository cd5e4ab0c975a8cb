"""What a demo declares at its hosts' gateways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from models.gateway import key_hash
from tests.declarations import plan_of
from tests.resources.recording import Recorder
from tests.resources.test_stack import declared, with_key_files

KEY, DEMO, ROUTE = (f"berth:{name}" for name in ("DemoKey", "DemoRoutes", "RoleRoute"))
Declared = tuple[Recorder, dict[str, Any]]


@pytest.fixture
def shop(tmp_path: Path) -> Declared:
    """Demo `shop`: two roles share a model on alpha, which has a gateway; beta has none."""
    sections = with_key_files(tmp_path)
    sections["hosts"]["alpha"]["gateway"] = {
        "adapter": {"image": "adapter@sha256:aa"}, "url": "https://gpu.example", "drain_s": 7,
    }  # fmt: skip
    sections["demo"] |= {"keys": ["old", "new"], "connections_per_key": 9}
    return declared(plan_of(sections), tmp_path)


def _of(recorder: Recorder, name: str) -> dict[str, dict[str, Any]]:
    found = {r.name: r.inputs for r in recorder.resources if r.typ.endswith(name)}
    assert found, sorted({r.typ for r in recorder.resources})
    return found


def test_a_gateway_learns_a_demos_roles_and_the_hashes_of_its_keys(shop: Declared) -> None:
    known = _of(shop[0], ":DemoRoutes")
    assert list(known) == ["alpha/shop"]
    its = known["alpha/shop"]
    assert its["keys"] == [{"name": name, "sha256": "0" * 64} for name in ("old", "new")]
    assert (its["connections_per_key"], its["drain_s"]) == (9, 7)
    load = "berth/test/shop.big/triton@wide-01"
    about = {"model": "big", "engine": "triton-vllm", "loads": [load]}
    assert its["roles"] == {"architect": about, "worker": about}


def test_no_resource_but_the_key_itself_holds_a_key(shop: Declared) -> None:
    for resource in shop[0].resources:
        assert "a-key-of-the-test" not in str(resource.inputs), resource.name
    assert key_hash("a") != key_hash("b")


def test_each_role_has_a_route_to_its_load_and_only_where_there_is_a_gateway(
    shop: Declared,
) -> None:
    routes = _of(shop[0], ":RoleRoute")
    assert sorted(routes) == ["alpha/shop/architect", "alpha/shop/worker"]
    worker = routes["alpha/shop/worker"]
    adapted = {
        "model": "shop/worker",
        "health": "/health",
        "replicas": [
            {
                "address": "127.0.0.1:8300",
                "unit": "triton@wide-01.service",
                "load": "berth/test/shop.big/triton@wide-01",
                "health": "/v2/models/shop.big/ready",
                "checked_at": "127.0.0.1:8010",
                "closed": "",
            }
        ],
    }
    assert worker["route"]["openai"] == worker["route"]["framing"] == adapted
    assert worker["route"]["kserve"]["model"] == "shop.big"
    assert worker["route"]["kserve"]["replicas"][0]["address"] == "127.0.0.1:8010"
    assert worker["adapter"] == {
        "worker": {
            "engine": "triton-vllm",
            "base_url": "http://127.0.0.1:8010",
            "metrics_url": "http://127.0.0.1:8110/metrics",
            "model": "shop.big",
            "weights": "/data/triton/weights/big-nvfp4",
        }
    }
    assert worker["since"] == ["2026-11-21T08:00:00.000+00:00"]


def test_outputs_say_by_what_address_and_key_clients_reach_a_role(shop: Declared) -> None:
    outputs = shop[1]
    assert outputs["roles"]["worker"]["url"] == "https://gpu.example/v1"
    assert outputs["roles"]["sentry"]["url"] == ""
    assert sorted(outputs["keys"]) == ["new", "old"]


def test_a_demo_whose_hosts_have_no_gateway_has_no_keys(tmp_path: Path) -> None:
    recorder, outputs = declared(plan_of(with_key_files(tmp_path)), tmp_path)
    assert outputs["keys"] == {}
    assert not [r.name for r in recorder.resources if r.typ.endswith((":DemoKey", ":RoleRoute"))]
