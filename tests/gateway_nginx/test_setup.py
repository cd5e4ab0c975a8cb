"""The scripts that a host runs, run by a real shell with a real nginx, below another root."""

from __future__ import annotations

import os
import subprocess

import pytest

from components.renderers import gateway_setup, gateway_unit
from host.routes import remove
from models.gateway import Gateway
from models.host import Restart
from models.refusal import Refusal
from tests.gateway_nginx.conftest import CLINIC, DESK
from tests.gateway_nginx.declared import demo, role
from tests.gateway_nginx.demo_file import DemoRoutes
from tests.gateway_nginx.engine import Engine
from tests.gateway_nginx.fake_host import FakeHost


def desk_of(engine: Engine) -> DemoRoutes:
    return demo("desk", DESK, {"architect": role(engine.address)})


def test_a_gateway_is_set_up_serves_demos_and_goes_again(host: FakeHost, engine: Engine) -> None:
    host.done(host.setup())
    assert host.ask(DESK).status_code == 401
    assert "reload" not in host.systemctl()
    host.put(desk_of(engine))
    assert host.ask(DESK).json()["data"][0]["id"] == "architect"
    host.put(demo("clinic", CLINIC, {"nurse": role(engine.address)}))
    remove(host.gateway, {"demo": "desk", "role": None})
    assert host.ask(DESK).status_code == 401
    assert host.ask(CLINIC).status_code == 200
    assert "reload" not in host.systemctl()
    refused = host.run(gateway_setup.teardown())
    assert refused.returncode == 1
    assert "still holds: clinic.json" in refused.stderr
    remove(host.gateway, {"demo": "clinic", "role": None})
    host.done(gateway_setup.teardown())
    assert not (host.root / "etc/gateway").exists()
    assert [path.name for path in (host.root / "etc").iterdir()] == []
    remove(host.gateway, {"demo": "clinic", "role": None})
    host.done(gateway_setup.teardown())


def test_set_up_again_changes_nothing_and_a_change_is_a_reload(host: FakeHost) -> None:
    host.done(host.setup())
    certificate = host.root / "etc/gateway/tls/cert.pem"
    before = certificate.read_bytes()
    host.systemctl()
    host.done(host.setup())
    assert not {"start", "reload", "enable", "daemon-reload"} & set(host.systemctl())
    host.done(host.setup(timeout_s=77))
    assert "reload" in host.systemctl()
    assert certificate.read_bytes() == before
    host.done(host.setup(timeout_s=77, names=["gpu.example", "10.0.0.7"]))
    assert "reload" in host.systemctl()
    shown = subprocess.run(
        ["openssl", "x509", "-noout", "-ext", "subjectAltName", "-in", certificate],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "DNS:gpu.example, IP Address:10.0.0.7" in shown.stdout


def test_a_configuration_that_nginx_does_not_take_leaves_the_gateway_as_it_was(
    host: FakeHost, engine: Engine
) -> None:
    host.done(host.setup())
    host.put(desk_of(engine))
    missing = {"certificate": "/etc/berth/none.pem", "key": "/etc/berth/none.key"}
    refused = host.run(host.setup(tls=missing))
    assert refused.returncode == 1
    assert "none.pem" in refused.stderr
    assert refused.stderr.endswith("  The gateway was left as it is.\n")
    assert host.ask(DESK).status_code == 200
    assert "none.pem" not in (host.root / "etc/gateway/nginx.conf").read_text()


def test_routes_that_cannot_be_served_are_refused_and_the_old_ones_stay(
    host: FakeHost, engine: Engine
) -> None:
    host.done(host.setup())
    host.put(desk_of(engine))
    taken = demo("clinic", DESK, {"nurse": role(engine.address)})
    far = demo("desk", DESK, {"zeal": role("10.0.0.1:80")})
    for routes, says in ((taken, "is also a key of demo `desk`"), (far, "replicas[0].address")):
        with pytest.raises(Refusal) as refused:
            host.put(routes)
        assert says in refused.value.cause
        assert refused.value.consequence == "It was left as it is."
    assert host.ask(DESK).json()["data"][0]["id"] == "architect"
    assert [path.name for path in (host.root / "etc/gateway/routes.d").iterdir()] == ["desk.json"]


def test_a_gateway_that_was_ended_by_force_starts_again_with_what_it_had(
    host: FakeHost, engine: Engine
) -> None:
    host.done(host.setup())
    host.put(desk_of(engine))
    master = (host.root / "run/nginx.pid").read_text().strip()
    children = subprocess.run(["pgrep", "-P", master], capture_output=True, text=True, check=True)
    for pid in (master, *children.stdout.split()):
        os.kill(int(pid), 9)
    for left in ("nginx.pid", "status.sock"):  # as systemd does with the whole folder
        (host.root / "run" / left).unlink()
    with pytest.raises(Refusal, match="does not answer"):
        host.put(demo("clinic", CLINIC, {"nurse": role(engine.address)}))
    host.start()
    host.put(demo("clinic", CLINIC, {"nurse": role(engine.address)}))
    assert host.ask(DESK).status_code == 200
    assert host.ask(CLINIC).status_code == 200


def test_what_lies_on_the_disk_holds_no_key_and_is_for_the_gateway_alone(
    host: FakeHost, engine: Engine
) -> None:
    host.done(host.setup())
    host.put(desk_of(engine))
    file = host.root / "etc/gateway/routes.d/desk.json"
    assert file.stat().st_mode & 0o777 == 0o640
    assert file.parent.stat().st_mode & 0o777 == 0o750
    assert (host.root / "etc/gateway/tls/key.pem").stat().st_mode & 0o077 == 0
    for each in (host.root / "etc/gateway").rglob("*"):
        assert not each.is_file() or DESK not in each.read_text()


def test_a_host_without_a_gateway_is_told_so(host: FakeHost, engine: Engine) -> None:
    with pytest.raises(Refusal, match="this host has no gateway"):
        host.put(desk_of(engine))


def test_the_unit_is_the_gateways_own() -> None:
    assert gateway_unit.NAME != "nginx.service"
    host_setup = gateway_setup.setup(Gateway(), Restart())
    assert f"systemctl enable --quiet {gateway_unit.NAME}" in host_setup
