"""The scripts that a host runs, run by a real shell with a real nginx, below another root."""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from components.renderers import gateway_config, gateway_setup, gateway_unit
from models.gateway import DemoRoutes, Gateway
from models.host import Restart
from tests.gateway_nginx.conftest import CLINIC, DESK
from tests.gateway_nginx.declared import demo, endpoint, role
from tests.gateway_nginx.engine import Engine
from tests.gateway_nginx.running import until
from tests.providers.local_sshd import free_port

SYSTEMCTL = """\
#!/bin/sh
# What systemd would do with the one unit there is, from the unit's own lines.
echo "$@" >> {root}/systemctl.log
unit={root}/systemd/berth-gateway.service
running() {{ [ -s {root}/run/nginx.pid ] && kill -0 "$(cat {root}/run/nginx.pid)" 2>/dev/null; }}
case "$1" in
is-active) running ;;
start)
  running && exit
  cd / && setsid $(sed -n 's/^ExecStart=//p' $unit) >/dev/null 2>{root}/error.log 9>&- &
  for i in $(seq 100); do running && exit; sleep 0.05; done; exit 1 ;;
reload)
  $(sed -n 's/^ExecReload=\\(.*nginx.*\\)/\\1/p' $unit) || exit
  kill -HUP "$(cat {root}/run/nginx.pid)" ;;
is-enabled) [ -e {root}/enabled ] ;;
enable) touch {root}/enabled ;;
disable) ! running || kill "$(cat {root}/run/nginx.pid)"; rm -f {root}/enabled ;;
esac
"""


class FakeHost:
    """A root of its own; paths in scripts are moved below it, nothing else is changed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.port = free_port()
        for folder in ("bin", "etc", "run", "systemd"):
            (root / folder).mkdir()
        for name, text in (
            ("systemctl", SYSTEMCTL.format(root=root)),
            ("journalctl", f"#!/bin/sh\ncat {root}/error.log\n"),
            ("useradd", "#!/bin/sh\n"),
            ("userdel", "#!/bin/sh\n"),
        ):
            (root / "bin" / name).write_text(text)
            (root / "bin" / name).chmod(0o755)

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script as the host's root would."""
        moved = (
            script.replace("/etc/berth", f"{self.root}/etc")
            .replace("/run/berth-gateway", f"{self.root}/run")
            .replace("/etc/systemd/system", f"{self.root}/systemd")
            .replace(gateway_config.Place().access_log, f"{self.root}/access.log")
        )
        user = r"(-g |user |id -u )berth-gateway\b"
        moved = re.sub(user, r"\1www-data", moved)
        path = f"{self.root}/bin:{os.environ['PATH']}"
        return subprocess.run(
            ["sh", "-eu"],
            input=moved,
            text=True,
            capture_output=True,
            check=False,
            env={"PATH": path},
            timeout=60,
        )

    def done(self, script: str) -> None:
        """Run a script that must succeed."""
        done = self.run(script)
        assert done.returncode == 0, done.stderr

    def setup(self, **changed: object) -> str:
        """The script that sets the gateway up."""
        declared = {"address": "127.0.0.1", "port": self.port, "workers": 1, **changed}
        return gateway_setup.setup(Gateway.model_validate(declared), Restart())

    def ask(self, key: str) -> httpx.Response:
        """The roles of a key, over TLS that is verified."""
        certificate = f"{self.root}/etc/gateway/tls/cert.pem"
        with httpx.Client(verify=_trusting(certificate)) as client:
            return client.get(
                f"https://localhost:{self.port}/v1/models",
                headers={"Authorization": f"Bearer {key}"},
            )

    def systemctl(self) -> list[str]:
        """What systemctl was told since last asked."""
        log = self.root / "systemctl.log"
        said = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [line.split()[0] for line in said]


def _trusting(certificate: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificate)


@pytest.fixture
def host() -> Iterator[FakeHost]:
    if os.geteuid() != 0:
        pytest.skip("the scripts are root's")
    # Not pytest's own folder: that is closed to the workers' user.
    root = Path(tempfile.mkdtemp(prefix="gwh-", dir="/tmp"))
    root.chmod(0o755)
    fake = FakeHost(root)
    yield fake
    pid = root / "run/nginx.pid"
    if pid.exists():
        os.kill(int(pid.read_text()), 15)
        until(lambda: not pid.exists(), "nginx has ended")
    shutil.rmtree(root)


