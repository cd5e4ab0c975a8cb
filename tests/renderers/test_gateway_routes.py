"""A demo's file, word for word."""

from __future__ import annotations

import json

from components.renderers import gateway_routes
from models.gateway import DemoKey, DemoRoutes, Endpoint, Replica, RoleRoute, key_hash

ROUTES = DemoRoutes(
    demo="desk",
    keys=(DemoKey("default", key_hash("a key")),),
    roles={
        "architect": RoleRoute(
            model="gemma-4-31b-it",
            engine="vllm",
            openai=Endpoint(
                "architect", "/health", (Replica("127.0.0.1:8210", "desk-architect.service"),)
            ),
        )
    },
)


def test_a_demos_file_says_everything_that_the_gateway_reads() -> None:
    assert json.loads(gateway_routes.routes(ROUTES)) == {
        "version": 1,
        "demo": "desk",
        "keys": [{"name": "default", "sha256": key_hash("a key")}],
        "connections_per_key": None,
        "roles": {
            "architect": {
                "model": "gemma-4-31b-it",
                "engine": "vllm",
                "state": "serving",
                "reason": "",
                "retry_after_s": 10,
                "fallback": None,
                "openai": {
                    "model": "architect",
                    "health": "/health",
                    "key": None,
                    "replicas": [{"address": "127.0.0.1:8210", "unit": "desk-architect.service"}],
                },
                "framing": None,
                "kserve": None,
            }
        },
    }


def test_the_same_routes_are_the_same_text_and_hold_no_key() -> None:
    text = gateway_routes.routes(ROUTES)
    assert text == gateway_routes.routes(ROUTES)
    assert text.endswith("}\n")
    assert "a key" not in text


def test_engines_keys_stand_in_a_file_of_their_own() -> None:
    assert json.loads(gateway_routes.secrets({"vllm": "secret"})) == {"vllm": "secret"}
