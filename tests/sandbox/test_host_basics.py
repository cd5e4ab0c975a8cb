"""The host itself: boot, login, GPU requests, power cut."""

import subprocess
import time

import pytest

from sandbox import boot, container
from sandbox.process import SandboxError
from sandbox.readiness import wait_booted
from sandbox.simgpu.devices import gpu_uuid
from sandbox.triton_image import IMAGE

from .conftest import Host

pytestmark = pytest.mark.sandbox


def test_a_running_sandbox_is_left_alone_quickly(host: Host) -> None:
    before = time.monotonic()
    boot.up(host.settings, host.directory)
    assert time.monotonic() - before < 1.5


def test_the_user_logs_in_with_its_key_and_may_do_everything(host: Host) -> None:
    assert host.ssh("sudo id -un").strip() == "root"
    assert "docker" in host.ssh("id -Gn").split()


def test_root_and_passwords_are_not_let_in(host: Host) -> None:
    configuration = host.root("sshd -T")
    assert "permitrootlogin no" in configuration
    assert "passwordauthentication no" in configuration


def test_a_container_gets_the_gpus_it_names_counted_from_zero(host: Host) -> None:
    asked = f'"device={gpu_uuid(3)},{gpu_uuid(1)}"'
    listed = host.ssh(f"docker run --rm --gpus '{asked}' {IMAGE} nvidia-smi -L")
    assert [line.split("UUID: ")[1].rstrip(")") for line in listed.splitlines()] == [
        gpu_uuid(1),
        gpu_uuid(3),
    ]


def test_an_unknown_gpu_keeps_the_container_from_starting(host: Host) -> None:
    with pytest.raises(SandboxError, match="device error: GPU-none: unknown device"):
        host.ssh(f"docker run --rm --gpus '\"device=GPU-none\"' {IMAGE} true")


def test_without_a_driver_no_gpu_container_starts(host: Host) -> None:
    host.root("echo no-driver > /etc/simgpu/failure")
    try:
        with pytest.raises(SandboxError, match="nvml error: driver not loaded"):
            host.ssh(f"docker run --rm --gpus all {IMAGE} true")
        assert "couldn't communicate" in host.root("nvidia-smi", check=False)
    finally:
        host.root("rm /etc/simgpu/failure")


def test_a_foreign_process_is_seen_with_its_memory_until_it_is_killed(host: Host) -> None:
    command = ["docker", "exec", "-d", host.settings.name, "simgpu-hold", "--gpu=1", "--mib=3000"]
    subprocess.run(command, check=True)
    deadline = time.monotonic() + 10
    while host.used_mib()[1] != 3000 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert host.used_mib() == [0, 3000, 0, 0]
    pid = host.root("nvidia-smi --query-compute-apps=pid --format=csv,noheader").strip()
    host.root(f"kill -9 {pid}")
    # First a user who may not sweep the dead process's file away, then root.
    query = "nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits"
    assert host.ssh(query).split() == ["0", "0", "0", "0"]
    assert host.used_mib() == [0, 0, 0, 0]


def test_a_power_cut_empties_the_gpus_and_keeps_the_disk(host: Host) -> None:
    host.root("echo kept > /data/kept; simgpu-hold --gpu 0 --mib 500 >/dev/null 2>&1 &")
    container.power_cut(host.settings.name)
    wait_booted(host.settings)
    assert host.root("cat /data/kept").strip() == "kept"
    assert host.used_mib() == [0, 0, 0, 0]
    assert host.ssh(f"docker run --rm {IMAGE} echo runs").strip() == "runs"
