"""What a stack declares to the engine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.runtime.rpc import is_rpc_secret, unwrap_rpc_secret

from components.resources.stack import compose
from models.plan import Plan
from models.planning import make_plan
from models.stack import StackConfig
from models.validation import parse
from tests.declarations import G0, G1, SECTIONS, changed, plan_of, with_replicas
from tests.resources.recording import Recorder

CONTAINER = "docker:index/container:Container"
IMAGE = "docker:index/remoteImage:RemoteImage"
COMMAND = "command:remote:Command"
CLAIMS = "pulumi-python:dynamic/berth:Claims"
ENTRY = "pulumi-python:dynamic/berth:RepositoryEntry"
MODEL = "pulumi-python:dynamic/berth:TritonModel"
SERVED = "pulumi-python:dynamic/berth:ServedModel"
PRIVATE_KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nno real one\n"


def with_key_files(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "id").write_text(PRIVATE_KEY)
    sections = changed("hosts/alpha/ssh/private_key_file", "id")
    sections["hosts"]["beta"]["ssh"]["private_key_file"] = "id"
    return sections


def declared(plan: Plan, project: Path) -> tuple[Recorder, dict[str, Any]]:
    """All resources of a plan, and the stack's outputs."""
    recorder = Recorder()
    # As the SDK's own test decorator does: a loop of the test's, and every apply awaited.
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(recorder, project="berth", stack="test", preview=False)
    seen: dict[str, Any] = {}

    @pulumi.runtime.test  # type: ignore[untyped-decorator]  # The SDK leaves it untyped.
    def program() -> pulumi.Output[None]:
        outputs = compose(plan, project)
        return pulumi.Output.from_input(outputs).apply(seen.update)

    program()
    return recorder, seen


@pytest.fixture
def both(tmp_path: Path) -> tuple[Recorder, dict[str, Any]]:
    return declared(plan_of(with_key_files(tmp_path)), tmp_path)


def test_each_instance_is_one_container_pinned_to_its_gpus_by_uuid(
    both: tuple[Recorder, dict[str, Any]],
) -> None:
    containers = both[0].of_type(CONTAINER)
    assert sorted(containers) == ["triton-0", "triton-b0", "triton-wide-01"]
    (request,) = containers["triton-wide-01"]["deviceRequests"]
    assert request["driver"] == "cdi"
    assert request["deviceIds"] == [f"nvidia.com/gpu={G0}", f"nvidia.com/gpu={G1}"]


def test_a_container_opens_nothing_beyond_loopback_and_mounts_read_only(
    both: tuple[Recorder, dict[str, Any]],
) -> None:
    for container in both[0].of_type(CONTAINER).values():
        assert {port["ip"] for port in container["ports"]} == {"127.0.0.1"}
        assert all(mount["readOnly"] for mount in container["mounts"])
        assert container["capabilities"] == {"drops": ["ALL"]}
        assert container["securityOpts"] == ["no-new-privileges:true"]


def test_a_container_is_started_and_restarted_by_its_unit_only(
    both: tuple[Recorder, dict[str, Any]],
) -> None:
    for container in both[0].of_type(CONTAINER).values():
        assert container["start"] is False
        assert container["restart"] == "no"
    units = both[0].of_type(COMMAND)
    assert "systemctl restart triton@wide-01.service" in units["triton@wide-01.service"]["stdin"]
    assert "CONTAINER=triton-wide-01-1a2b3c4" in units["triton@wide-01.service"]["stdin"]
    assert "disable --quiet --now triton@0.service" in units["triton@0.service"]["delete"]


def test_every_command_checks_the_hosts_key_over_a_secret_connection(
    both: tuple[Recorder, dict[str, Any]],
) -> None:
    for command in both[0].of_type(COMMAND).values():
        connection = command["connection"]
        assert is_rpc_secret(connection)
        assert unwrap_rpc_secret(connection)["hostKey"].startswith("ssh-ed25519 ")


def test_the_private_key_is_in_no_property_but_the_connections(
    both: tuple[Recorder, dict[str, Any]],
) -> None:
    for resource in both[0].resources:
        inputs = {key: value for key, value in resource.inputs.items() if key != "connection"}
        assert "PRIVATE KEY" not in str(inputs), resource.name


def test_a_model_shared_by_two_roles_is_one_entry_and_one_load(
    both: tuple[Recorder, dict[str, Any]],
) -> None:
    assert sorted(both[0].of_type(ENTRY)) == ["alpha/shop.big", "beta/shop.small"]
    models = both[0].of_type(MODEL)
    assert sorted(models) == ["shop.big/triton@wide-01", "shop.small/triton@b0"]
    assert models["shop.big/triton@wide-01"]["gpus"] == [G0, G1]
    assert models["shop.big/triton@wide-01"]["container_id"].startswith("triton-wide-01-id/")


