"""Clients of a stack's roles, with what its users are given: the gateway's URL and a key."""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass
from typing import Any

import httpx
import openai

from tests.e2e.host import TestHost
from tests.e2e.workspace import Workspace


@dataclass(frozen=True)
class Reached:
    """How a stack's roles are reached."""

    url: str
    """Without a path."""
    key: str
    certificate: str
    """PEM."""

    @classmethod
    def of(cls, workspace: Workspace, stack: str, host_stack: str | None = None) -> Reached:
        """From the outputs of the stack and of the one that set its host up."""
        outputs = workspace.outputs(host_stack or stack)
        status, key = workspace.berth("key", "--stack", stack)
        assert status == 0, key
        gateway = outputs["gateway"]["sandbox"]
        return cls(gateway["url"], key.strip().splitlines()[-1], gateway["certificate"])

    @property
    def trusted(self) -> ssl.SSLContext:
        """The host's own certificate and no other."""
        return ssl.create_default_context(cadata=self.certificate)

    def http(self, **options: Any) -> httpx.Client:
        """A plain client with the key."""
        headers = {"Authorization": f"Bearer {self.key}"}
        return httpx.Client(
            base_url=self.url, headers=headers, verify=self.trusted, trust_env=False,
            timeout=60, **options,
        )  # fmt: skip

    def openai(self, **options: Any) -> openai.OpenAI:
        """The official client, which tries nothing twice."""
        http = httpx.Client(verify=self.trusted, trust_env=False, timeout=60)
        settings = {"max_retries": 0, "api_key": self.key, **options}
        return openai.OpenAI(base_url=f"{self.url}/v1", http_client=http, **settings)


def status(host: TestHost) -> dict[str, Any]:
    """What the gateway says of itself."""
    socket = "--unix-socket /run/berth-gateway/status.sock"
    said: dict[str, Any] = json.loads(host.sh(f"curl -s -m 10 {socket} http://gateway/status"))
    return said


def logged(host: TestHost, request_id: str) -> list[dict[str, Any]]:
    """The gateway's lines of one request in the host's journal."""
    said = host.sh(
        f"journalctl -t berth_gateway -o cat --since -10min | grep '{request_id}' || true"
    )
    return [json.loads(line) for line in said.splitlines()]
