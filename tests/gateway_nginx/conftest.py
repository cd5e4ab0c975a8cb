"""One gateway before two engines for most tests; those that break something start their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from models.gateway import Gateway, TlsFiles
from tests.gateway_nginx.declared import demo, endpoint, gateway, role
from tests.gateway_nginx.demo_file import DemoRoutes
from tests.gateway_nginx.engine import Engine
from tests.gateway_nginx.fake_host import FakeHost
from tests.gateway_nginx.running import RunningGateway, until

ROOT = Path(__file__).parents[2]
DESK, CLINIC = "desk-" + "k" * 40, "clinic-" + "k" * 40
Started = Callable[..., RunningGateway]


@pytest.fixture(scope="session", autouse=True)
def _nginx() -> None:
    subprocess.run([ROOT / "tools/nginx"], check=True)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """The engine of demo `desk`."""
    running = Engine()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def other_engine() -> Iterator[Engine]:
    """The engine of demo `clinic`."""
    running = Engine()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def shared(engine: Engine, other_engine: Engine) -> Iterator[RunningGateway]:
    """Two demos: `desk` with four roles and `clinic` with one."""
    desk = demo(
        "desk",
        DESK,
        {
            "architect": role(engine.address, fallback="gemma-moe"),
            "sentry": role(engine.address),
            "auditor": role(
                openai=None,
                framing=None,
                kserve=None,
                model="llama",
                state="not loaded",
                reason="its engine is being exchanged",
                retry_after_s=17,
            ),
            "own-name": role(
                model="named-model",
                openai=endpoint(engine.address),
                framing=None,
                kserve=None,
            ),
        },
    )
    clinic = demo("clinic", CLINIC, {"nurse": role(other_engine.address, model="med")})
    running = RunningGateway(gateway(max_body_mib=1), desk, clinic)
    yield running
    running.stop()


@pytest.fixture
def started() -> Iterator[Started]:
    """Starts gateways that end with the test."""
    running: list[RunningGateway] = []

    def start(declared: Gateway, *demos: DemoRoutes) -> RunningGateway:
        running.append(RunningGateway(declared, *demos))
        return running[-1]

    yield start
    for each in running:
        each.stop()


@pytest.fixture
def engines() -> Iterator[Callable[..., Engine]]:
    """Starts engines that end with the test."""
    running: list[Engine] = []

    def start(**changed: Any) -> Engine:
        running.append(Engine(**changed))
        return running[-1]

    yield start
    for each in running:
        each.stop()


def client(running: RunningGateway, key: str | None, **options: Any) -> httpx.Client:
    """A client with a key."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.Client(base_url=running.url, headers=headers, timeout=20, **options)


@pytest.fixture(scope="module")
def desk(shared: RunningGateway) -> Iterator[httpx.Client]:
    """A client with the key of demo `desk`."""
    with client(shared, DESK) as open_client:
        yield open_client


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    """Of 127.0.0.1, signed with its own key."""
    place = tmp_path_factory.mktemp("tls")
    words = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=x"
    )
    words += f" -addext subjectAltName=IP:127.0.0.1 -keyout {place}/key.pem -out {place}/cert.pem"
    subprocess.run(words.split(), check=True, capture_output=True)
    return TlsFiles(certificate=f"{place}/cert.pem", key=f"{place}/key.pem")


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