def test_a_demo_claims_all_that_it_takes_of_a_host_at_once(
    both: tuple[Recorder, dict[str, Any]],
) -> None:
    claims = both[0].of_type(CLAIMS)
    assert sorted(claims) == ["alpha", "beta"]
    assert claims["alpha"]["holder"] == "berth/test/shop"
    assert claims["alpha"]["claims"] == [
        {
            "name": "berth/test/shop.big/triton@wide-01",
            "owner": "berth/test/shop",
            "stack": "berth/test",
            "demo": "shop",
            "roles": ["architect", "worker"],
            "model": "big",
            "entry": "shop.big",
            "engine": "triton-vllm",
            "instance": "triton@wide-01",
            "http_port": 8010,
            "control_key_file": "/etc/berth/instances/wide-01.key",
            "gpus": [{"uuid": G0, "mib": 20309}, {"uuid": G1, "mib": 20309}],
            "shared": False,
            "instead_of": "",
        }
    ]


def test_each_model_knows_its_claim(both: tuple[Recorder, dict[str, Any]]) -> None:
    for name, model in both[0].of_type(MODEL).items():
        claims = both[0].of_type(CLAIMS)[model["host"]]
        assert model["claim_name"] in [claim["name"] for claim in claims["claims"]], name
        assert model["holder"] == claims["holder"]


def test_a_host_is_taken_down_only_after_its_guard_let_it_go(
    both: tuple[Recorder, dict[str, Any]],
) -> None:
    guards = {n: c for n, c in both[0].of_type(COMMAND).items() if n.startswith("guard-")}
    assert sorted(guards) == ["guard-alpha", "guard-beta"]
    assert "berth-host guard --stack berth/test" in guards["guard-alpha"]["delete"]
    assert both[0].resources[-1].name in guards


def test_outputs_say_where_each_role_is_served(both: tuple[Recorder, dict[str, Any]]) -> None:
    outputs = both[1]
    assert outputs["roles"]["worker"] == {
        "demo": "shop",
        "model": "shop.big",
        "catalog": "big",
        "host": "alpha",
        "gpus": [G0, G1],
        "engine": "triton-vllm",
        "instance": "triton@wide-01",
        "unit": "triton@wide-01.service",
        "endpoint": "http://127.0.0.1:8010/v2/models/shop.big",
        "state": "READY",
        "serving": "big",
        "fallback": "",
        "reason": "",
        "url": "",
        "route": "",
        "replicas": [
            {
                "gpus": [G0, G1],
                "instance": "triton@wide-01",
                "unit": "triton@wide-01.service",
                "endpoint": "http://127.0.0.1:8010/v2/models/shop.big",
                "state": "READY",
            }
        ],
    }
    assert outputs["instances"]["triton@0"]["state"] == "active"
    assert outputs["instances"]["triton@0"]["endpoint"] == "http://127.0.0.1:8000"
    assert outputs["models"]["small/triton@b0"]["max_model_len"] == 8192


def test_outputs_name_every_replica_of_a_role_its_own_first(tmp_path: Path) -> None:
    sections = with_replicas(with_key_files(tmp_path))
    role = declared(plan_of(sections), tmp_path)[1]["roles"]["sentry"]
    assert role["instance"] == "triton@1"
    told = [(each["unit"], each["endpoint"], each["state"]) for each in role["replicas"]]
    assert told == [
        ("triton@1.service", "http://127.0.0.1:8001/v2/models/shop.small", "READY"),
        ("triton@0.service", "http://127.0.0.1:8000/v2/models/shop.small", "READY"),
    ]


def test_a_demo_on_another_stacks_host_declares_only_its_own_models(tmp_path: Path) -> None:
    sections = with_key_files(tmp_path)
    host_stack = parse(StackConfig, {k: sections[k] for k in ("hosts", "instances")}, "berth:")
    demo = parse(StackConfig, {"host_stack": "dev", "demo": SECTIONS["demo"]}, "berth:")
    full = plan_of(sections)
    catalog = {placement.model: placement.catalog for placement in full.placements}
    plan = make_plan("shop", demo, catalog, known_models=catalog, host_stack=host_stack)
    recorder, outputs = declared(plan, tmp_path)
    custom = {resource.typ for resource in recorder.resources if resource.custom}
    assert custom == {CLAIMS, ENTRY, MODEL}
    assert outputs["instances"] == {}
    assert sorted(outputs["roles"]) == ["architect", "sentry", "worker"]


def test_a_host_stack_without_a_demo_declares_no_model(tmp_path: Path) -> None:
    sections = with_key_files(tmp_path)
    del sections["demo"]
    recorder, outputs = declared(plan_of(sections), tmp_path)
    assert not recorder.of_type(MODEL)
    assert len(recorder.of_type(IMAGE)) == 2  # one on each host
    assert outputs["roles"] == {}


@pytest.fixture
def with_gateway(tmp_path: Path) -> tuple[Recorder, dict[str, Any]]:
    sections = with_key_files(tmp_path)
    sections["hosts"]["alpha"]["gateway"] = {"adapter": {"image": "adapter@sha256:aa"}}
    sections["hosts"]["beta"]["gateway"] = {}
    sections["images"] = {"vllm": "vllm@sha256:bb"}
    sections["demo"]["roles"]["sentry"]["engine"] = "vllm"
    return declared(plan_of(sections), tmp_path)


