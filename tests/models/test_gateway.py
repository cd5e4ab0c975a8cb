"""What a gateway's section may say."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from pydantic import ValidationError

from models.gateway import Gateway, key_hash


def test_a_gateway_needs_no_more_than_its_section() -> None:
    declared = Gateway.model_validate({})
    assert declared.listen == "0.0.0.0:8443"
    assert declared.tls == "self_signed"


def test_an_ipv6_address_is_written_in_brackets() -> None:
    assert Gateway(address="::", port=443).listen == "[::]:443"


@pytest.mark.parametrize("address", ["0.0.0.0", "10.0.0.7", "::"])
def test_keys_are_never_sent_in_clear_over_a_network(address: str) -> None:
    with pytest.raises(ValidationError, match="would send keys in clear text"):
        Gateway.model_validate({"address": address, "tls": "off"})
    assert Gateway.model_validate({"address": "127.0.0.1", "tls": "off"}).tls == "off"


@pytest.mark.parametrize(
    "section",
    [
        {"address": "gpu.example"},
        {"tls": "none"},
        {"tls": {"certificate": "/a.pem"}},
        {"tls": {"certificate": "/a.pem; include x", "key": "/b"}},
        {"names": ["a b"]},
        {"names": ["a,IP:1.2.3.4"]},
        {"connections_per_key": 0},
        {"timeout_s": 0},
        {"max_body_mib": 0},
        {"what": 1},
    ],
)
def test_what_means_nothing_is_refused(section: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Gateway.model_validate(section)


def test_a_keys_hash_is_sha_256() -> None:
    assert key_hash("abc") == hashlib.sha256(b"abc").hexdigest()


def test_clients_reach_it_by_the_hosts_address_unless_it_says_otherwise() -> None:
    assert Gateway().reached_at("gpu.example") == "https://gpu.example:8443"
    assert Gateway(port=443).reached_at("::1") == "https://[::1]:443"
    off = Gateway(address="127.0.0.1", tls="off")
    assert off.reached_at("127.0.0.1") == "http://127.0.0.1:8443"
    assert Gateway(url="https://llm.example").reached_at("10.0.0.7") == "https://llm.example"


def test_its_certificate_names_whatever_clients_call() -> None:
    declared = Gateway(url="https://llm.example:9443", names=["gpu.example"])
    assert declared.called("10.0.0.7").names == ["gpu.example", "llm.example", "10.0.0.7"]


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"url": "http://llm.example"}, "begins with https://"),
        ({"url": "https://llm.example/v1"}, "url"),
        ({"adapter": {"image": "a", "port": 8443}}, "both 8443"),
        ({"adapter": {}}, "image"),
    ],
)
def test_what_cannot_be_reached_is_refused(section: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Gateway.model_validate(section)
