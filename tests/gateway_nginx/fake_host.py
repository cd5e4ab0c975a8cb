"""A host for the gateway's scripts: a root of its own, systemd's part played by a script."""

from __future__ import annotations

import os
import re
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import httpx

from components.renderers import gateway_config, gateway_setup
from host.gateway import Gateway as HostGateway
from host.routes import declare, put
from models.gateway import Gateway
from models.host import Restart
from tests.gateway_nginx.demo_file import DemoRoutes
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

    @property
    def gateway(self) -> HostGateway:
        """As `berth-host` finds it."""
        return HostGateway(self.root / "etc", self.root / "run")

    def put(self, routes: DemoRoutes) -> None:
        """Give it a demo's routes as the demo's resources do."""
        plain = asdict(routes)
        about = {name: {"model": "m", "engine": "e"} for name in plain["roles"]}
        declare(self.gateway, {**plain, "keys": list(plain["keys"]), "roles": about})
        for name, route in plain["roles"].items():
            put(self.gateway, {"demo": routes.demo, "role": name, "route": route, "adapter": {}})

    def start(self) -> None:
        """Start its unit."""
        self.done("systemctl start berth-gateway.service")

    def ask(self, key: str) -> httpx.Response:
        """The roles of a key, over TLS that is verified."""
        certificate = f"{self.root}/etc/gateway/tls/cert.pem"
        with httpx.Client(verify=_trusting(certificate)) as client:
            return client.get(
                f"https://localhost:{self.port}/v1/models",
                headers={"Authorization": f"Bearer {key}"},
            )

    def post(self, key: str, body: dict[str, object] | Iterator[bytes]) -> httpx.Response:
        """A completion; the body may come in pieces."""
        certificate = f"{self.root}/etc/gateway/tls/cert.pem"
        with httpx.Client(verify=_trusting(certificate), timeout=20) as client:
            return client.post(
                f"https://localhost:{self.port}/v1/completions",
                headers={"Authorization": f"Bearer {key}"},
                json=body if isinstance(body, dict) else None,
                content=None if isinstance(body, dict) else body,
            )

    def systemctl(self) -> list[str]:
        """What systemctl was told since last asked."""
        log = self.root / "systemctl.log"
        said = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [line.split()[0] for line in said]


def _trusting(certificate: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificate)