def test_an_adapter_reads_its_configuration_and_the_weights_and_may_do_little_else(
    with_gateway: tuple[Recorder, dict[str, Any]],
) -> None:
    made = with_gateway[0].of_type(CONTAINER)
    assert [name for name in made if name.startswith("berth-adapter")] == ["berth-adapter-alpha"]
    adapter = made["berth-adapter-alpha"]
    assert [mount["source"] for mount in adapter["mounts"]] == [
        "/etc/berth/adapter",
        "/data/triton/weights",
    ]
    assert all(mount["readOnly"] for mount in adapter["mounts"])
    assert adapter["readOnly"] is True
    assert adapter["user"] == "65530:65530"
    assert adapter["capabilities"] == {"drops": ["ALL"]}
    assert adapter["securityOpts"] == ["no-new-privileges:true"]
    assert adapter["memory"] == 2048
    assert (adapter["start"], adapter["restart"]) == (False, "no")


def test_a_gateway_is_set_up_watched_and_let_go_only_while_no_demo_has_routes(
    with_gateway: tuple[Recorder, dict[str, Any]],
) -> None:
    recorder, _ = with_gateway
    commands = recorder.of_type(COMMAND)
    assert '"port": 8443, "stack": "test"' in commands["gateway-alpha"]["stdin"]
    assert "DNS:alpha.test" in commands["gateway-alpha"]["stdin"]
    assert "routes.d still holds" in commands["gateway-alpha"]["delete"]
    for name in ("gateway", "adapter"):
        guarded = commands[f"guard-{name}-alpha"]["delete"]
        assert f"/etc/berth/{name}/routes.d still holds" in guarded
    watched = recorder.of_type("pulumi-python:dynamic/berth:RunningUnit")
    for unit in ("alpha/berth-gateway.service", "alpha/berth-adapter.service"):
        assert watched[unit]["unit"] == unit.partition("/")[2]
    assert "beta/berth-adapter.service" not in watched
    order = [resource.name for resource in recorder.resources]
    assert order.index("guard-gateway-alpha") < order.index("guard-alpha")


def test_outputs_say_how_a_gateway_is_reached(
    with_gateway: tuple[Recorder, dict[str, Any]],
) -> None:
    gateways = with_gateway[1]["gateway"]
    assert gateways["beta"]["url"] == "https://beta.test:8443"
    assert gateways["beta"]["adapter"] is None
    alpha = gateways["alpha"]
    assert (alpha["unit"], alpha["state"]) == ("berth-gateway.service", "active")
    assert alpha["adapter"] == {
        "endpoint": "http://127.0.0.1:8300",
        "image": "adapter@sha256:aa",
        "unit": "berth-adapter.service",
        "state": "active",
    }


def test_a_model_of_several_entries_is_loaded_once_all_are_written(tmp_path: Path) -> None:
    sections = with_key_files(tmp_path)
    sections["demo"]["roles"]["sentry"]["engine"] = "triton-batcher"
    small = {"weights": "small", "engine_dir": "small-built", "max_model_len": 4096}
    recorder, outputs = declared(plan_of(sections, small=small), tmp_path)
    entries = recorder.of_type(ENTRY)
    parts = [f"shop._{part}.small" for part in ("preprocessing", "tensorrt_llm", "postprocessing")]
    assert {f"beta/{name}" for name in ("shop.small", *parts)} <= entries.keys()
    assert entries[f"beta/{parts[1]}"]["weights"] == "/data/triton/weights/small-built"
    assert entries["beta/shop.small"]["weights"] == "/data/triton/weights/small"
    model = recorder.of_type(MODEL)["shop.small/triton@b0"]
    assert model["engine"] == "triton-batcher"
    assert model["entry_revision"] == "r1+r1+r1+r1"
    assert outputs["roles"]["sentry"]["model"] == "shop.small"


@pytest.mark.parametrize(
    ("engine", "change"),
    [
        ("triton-openai", {"engine_args": {"seed": 1}}),
        ("triton-openai-batcher", {"engine_dir": "others"}),
        ("triton-openai-batcher", {"trtllm_args": {"max_beam_width": 2}}),
    ],
)
def test_a_server_that_runs_from_entries_is_started_anew_when_they_change(
    tmp_path: Path, engine: str, change: dict[str, Any]
) -> None:
    sections = with_key_files(tmp_path) | {"images": {engine: "tri@sha256:dd"}}
    sections["demo"]["roles"]["sentry"]["engine"] = engine
    small = {"weights": "small", "engine_dir": "built", "max_model_len": 4096}

    def server(**more: Any) -> dict[str, Any]:
        recorder, _ = declared(plan_of(sections, small=small | more), tmp_path)
        return recorder.of_type(SERVED)["shop-sentry"]

    assert server()["incarnation"] == server()["incarnation"]
    assert server(**change)["incarnation"] != server()["incarnation"]
    assert server(load_timeout_s=7)["incarnation"] == server()["incarnation"]
