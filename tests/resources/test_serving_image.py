"""What is declared for an image that hosts build."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from components.resources.judged import of_plan
from models.inventory import ImageFacts, Inventory
from models.plan import Plan
from models.releases.held import held_by
from policy.reading import read as read_resources
from tests.models.rules.plans import RELEASES
from tests.models.test_build import BUILD, plan_of
from tests.models.test_readiness import GOOD
from tests.policy.showing import all_of, known
from tests.renderers.engines.served import sections
from tests.resources.recording import Recorder
from tests.resources.test_stack import CLAIMS, CONTAINER, IMAGE, declared

VERSIONS = "pulumi-python:dynamic/berth:ImageVersions"
HELD = {"vllm": "0.32.0", "transformers": "5.17.0"}


def with_build(tmp_path: Path, **instances: str) -> Plan:
    """Architect and sentry each on a server of the build, on two hosts."""
    made = sections("vllm") | {"images": {"vllm": "build:newer"}}
    made["demo"]["roles"]["sentry"]["engine"] = "vllm"
    (tmp_path / "id").write_text("no real key")
    for host in made["hosts"].values():
        host["ssh"]["private_key_file"] = "id"
    for name, image in instances.items():
        made["instances"][f"triton@{name}"]["image"] = image
    return plan_of(made)


def order(recorder: Recorder, kind: str, name: str) -> int:
    (found,) = [n for n, r in enumerate(recorder.resources) if (r.typ, r.name) == (kind, name)]
    return found


def test_it_is_built_once_on_each_host_that_uses_it(tmp_path: Path) -> None:
    recorder, outputs = declared(with_build(tmp_path, **{"0": "build:newer"}), tmp_path)
    built = {n: i for n, i in recorder.of_type(IMAGE).items() if "build" in i}
    assert sorted(built) == ["alpha/newer", "beta/newer"]
    for image in built.values():
        assert image["name"] == BUILD.reference
        assert image["keepLocally"] is True
        assert image["build"] == {
            "context": "serving/newer",
            "dockerfile": "Dockerfile",
            "buildArgs": {},
            "useLegacyBuilder": True,
        }
    assert outputs["builds"]["beta/newer"]["reference"] == BUILD.reference


def test_containers_run_the_image_by_its_id(tmp_path: Path) -> None:
    recorder, outputs = declared(with_build(tmp_path), tmp_path)
    containers = recorder.of_type(CONTAINER)
    for name, host in (("shop-architect", "alpha"), ("shop-sentry", "beta")):
        assert containers[name]["image"] == outputs["builds"][f"{host}/newer"]["image"]


def test_it_is_judged_for_the_models_that_it_runs_on_that_host(tmp_path: Path) -> None:
    versions = declared(with_build(tmp_path), tmp_path)[0].of_type(VERSIONS)
    assert {name: each["models"] for name, each in versions.items()} == {
        "alpha/newer": {"big": "big-nvfp4"},
        "beta/newer": {"small": "small"},
    }


def test_nothing_is_claimed_or_made_before_it_is_judged(tmp_path: Path) -> None:
    recorder = declared(with_build(tmp_path), tmp_path)[0]
    judged = order(recorder, VERSIONS, "alpha/newer")
    assert order(recorder, IMAGE, "alpha/newer") < judged
    assert judged < order(recorder, CLAIMS, "alpha")
    assert judged < order(recorder, CONTAINER, "shop-architect")


def test_an_image_that_no_build_names_is_pulled_as_before(tmp_path: Path) -> None:
    recorder = declared(with_build(tmp_path), tmp_path)[0]
    assert recorder.of_type(IMAGE)["alpha/triton@sha256:aa"]["name"] == "triton@sha256:aa"


def test_the_pack_judges_a_build_as_the_program_does(tmp_path: Path) -> None:
    plan = with_build(tmp_path)
    facts = ImageFacts(reference=BUILD.reference, id="sha256:0a", versions=HELD)
    inventory = Inventory.model_validate(GOOD).model_copy(update={"images": (facts,)})
    judged = of_plan(plan, {"alpha": inventory}, RELEASES, {})
    recorder, _ = declared(plan, tmp_path)
    reading = read_resources([known(judged), *all_of(recorder)], RELEASES)
    assert reading.trouble == ()
    servers: dict[str, Any] = {each.name: each for each in reading.judged.instances}
    assert servers["shop-architect"].image == BUILD.reference
    assert reading.judged.builds == judged.builds
    held = held_by(BUILD.reference, reading.judged.releases)
    assert held is not None
    assert held.transformers == "5.17.0"


def test_hosts_that_hold_different_things_under_one_name_settle_nothing(tmp_path: Path) -> None:
    plan = with_build(tmp_path)
    seen = {
        host: Inventory.model_validate(GOOD).model_copy(
            update={"images": (ImageFacts(reference=BUILD.reference, id=host, versions=versions),)}
        )
        for host, versions in (("alpha", HELD), ("beta", HELD | {"vllm": "0.31.0"}))
    }
    judged = of_plan(plan, seen, RELEASES, {})
    assert judged.builds[BUILD.reference].found is None
    assert held_by(BUILD.reference, judged.releases) is None
