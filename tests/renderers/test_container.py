"""An instance's container, by its exact arguments."""

from __future__ import annotations

from components.renderers import container
from components.renderers.container import PublishedPort
from models.instance import Mount
from tests.declarations import G0, G1, SECTIONS, changed, plan_of

WIDE = plan_of(SECTIONS).instances[1]


def test_triton_runs_in_explicit_mode_with_grpc_closed() -> None:
    assert container.command(WIDE) == [
        "python3",
        "/etc/berth/serve_triton.py",
        "--control-key-file=/run/berth/control.key",
        "--control-header=X-Berth-Control",
        "--control-apis=model-repository,shared-memory,trace,logging",
        "--",
        "tritonserver",
        "--model-repository=/data/triton/models",
        "--model-control-mode=explicit",
        "--allow-http=true",
        "--http-port=8000",
        "--allow-grpc=false",
        "--allow-metrics=true",
        "--metrics-port=8002",
        "--exit-on-error=false",
        "--backend-config=python,shm-region-prefix-name=triton-wide-01",
    ]


def test_gpus_are_pinned_by_uuid_through_cdi() -> None:
    request = container.device_request(WIDE.host, (G0, G1))
    assert request.driver == "cdi"
    assert request.device_ids == (f"nvidia.com/gpu={G0}", f"nvidia.com/gpu={G1}")
    assert request.capabilities == ()


def test_gpus_are_pinned_by_uuid_through_the_hook_where_the_host_says_so() -> None:
    host = plan_of(changed("hosts/alpha/gpu_access", "hook")).hosts["alpha"]
    request = container.device_request(host, (G0, G1))
    assert (request.driver, request.device_ids, request.capabilities) == (
        "nvidia",
        (G0, G1),
        ("gpu",),
    )


def test_the_control_key_is_mounted_and_in_no_argument() -> None:
    mounts = {mount.target: mount.source for mount in container.mounts(WIDE)}
    assert mounts["/run/berth/control.key"] == "/etc/berth/instances/wide-01.key"


def test_weights_and_repository_are_read_only_and_at_the_same_path_inside() -> None:
    for path in ("/data/triton/models", "/data/triton/weights"):
        assert Mount(source=path, target=path, read_only=True) in container.mounts(WIDE)


def test_further_directories_are_mounted_as_declared() -> None:
    cache = {"source": "/var/cache/vllm", "target": "/root/.cache/vllm", "read_only": False}
    (instance, *_) = plan_of(changed("instances/triton@0/mounts", [cache])).instances
    assert container.mounts(instance)[-1] == Mount(**cache)


def test_declared_variables_reach_the_server() -> None:
    set_here = changed("instances/triton@0/environment", {"B": "2", "A": "1"})
    assert container.environment(plan_of(set_here).instances[0]) == ["A=1", "B=2"]
    assert container.environment(WIDE) == []


def test_http_and_metrics_get_the_declared_ports() -> None:
    assert container.published_ports(WIDE) == [
        PublishedPort("127.0.0.1", 8010, 8000),
        PublishedPort("127.0.0.1", 8110, 8002),
    ]


def test_http_listens_where_declared_and_for_berth_on_loopback_while_metrics_stay_there() -> None:
    (instance, *_) = plan_of(changed("instances/triton@0/listen", "10.0.0.5")).instances
    assert container.published_ports(instance) == [
        PublishedPort("127.0.0.1", 8000, 8000),
        PublishedPort("10.0.0.5", 8000, 8000),
        PublishedPort("127.0.0.1", 8100, 8002),
    ]


def test_every_address_holds_loopback_already() -> None:
    (instance, *_) = plan_of(changed("instances/triton@0/listen", "0.0.0.0")).instances
    assert container.published_ports(instance)[0] == PublishedPort("0.0.0.0", 8000, 8000)
    assert len(container.published_ports(instance)) == 2


def test_all_of_tritons_apis_can_ask_for_the_key() -> None:
    (instance, *_) = plan_of(changed("instances/triton@0/keyed_apis", "all")).instances
    (apis,) = [word for word in container.command(instance) if word.startswith("--control-apis=")]
    assert set(apis.partition("=")[2].split(",")) == {
        "health",
        "metadata",
        "inference",
        "model-config",
        "statistics",
        "model-repository",
        "shared-memory",
        "trace",
        "logging",
    }
