"""The pack judges what will really be made, and comes to what the program judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pulumi_policy import PolicyResource
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from components.resources.judged import of_plan
from config.project import load_plan
from models.inventory import ContainerFacts, PublishedPort, ServiceFacts
from models.judged import Judged
from models.judging import RULES
from models.known import known_of, read, written
from policy import containers, loads
from policy.readable import readable
from policy.reading import KNOWN, Reading
from policy.reading import read as read_resources
from tests.models.rules.plans import GOOD, RELEASES, WEIGHTS
from tests.policy.conftest import inventory
from tests.policy.showing import all_of, known, shown, violations
from tests.resources.test_stack import declared


def both_ways(project: Path, stack: str) -> tuple[Judged, Reading]:
    """As the program judges its plan, and as the pack reads what the program declared."""
    plan = load_plan(project, stack)
    judged = of_plan(plan, inventory(plan), RELEASES, {"berth:x.y": 1, "berth:x.z": "text"})
    recorder, _ = declared(plan, project)
    return judged, read_resources([known(judged), *all_of(recorder)], RELEASES)


@pytest.mark.parametrize("stack", ["dev", "frontdesk"])
def test_the_pack_reads_what_the_program_judged(project: Path, stack: str) -> None:
    judged, reading = both_ways(project, stack)
    assert reading.trouble == ()
    by_name = sorted(judged.instances, key=lambda each: each.name)
    assert sorted(reading.judged.instances, key=lambda each: each.name) == by_name
    assert list(reading.judged.models) == list(judged.models)
    assert reading.judged.hosts == judged.hosts
    assert reading.judged.plain_config == judged.plain_config
    assert reading.judged.stack == judged.stack


@pytest.mark.parametrize(
    "engine", ["vllm", "trtllm-serve", "triton-openai", "triton-openai-batcher"]
)
def test_the_pack_reads_servers_of_one_models_own_as_the_program_judged_them(
    project: Path, engine: str
) -> None:
    file = project / "Pulumi.dev.yaml"
    text = file.read_text().replace(
        "instance: triton@wide-01}", f"instance: triton@wide-01, engine: {engine}}}"
    )
    file.write_text(f"{text}  berth:images: {{{engine}: 'engine:1'}}\n")
    model = project / "catalog/gemma-4-31b-it-nvfp4.yaml"
    model.write_text(f"{model.read_text()}engine_dir: built\n")
    judged, reading = both_ways(project, "dev")
    assert reading.trouble == ()
    (server,) = [each for each in judged.instances if each.name == "reference-architect"]
    assert server in reading.judged.instances
    assert server.at == "berth:demo.roles.architect"
    assert sorted(reading.judged.models, key=repr) == sorted(judged.models, key=repr)


def test_the_pack_reads_a_fallback_as_the_program_judged_it(project: Path) -> None:
    file = project / "Pulumi.dev.yaml"
    fallback = "fallback: {model: gemma-4-e4b-it, instance: triton@0}"
    text = file.read_text().replace("triton@wide-01}", f"triton@wide-01, {fallback}}}")
    file.write_text(text)
    judged, reading = both_ways(project, "dev")
    assert reading.trouble == ()
    assert sorted(reading.judged.models, key=repr) == sorted(judged.models, key=repr)
    (standing_by,) = [each for each in reading.judged.models if each.instead_of]
    assert standing_by.at == "berth:demo.roles.architect.fallback"
    for rule in RULES:
        said = [str(each.refusal) for each in rule.findings(reading.judged)]
        assert not [each for each in said if "architect+worker" in each], rule.NAME


def test_a_plan_knows_its_surroundings(project: Path) -> None:
    plan = load_plan(project, "dev")
    judged = of_plan(plan, inventory(plan), RELEASES, {})
    host = judged.hosts["sandbox"]
    assert [claim.mib for claim in host.others] == [100]
    assert host.others_roles["guard"].startswith("berth/lab/toys: guard")
    assert host.others_demos == {"toys": "berth/lab"}
    assert host.others_units == {}
    assert host.taken_ports == {
        8009: "triton@9 of stack lab", 22: "something that is not Berth's"
    }  # fmt: skip
    assert [process.name for process in host.gpus[3].foreign] == ["python3"]
    assert all(model.weights == WEIGHTS for model in judged.models)


def test_a_plan_knows_the_units_of_others(project: Path) -> None:
    plan = load_plan(project, "dev")
    here = inventory(plan)["sandbox"]
    guard = next(each for each in here.claims if "guard" in each.roles)
    its_own = replace(guard, instance="toys-guard", engine="vllm")
    seen = here.model_copy(update={"claims": (its_own,)})
    host = of_plan(plan, {"sandbox": seen}, RELEASES, {}).hosts["sandbox"]
    assert host.others_units == {"toys-guard": its_own.said()}


def test_a_port_of_an_own_instance_is_not_in_its_way_while_it_runs(project: Path) -> None:
    plan = load_plan(project, "dev")
    here = inventory(plan)["sandbox"]
    port = PublishedPort(address="127.0.0.1", port=8000, inside=8000)
    for state, taken in (("running", False), ("exited", True)):
        ours = ContainerFacts(
            name="triton-0-1", instance="triton@0", stack="dev", state=state, ports=(port,)
        )
        docker = here.docker.model_copy(update={"containers": (ours,)})
        seen = here.model_copy(update={"docker": docker, "ports": (8000,)})
        host = of_plan(plan, {"sandbox": seen}, RELEASES, {}).hosts["sandbox"]
        assert (8000 in host.taken_ports) is taken


def test_a_gateways_port_is_not_in_its_own_way(project: Path) -> None:
    plan = load_plan(project, "dev")
    here = inventory(plan)["sandbox"]
    for stack, taken in (("dev", None), ("lab", "berth-gateway.service of stack lab")):
        noted = {"berth-gateway.service": ServiceFacts(port=8443, stack=stack)}
        seen = here.model_copy(update={"services": noted, "ports": (8443,)})
        host = of_plan(plan, {"sandbox": seen}, RELEASES, {}).hosts["sandbox"]
        assert host.taken_ports.get(8443) == taken


def test_the_adapter_is_judged_by_the_image_that_its_container_has(project: Path) -> None:
    judged, reading = both_ways(project, "dev")
    assert [each.name for each in judged.services] == ["berth-gateway", "berth-adapter"]
    assert reading.judged.services == judged.services
    plan = load_plan(project, "dev")
    recorder, _ = declared(plan, project)
    recorder.of_type(containers.CONTAINER)["berth-adapter-sandbox"]["image"] = "other:1"
    shown_now = read_resources([known(judged), *all_of(recorder)], RELEASES)
    assert [each.image for each in shown_now.judged.services] == ["", "other:1"]


def test_what_is_known_survives_its_way_through_the_engine() -> None:
    assert read(written(known_of(GOOD))) == known_of(GOOD)


def container(**props: Any) -> PolicyResource:
    good = {
        "labels": [{"label": "berth.instance", "value": "triton@0"}],
        "image": "own:1",
        "deviceRequests": [{"deviceIds": ["GPU-0"]}],
    }
    return shown(containers.CONTAINER, "triton-0", {**good, **props}, provider="docker-alpha")


def test_an_image_that_is_not_pulled_yet_is_known_by_its_reference() -> None:
    image = shown(containers.IMAGE, "i", {"name": "own:2", "imageId": UNKNOWN_STRING_VALUE})
    props = {"image": UNKNOWN_STRING_VALUE}
    made = container(**props)
    made.property_dependencies["image"] = [image]
    (instance,) = read_resources([made, image], RELEASES).judged.instances
    assert instance.image == "own:2"


@pytest.mark.parametrize("key", ["deviceRequests", "image", "ports", "mounts", "command", "envs"])
def test_what_is_unknown_before_it_is_made_is_refused_rather_than_passed(key: str) -> None:
    made = container(**{key: UNKNOWN_STRING_VALUE})
    made.property_dependencies[key] = [shown("random:index:String", "r", {})]
    (message,) = violations(readable, made)
    assert f"`{key}` is not known before it is made" in message
    assert "docker:index/container:Container triton-0" in message


@pytest.mark.parametrize("key", ["command", "envs"])
def test_what_docker_takes_from_the_image_is_not_the_programs(key: str) -> None:
    reading = read_resources([container(**{key: UNKNOWN_STRING_VALUE})], RELEASES)
    assert reading.trouble == ()
    assert reading.judged.instances[0].environment == {}


def test_containers_that_are_not_instances_are_none_of_its_business() -> None:
    other = shown(containers.CONTAINER, "nginx", {"image": UNKNOWN_STRING_VALUE})
    assert not violations(readable, other)


LOADED = {
    "host": "alpha",
    "model": "shop.big",
    "instance": "triton@0",
    "gpus": ["GPU-0"],
    "claim_mib": 20309.0,
    "owner": "shop: big",
    "holder": "berth/dev/shop",
    "claim_name": "berth/dev/shop.big/triton@0",
}


def test_what_this_run_deletes_counts_no_more() -> None:
    going = shown(loads.MODEL, "big", LOADED | {"state": "READY"})
    label = {"label": "berth.instance", "value": "triton@old"}
    old, new = container(labels=[label]), container()
    old.name = "triton-old"
    reading = read_resources([known(Judged("berth/dev"), new), going, old, new], RELEASES)
    assert (reading.trouble, reading.judged.models) == ((), ())
    assert [each.name for each in reading.judged.instances] == ["triton@0"]


def test_a_model_that_is_loaded_without_a_claim_is_refused_and_still_counted() -> None:
    model = shown(loads.MODEL, "big", LOADED)
    messages = violations(readable, model)
    assert any("it is loaded without a claim" in message for message in messages)
    (judged,) = read_resources([model], RELEASES).judged.models
    assert [(claim.gpu, claim.mib) for claim in judged.claims] == [("GPU-0", 20309)]


def test_a_model_that_is_loaded_on_other_gpus_than_it_claims_is_refused() -> None:
    record = {
        "name": LOADED["claim_name"],
        "owner": "berth/dev/shop",
        "entry": "shop.big",
        "instance": "triton@0",
        "gpus": [{"uuid": "GPU-1", "mib": 20309.0}],
    }
    claims = shown(loads.CLAIMS, "alpha", {"host": "alpha", "claims": [record]})
    messages = violations(readable, claims, shown(loads.MODEL, "big", LOADED))
    assert any("is loaded otherwise than" in message for message in messages)


def test_a_changed_entry_is_judged_as_it_is_written_not_as_it_was_planned(project: Path) -> None:
    plan = load_plan(project, "dev")
    judged = of_plan(plan, {}, RELEASES, {})
    recorder, _ = declared(plan, project)
    for each in recorder.resources:
        if each.typ == loads.ENTRY:
            text = each.inputs["files"]["config.pbtxt"].replace("KIND_MODEL", "KIND_GPU")
            each.inputs["files"]["config.pbtxt"] = text
    reading = read_resources([known(judged), *all_of(recorder)], RELEASES)
    kinds = {rule.NAME for rule in RULES if any(f.certain for f in rule.findings(reading.judged))}
    assert kinds == {"one-engine"}


values: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.just(UNKNOWN_STRING_VALUE)
    | st.text(max_size=6)
    | st.sampled_from(["alpha", "triton@0", "GPU-0", "own:1", '{"a":', "{}", "[1]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)
KEYS = (
    "labels", "image", "deviceRequests", "ports", "mounts", "volumes", "command", "envs", "host",
    "networkMode", "gpus", "claims", "files", "entry", "model", "instance", "claim_mib", "owner",
    "holder", "claim_name", "stdin", "name", "imageId", "known",
)  # fmt: skip
KINDS = (
    containers.CONTAINER, containers.IMAGE, containers.COMMAND, loads.CLAIMS, loads.ENTRY,
    loads.MODEL, KNOWN,
)  # fmt: skip
nested = st.lists(
    st.dictionaries(
        st.sampled_from(["label", "value", "ip", "internal", "external", "source", "target",
                         "readOnly", "deviceIds", "hostPath", "uuid", "mib", "name", "gpus"]),
        values | st.just("berth.instance"),
    ),
    max_size=2,
)  # fmt: skip
anything = st.lists(
    st.builds(
        lambda kind, name, props, provider: shown(kind, name, props, provider=provider),
        st.sampled_from(KINDS),
        st.text(max_size=4),
        st.dictionaries(st.sampled_from(KEYS), values | nested),
        st.sampled_from(["", "docker-alpha", "docker-"]),
    ),
    max_size=5,
)


@settings(max_examples=200, suppress_health_check=list(HealthCheck), deadline=None)
@given(anything)
def test_no_resource_makes_a_policy_raise(resources: list[PolicyResource]) -> None:
    reading = read_resources(resources, RELEASES)
    for refusal in reading.trouble:
        assert refusal.cause
    for rule in RULES:
        rule.findings(reading.judged)


@settings(max_examples=100, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.sampled_from(["labels", "ports", "envs", "deviceRequests", "command"]), values)
def test_a_damaged_instance_is_refused_or_judged_but_never_overlooked(key: str, value: Any) -> None:
    made = container(**{key: value})
    # Made by Berth's own component, so that labels are not all that tells.
    made.parent = shown(containers.INSTANCES[0], "triton@0", {"host": "alpha"})
    reading = read_resources([made], RELEASES)
    assert reading.judged.instances or reading.trouble
