"""The container of a server of one model's own."""

from __future__ import annotations

from dataclasses import replace

from components.renderers import server_container
from components.renderers.container import PublishedPort
from tests.renderers.engines.served import placed

VLLM = placed("vllm")


def test_it_is_open_on_loopback_alone() -> None:
    assert server_container.published_ports(VLLM) == [PublishedPort("127.0.0.1", 8210, 8000)]


def test_all_that_it_sees_of_the_host_is_read_only() -> None:
    mounts = server_container.mounts(placed("trtllm-serve"))
    assert [mount.source for mount in mounts] == [
        "/data/triton/weights",
        "/data/triton/models",
        "/etc/berth/servers/shop-architect.yaml",
    ]
    assert all(mount.read_only for mount in mounts)


def test_it_is_known_by_its_unit() -> None:
    assert server_container.labels(VLLM, "dev") == {
        "berth.stack": "dev",
        "berth.instance": "shop-architect",
        "berth.role": "architect",
    }


def test_what_an_instance_sets_for_its_gpus_holds_for_a_server_on_them() -> None:
    declared = VLLM.instance.declared.model_copy(update={"environment": {"NCCL_P2P_DISABLE": "1"}})
    placement = replace(VLLM, instance=replace(VLLM.instance, declared=declared))
    assert server_container.environment(placement) == [
        "HF_HUB_OFFLINE=1",
        "NCCL_P2P_DISABLE=1",
        "VLLM_NO_USAGE_STATS=1",
    ]