def desk_of(engine: Engine) -> DemoRoutes:
    return demo("desk", DESK, {"architect": role(engine.address)})


def test_a_gateway_is_set_up_serves_demos_and_goes_again(host: FakeHost, engine: Engine) -> None:
    host.done(host.setup())
    assert host.ask(DESK).status_code == 401
    assert "reload" not in host.systemctl()
    host.done(gateway_setup.put_demo(desk_of(engine)))
    assert host.ask(DESK).json()["data"][0]["id"] == "architect"
    host.done(gateway_setup.put_demo(demo("clinic", CLINIC, {"nurse": role(engine.address)})))
    host.done(gateway_setup.drop_demo("desk"))
    assert host.ask(DESK).status_code == 401
    assert host.ask(CLINIC).status_code == 200
    assert "reload" not in host.systemctl()
    refused = host.run(gateway_setup.teardown())
    assert refused.returncode == 1
    assert "still holds: clinic.json" in refused.stderr
    host.done(gateway_setup.drop_demo("clinic"))
    host.done(gateway_setup.teardown())
    assert not (host.root / "etc/gateway").exists()
    assert [path.name for path in (host.root / "etc").iterdir()] == []
    host.done(gateway_setup.drop_demo("clinic"))
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
    host.done(gateway_setup.put_demo(desk_of(engine)))
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
    host.done(gateway_setup.put_demo(desk_of(engine)))
    taken = demo("clinic", DESK, {"nurse": role(engine.address)})
    keyless = demo("desk", DESK, {"a": role(engine.address, openai=endpoint("x", key="k"))})
    for routes, says in ((taken, "is also a key of demo `desk`"), (keyless, "no such key")):
        refused = host.run(gateway_setup.put_demo(routes))
        assert refused.returncode == 1
        assert says in refused.stderr
        assert refused.stderr.endswith("  It was left as it is.\n")
    assert host.ask(DESK).json()["data"][0]["id"] == "architect"
    assert [path.name for path in (host.root / "etc/gateway/routes.d").iterdir()] == ["desk.json"]


def test_a_gateway_that_was_ended_by_force_starts_again_with_what_it_had(
    host: FakeHost, engine: Engine
) -> None:
    host.done(host.setup())
    host.done(gateway_setup.put_demo(desk_of(engine)))
    master = (host.root / "run/nginx.pid").read_text().strip()
    children = subprocess.run(["pgrep", "-P", master], capture_output=True, text=True, check=True)
    for pid in (master, *children.stdout.split()):
        os.kill(int(pid), 9)
    for left in ("nginx.pid", "status.sock"):  # as systemd does with the whole folder
        (host.root / "run" / left).unlink()
    host.done(gateway_setup.put_demo(demo("clinic", CLINIC, {"nurse": role(engine.address)})))
    assert host.ask(DESK).status_code == 200
    assert host.ask(CLINIC).status_code == 200


def test_keys_of_engines_are_for_root_and_the_gateway_alone(host: FakeHost, engine: Engine) -> None:
    host.done(host.setup())
    routes = demo(
        "desk", DESK, {"a": role(engine.address, openai=endpoint(engine.address, key="k"))}
    )
    host.done(gateway_setup.put_demo(routes, {"k": "engine-secret"}))
    file = host.root / "etc/gateway/secrets.d/desk.json"
    assert json.loads(file.read_text()) == {"k": "engine-secret"}
    assert file.stat().st_mode & 0o777 == 0o640
    assert file.parent.stat().st_mode & 0o777 == 0o750
    assert (host.root / "etc/gateway/tls/key.pem").stat().st_mode & 0o077 == 0
    for other in (host.root / "etc/gateway").rglob("*"):
        if other.is_file() and other != file:
            assert "engine-secret" not in other.read_text()
    assert DESK not in (host.root / "etc/gateway/routes.d/desk.json").read_text()


def test_a_host_without_a_gateway_is_told_so(host: FakeHost, engine: Engine) -> None:
    refused = host.run(gateway_setup.put_demo(desk_of(engine)))
    assert refused.returncode == 1
    assert refused.stderr.startswith("this host has no gateway")


def test_the_unit_is_the_gateways_own() -> None:
    assert gateway_unit.NAME != "nginx.service"
    host_setup = gateway_setup.setup(Gateway(), Restart())
    assert f"systemctl enable --quiet {gateway_unit.NAME}" in host_setup
