"""Refusals and bugs as they come out of the SDK's own plugin process."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from google.protobuf import struct_pb2  # type: ignore[import-untyped]
from pulumi.dynamic import CreateResult
from pulumi.dynamic.dynamic import serialize_provider
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from components.providers.plain_refusals import BerthProvider
from components.providers.progress import say
from models.refusal import Refusal

PROJECT = Path(__file__).parents[2]


class Trying(BerthProvider):
    """Does what its input says."""

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Refuse, fail, or take a second."""
        if props["do"] == "refuse":
            raise Refusal("the disk is full", consequence="Nothing was written.", fix="make room")
        if props["do"] == "fail":
            raise ZeroDivisionError("a bug")
        say("working")
        time.sleep(1)
        return CreateResult("x", {})


class Plugin:
    """The plugin process, asked by gRPC as the engine does."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "pulumi.dynamic", "127.0.0.1:1"],
            cwd=PROJECT,
            env={"PYTHONPATH": str(PROJECT), "PATH": "/usr/bin:/bin", "PULUMI_PROJECT": "berth"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        port = int(self.process.stdout.readline())
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self._stub = provider_pb2_grpc.ResourceProviderStub(channel)
        self._stub.Configure(provider_pb2.ConfigureRequest(args=struct_pb2.Struct()))

    def create(self, do: str) -> None:
        """One create, which raises what the engine would be told."""
        properties = struct_pb2.Struct()
        properties.update({"do": do, "__provider": serialize_provider(Trying())})
        self._stub.Create(provider_pb2.CreateRequest(properties=properties), timeout=60)

    def stop(self) -> str:
        """End it; what it said to the person."""
        self.process.kill()
        return self.process.communicate()[1]


@pytest.fixture
def plugin() -> Iterator[Plugin]:
    """A plugin process of the test's own."""
    plugin = Plugin()
    yield plugin
    plugin.stop()


def _told(plugin: Plugin, do: str) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        plugin.create(do)
    return str(caught.value.details())


def test_a_refusal_reaches_the_person_as_its_own_text(plugin: Plugin) -> None:
    assert _told(plugin, "refuse") == ("the disk is full\n  Nothing was written.\n  Fix: make room")


def test_a_bug_keeps_its_traceback(plugin: Plugin) -> None:
    told = _told(plugin, "fail")
    assert told.startswith("Traceback (most recent call last):")
    assert "ZeroDivisionError: a bug" in told


def test_more_than_four_operations_are_under_way_at_once(plugin: Plugin) -> None:
    plugin_warm_up = threading.Thread(target=plugin.create, args=("take a second",))
    plugin_warm_up.start()
    plugin_warm_up.join()
    began = time.monotonic()
    threads = [threading.Thread(target=plugin.create, args=("take a second",)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    assert took < 3  # with the SDK's four threads it would be 4 s
    assert plugin.stop().count("working") == 17
