"""What the gateway adds to an answer's time, beside what LiteLLM's proxy adds, in the same run.

wrk and the upstream share one core, the proxies have another, where only one of them is asked at a
time. With two workers each, everything shares both cores.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from models.gateway import RoleRoute, TlsFiles
from tests.bench.clock import Row, say
from tests.bench.litellm_proxy import KEY as LITELLM_KEY
from tests.bench.litellm_proxy import litellm_proxy, version
from tests.bench.load import (
    Figures,
    Target,
    by_turns,
    chat,
    first_token_ms,
    on_cores,
    require_wrk,
)
from tests.bench.upstream import FIRST_TOKEN_S, MODEL, TOKENS, Upstream, upstream
from tests.gateway_nginx.declared import demo, gateway, role
from tests.gateway_nginx.running import RunningGateway

KEY = "k" * 43
CONNECTIONS = (1, 16, 128)
ROUNDS = 3
SECONDS = 1
STREAMS = 16
LITELLM_TIMES = 5
"""Its runs are longer, or at 128 connections each would answer but once."""
OPENSSL = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=bench "
    "-keyout {0} -out {1}"
)
"""A key of the kind that Berth makes."""


def _roles(ports: Upstream) -> dict[str, RoleRoute]:
    kinds = {"whole": ports.whole, "stream": ports.stream, "slow": ports.slow}
    return {
        name: role(f"127.0.0.1:{port}", framing=None, kserve=None) for name, port in kinds.items()
    }


@contextmanager
def berth(ports: Upstream, workers: int, *, tls: bool) -> Iterator[dict[str, Target]]:
    """Berth's gateway, as a target for each kind of answer."""
    with tempfile.TemporaryDirectory(prefix="tls-") as place:
        files = (f"{place}/key.pem", f"{place}/cert.pem")
        made = TlsFiles(certificate=files[1], key=files[0])
        if tls:
            words = OPENSSL.format(*files).split()
            subprocess.run(words, check=True, capture_output=True)
        declared = gateway(workers=workers, connections_per_key=10_000, tls=made if tls else "off")
        running = RunningGateway(declared, demo("bench", KEY, _roles(ports)))
        try:
            scheme, name = ("https", "Berth, TLS") if tls else ("http", "Berth")
            url, pids = f"{scheme}://{declared.listen}", tuple(running.workers())
            yield {kind: Target(name, url, kind, KEY, pids=pids) for kind in _roles(ports)}
        finally:
            running.stop()


@contextmanager
def targets(ports: Upstream, workers: int) -> Iterator[dict[str, list[Target]]]:
    """By kind of answer: direct, Berth, Berth with TLS, LiteLLM."""
    with ExitStack() as stack:
        plain = stack.enter_context(berth(ports, workers, tls=False))
        tls = stack.enter_context(berth(ports, workers, tls=True))
        models = {"whole": ports.whole, "stream": ports.stream, "slow": ports.slow}
        url, pids = stack.enter_context(litellm_proxy(models, workers))
        yield {
            kind: [
                Target("direct", f"http://127.0.0.1:{port}", MODEL),
                plain[kind],
                tls[kind],
                Target("LiteLLM", url, kind, LITELLM_KEY, pids=pids, times=LITELLM_TIMES),
            ]
            for kind, port in models.items()
        }


def rows() -> list[Row]:
    """With one worker each; three minutes."""
    with _ready() as (load, proxies, ports), ExitStack() as stack:
        with on_cores(proxies):
            one = stack.enter_context(targets(ports, 1))
        with on_cores(load):
            took = {
                count: _measured(one, "whole", count, "one worker each") for count in CONNECTIONS
            }
            streams = _measured(one, "stream", STREAMS, "one worker each")
            return [
                *_added(took, "1 worker each"),
                _capacity("answers", took[CONNECTIONS[-1]]),
                _capacity(f"streams of {TOKENS} tokens", streams),
                *_first_tokens(one),
            ]


def rows_of_two() -> list[Row]:
    """With two workers each; a minute and a half."""
    with _ready() as (load, proxies, ports), on_cores(load, proxies), targets(ports, 2) as two:
        took = {count: _measured(two, "whole", count, "two each") for count in CONNECTIONS[1:]}
        return _added(took, "2 workers each")


@contextmanager
def _ready() -> Iterator[tuple[int, int, Upstream]]:
    """The load's core, the proxies' core, and the upstream on the former."""
    require_wrk()
    say(f"against LiteLLM {version()}")
    cores = sorted(os.sched_getaffinity(0))
    with on_cores(cores[0]), upstream() as ports:
        yield cores[0], cores[-1], ports


def _measured(
    by_kind: dict[str, list[Target]], kind: str, connections: int, workers: str
) -> dict[str, Figures]:
    say(f"{kind} at {connections} connections, {workers}")
    body = chat("", stream=kind != "whole")
    return by_turns(by_kind[kind], body, connections, rounds=ROUNDS, seconds=SECONDS)


def _added(took: dict[int, dict[str, Figures]], workers: str) -> list[Row]:
    """What each adds to the direct answer's time."""
    return [
        (
            f"{figure} added at {connections} connections, {workers}",
            ", ".join(_ratios(of, figure)),
            "≤ 1/20 of LiteLLM's",
        )
        for connections, of in took.items()
        for figure in ("p50", "p99")
    ]


def _ratios(took: dict[str, Figures], figure: str) -> Iterator[str]:
    added = {
        name: getattr(of, figure) - getattr(took["direct"], figure) for name, of in took.items()
    }
    for name in ("Berth", "Berth, TLS"):
        adds = added[name] > 0
        share = f"1/{added['LiteLLM'] / added[name]:.0f}" if adds else "nothing added"
        yield f"{name} {added[name]:.2f} ms ({share}; ±{took[name].spread * 50:.0f} %)"
    yield f"LiteLLM {added['LiteLLM']:.0f} ms"


def _capacity(what: str, took: dict[str, Figures]) -> Row:
    shown = [
        f"{name} {of.per_s:,.0f}" + (f" ({of.cpu_us:,.0f} µs each)" if of.cpu_us else "")
        for name, of in took.items()
    ]
    return (f"{what} a second, one core", ", ".join(shown), "")


def _first_tokens(by_kind: dict[str, list[Target]]) -> list[Row]:
    found = []
    for kind, requests, aim in (("slow", 100, "≤ 1.02"), ("stream", 200, "")):
        say(f"first token, upstream `{kind}`")
        ms = first_token_ms(by_kind[kind], chat("", stream=True), requests)
        took = {name: statistics.median(each) for name, each in ms.items()}
        direct = took.pop("direct")
        what = (
            f"that takes {FIRST_TOKEN_S * 1000:.0f} ms to it" if kind == "slow" else "with it ready"
        )
        shown = [f"{name} {each:.2f} ms = {each / direct:.3f}" for name, each in took.items()]
        found.append(
            (
                f"first token ÷ direct, upstream {what}",
                f"direct {direct:.2f} ms; {', '.join(shown)}",
                aim,
            )
        )
    return found
