"""An instance's container, by its exact arguments."""

from __future__ import annotations

from components.renderers import container
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
    mounts = container.read_only_mounts(WIDE)
    assert mounts["/run/berth/control.key"] == "/etc/berth/instances/wide-01.key"
    assert mounts["/data/triton/models"] == "/data/triton/models"
    assert mounts["/data/triton/weights"] == "/data/triton/weights"


def test_declared_variables_reach_the_server() -> None:
    set_here = changed("instances/triton@0/environment", {"B": "2", "A": "1"})
    assert container.environment(plan_of(set_here).instances[0]) == ["A=1", "B=2"]
    assert container.environment(WIDE) == []


def test_http_and_metrics_get_the_declared_ports() -> None:
    assert container.published_ports(WIDE) == {8000: 8010, 8002: 8110}
