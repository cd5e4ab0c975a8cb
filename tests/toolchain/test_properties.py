"""The plugins know every property that the installed Python SDKs can send."""

from __future__ import annotations

from pathlib import Path

import pulumi_command as command
import pulumi_docker as docker
import pytest

from tests.toolchain.conftest import Toolchain
from tests.toolchain.property_trees import missing, sent_by, taken_by
from tests.toolchain.test_pins import pins

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(3600)]

DOCKER: dict[str, type] = {
    "docker:index/container:Container": docker.ContainerArgs,
    "docker:index/network:Network": docker.NetworkArgs,
    "docker:index/remoteImage:RemoteImage": docker.RemoteImageArgs,
    "docker:index/volume:Volume": docker.VolumeArgs,
    "pulumi:providers:docker": docker.ProviderArgs,
}
COMMAND: dict[str, type] = {
    "command:local:Command": command.local.CommandArgs,
    "command:remote:Command": command.remote.CommandArgs,
    "command:remote:CopyFile": command.remote.CopyFileArgs,
    "command:remote:CopyToRemote": command.remote.CopyToRemoteArgs,
}


def test_every_property_that_the_docker_sdk_sends_is_known_to_the_plugin(
    toolchain: Toolchain, tmp_path: Path
) -> None:
    taken = taken_by(toolchain, "docker", pins()["DOCKER_PLUGIN"], tmp_path)
    for token, arguments in DOCKER.items():
        assert missing(sent_by(arguments), taken[token]) == [], token


def test_every_property_that_the_command_sdk_sends_is_known_to_the_plugin(
    toolchain: Toolchain, tmp_path: Path
) -> None:
    taken = taken_by(toolchain, "command", pins()["COMMAND_PLUGIN"], tmp_path)
    for token, arguments in COMMAND.items():
        assert missing(sent_by(arguments), taken[token]) == [], token


def test_the_comparison_reaches_into_nested_arguments() -> None:
    container = sent_by(docker.ContainerArgs)
    assert "labels" in container["mounts"]["volumeOptions"]
    assert set(container["deviceRequests"]) >= {"driver", "deviceIds", "capabilities"}
    assert "hostKey" in sent_by(command.remote.CommandArgs)["connection"]["proxy"]
    del container["mounts"]["volumeOptions"]["labels"]["value"]
    assert missing(sent_by(docker.ContainerArgs), container) == [
        "mounts.volumeOptions.labels.value"
    ]
