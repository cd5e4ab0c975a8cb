"""What the provider of models says to a preview, which touches no host."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest
from pulumi.dynamic.dynamic import serialize_provider
from pulumi.output import Unknown

from components.providers.claims import ClaimsProvider
from components.providers.repository_entry import RepositoryEntryProvider
from components.providers.triton_model import TritonModelProvider

PROVIDER = TritonModelProvider()
UNKNOWN = Unknown()  # type: ignore[no-untyped-call]
INPUTS: dict[str, Any] = {
    "ssh": {"address": "gpu1", "port": 22.0, "user": "root", "host_key": "ssh-ed25519 AAAA"},
    "host": "gpu1",
    "instance": "triton@2",
    "unit": "triton@2.service",
    "http_port": 8002.0,
    "control_key_file": "/etc/berth/control.key",
    "model": "demo.gemma",
    "config_digest": "d1",
    "entry_revision": "r1",
    "container_id": "c1",
    "gpus": ["GPU-1"],
    "claim_mib": 9000.0,
    "owner": "berth/dev/reference",
    "holder": "berth/dev/reference",
    "claim_name": "berth/dev/demo.gemma/triton@2",
    "load_timeout_s": 900.0,
    "unload_timeout_s": 120.0,
    "canary_timeout_s": 60.0,
}
OUTS = INPUTS | {"state": "READY", "loaded_digest": "d1"}


def test_nothing_changed_is_a_definite_no_whole_numbers_or_not() -> None:
    whole = INPUTS | {"http_port": 8002, "claim_mib": 9000, "load_timeout_s": 900}
    assert PROVIDER.diff("x", OUTS, whole | {"ssh": INPUTS["ssh"] | {"port": 22}}).changes is False


@pytest.mark.parametrize("key", ["host", "instance", "http_port", "model", "container_id", "gpus"])
def test_another_place_replaces_the_model_deleting_first(key: str) -> None:
    diff = PROVIDER.diff("x", OUTS, INPUTS | {key: "other"})
    assert (diff.changes, diff.replaces, diff.delete_before_replace) == (True, [key], True)


@pytest.mark.parametrize(
    "key",
    ["ssh", "unit", "config_digest", "entry_revision", "claim_mib", "owner", "load_timeout_s"],
)
def test_anything_else_updates_it_in_place(key: str) -> None:
    diff = PROVIDER.diff("x", OUTS, INPUTS | {key: "other"})
    assert (diff.changes, diff.replaces) == (True, [])


def test_a_container_that_is_not_known_yet_replaces_the_model() -> None:
    diff = PROVIDER.diff("x", OUTS, INPUTS | {"container_id": UNKNOWN})
    assert (diff.changes, diff.replaces) == (True, ["container_id"])


def test_a_revision_that_is_not_known_yet_is_an_update() -> None:
    diff = PROVIDER.diff("x", OUTS, INPUTS | {"entry_revision": UNKNOWN})
    assert (diff.changes, diff.replaces) == (True, [])


def test_a_model_that_was_not_ready_when_it_was_read_wants_an_update() -> None:
    assert PROVIDER.diff("x", OUTS | {"state": "LOADING"}, INPUTS).changes


FALLBACK = {"name": "berth/dev/demo.other/triton@2", "gpus": [{"uuid": "GPU-1", "mib": 9000.0}]}
FAILED = OUTS | {"state": "FAILED", "fallback": FALLBACK}


def test_a_model_that_failed_and_has_a_fallback_is_left_at_that() -> None:
    whole = FALLBACK | {"gpus": [{"uuid": "GPU-1", "mib": 9000}]}
    assert not PROVIDER.diff("x", FAILED, INPUTS | {"fallback": whole}).changes


def test_a_model_that_failed_and_has_none_any_more_is_tried_again() -> None:
    assert PROVIDER.diff("x", FAILED, INPUTS | {"fallback": None}).changes


@pytest.mark.parametrize("key", ["config_digest", "entry_revision", "load_timeout_s"])
def test_a_model_that_failed_is_tried_again_once_it_is_another(key: str) -> None:
    assert PROVIDER.diff("x", FAILED, INPUTS | {"fallback": FALLBACK, key: "other"}).changes


def test_a_fallback_stands_by_until_it_is_wanted() -> None:
    standing = OUTS | {"state": "STANDBY", "wanted": ""}
    assert not PROVIDER.diff("x", standing, INPUTS | {"wanted": ""}).changes
    diff = PROVIDER.diff("x", standing, INPUTS | {"wanted": "2026-11-21T10:00:00.000+00:00"})
    assert (diff.changes, diff.replaces) == (True, [])
    assert PROVIDER.diff("x", standing, INPUTS | {"wanted": UNKNOWN}).changes


def test_a_fallback_that_was_loaded_by_hand_is_to_be_unloaded() -> None:
    loaded = OUTS | {"state": "READY", "wanted": ""}
    assert PROVIDER.diff("x", loaded, INPUTS | {"wanted": ""}).changes


def test_a_fallback_is_created_without_touching_its_host() -> None:
    created = PROVIDER.create(INPUTS | {"wanted": ""}).outs or {}
    assert (created["state"], created["loaded_digest"]) == ("STANDBY", "")


@pytest.mark.parametrize("provider", [ClaimsProvider, RepositoryEntryProvider, TritonModelProvider])
def test_a_provider_is_stored_by_its_name_and_holds_nothing(
    provider: type[pulumi.dynamic.ResourceProvider],
) -> None:
    # The module and the class are in every state: renaming one breaks the deletion of what is
    # deployed already.
    stored = serialize_provider(provider())
    assert len(stored) < 150
    assert provider.serialize_as_secret_always is False
    assert provider.__module__.startswith("components.providers.")
