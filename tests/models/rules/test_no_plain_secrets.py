"""Secrets are found, and nothing else is taken for one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from models.rules import no_plain_secrets
from tests.models.rules.plans import DIGEST, GOOD, refused, with_instance, with_model

# None of these is a real one; they are put together so that no scanner takes them for it.
TOKENS = [
    "hf_" + "AbCdEfGhIjKlMnOpQrStUv",
    "sk-" + "proj-0123456789abcdefghij",
    "nvapi-" + "0123456789abcdefghij_-",
    "ghp_" + "0123456789abcdefghij0123",
    "AKIA" + "0123456789ABCDEF",
    "-----BEGIN OPENSSH " + "PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA",
    "https://anna:" + "hunter2@registry.example/v2",
]


@pytest.mark.parametrize("secret", TOKENS)
def test_what_looks_like_a_secret_is_refused_under_any_name_and_not_shown(secret: str) -> None:
    text = refused(no_plain_secrets, with_instance(environment={"NOTE": f"use {secret}"}))
    assert "berth:instances.triton@0.environment.NOTE: `NOTE` holds a" in text
    assert secret not in text


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "API_KEY", "api_key", "DB_PASSWORD", "clientSecret", "openai_apikey", "X_KEY"],
)
def test_what_is_named_like_a_secret_is_refused_and_not_shown(name: str) -> None:
    text = refused(no_plain_secrets, with_instance(environment={name: "opensesame"}))
    assert f"`{name}` holds a value in clear" in text
    assert "opensesame" not in text


def test_an_engine_argument_is_refused_with_its_path() -> None:
    text = refused(no_plain_secrets, with_model(args={"hf_token": TOKENS[0]}))
    assert text.startswith("catalog/small.yaml: engine_args.hf_token: ")


def test_a_secret_within_a_models_configuration_is_refused() -> None:
    config = f'parameters {{ key: "t" value: {{ string_value: "{TOKENS[0]}" }} }}'
    assert "catalog/small.yaml: config_pbtxt" in refused(
        no_plain_secrets, with_model(config_pbtxt=config)
    )


def test_a_secret_in_config_is_refused_once_though_the_container_has_it_too() -> None:
    at = "berth:instances.triton@0.environment.HF_TOKEN"
    both = replace(with_instance(environment={"HF_TOKEN": "x"}), plain_config={at: "x"})
    assert refused(no_plain_secrets, both).startswith(at)
    elsewhere = replace(GOOD, plain_config={"aws:secretKey": "x", "berth:hosts.a.port": 22})
    assert refused(no_plain_secrets, elsewhere).startswith("aws:secretKey: ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("private_key_file", "keys/id_ed25519"),
        ("API_KEY_FILE", "/run/secrets/key"),
        ("HF_TOKEN", "/run/secrets/token"),
        ("host_key", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF"),
        ("image", f"nvcr.io/nvidia/tritonserver@{DIGEST}"),
        ("seed", 0),
        ("tokenizer", "meta-llama/Llama-3.2-1B"),
        ("eos_token", "</s>"),
        ("max_tokens", "4096"),
        ("NUM_TOKEN", "128"),
        ("keyed_apis", "all"),
        ("hf_token", True),
        ("HF_TOKEN", ""),
        ("enable_prefix_caching", True),
        ("NCCL_P2P_DISABLE", "1"),
        ("address", "ssh://user@host.example:22"),
        ("task", "risk-assessment-of-something-long"),
    ],
)
def test_what_is_no_secret_passes(name: str, value: object) -> None:
    assert not no_plain_secrets.findings(replace(GOOD, plain_config={f"berth:x.{name}": value}))
