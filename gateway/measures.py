"""What the service counts, and what its engines do, for Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric, SummaryMetricFamily

from engines.failure import EngineError
from engines.metrics import Metrics, Timing
from gateway.table import Role

_LABELS = ("role", "engine")
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Measures:
    """The service's own counts; one for each service, so that tests have theirs."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "berth_adapter_requests", "Requests that ended, by HTTP status; 499: the client went.",
            (*_LABELS, "status"), registry=self.registry,
        )  # fmt: skip
        self.running = Gauge(
            "berth_adapter_requests_running", "Requests under way.",
            _LABELS, registry=self.registry,
        )  # fmt: skip
        self.first_token = Histogram(
            "berth_adapter_time_to_first_token_seconds", "From the request to its first text.",
            _LABELS, registry=self.registry, buckets=_SECONDS,
        )  # fmt: skip
        self.duration = Histogram(
            "berth_adapter_request_seconds", "From the request to its answer's end.",
            _LABELS, registry=self.registry, buckets=_SECONDS,
        )  # fmt: skip

    async def text(self, roles: Iterable[Role]) -> bytes:
        """Prometheus's text: own counts, then every role's engine as it answers now."""
        asked = list(roles)
        found = await asyncio.gather(*(_of_engine(role) for role in asked))
        engines = CollectorRegistry()
        engines.register(_Engines(list(zip(asked, found, strict=True))))
        return generate_latest(self.registry) + generate_latest(engines)


async def _of_engine(role: Role) -> Metrics | None:
    try:
        return await role.engine.metrics()
    except EngineError:
        return None


class _Engines:
    """One name for each thing, whatever the engine calls it."""

    def __init__(self, found: list[tuple[Role, Metrics | None]]) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily(
            "berth_engine_up", "Whether the engine gave its metrics.", labels=_LABELS
        )
        families: dict[str, Metric] = {}
        for role, metrics in self._found:
            labels = [role.name, role.engine.name]
            up.add_metric(labels, 0 if metrics is None else 1)
            for name, value in (metrics or Metrics()).known().items():
                _add(families, name, labels, value)
        yield up
        yield from families.values()


def _add(
    families: dict[str, Metric], name: str, labels: list[str], value: int | float | Timing
) -> None:
    full, about = f"berth_engine_{name}", f"The engine's {name.replace('_', ' ')}."
    its = dict(zip(_LABELS, labels, strict=True))
    if isinstance(value, Timing):
        summary = SummaryMetricFamily(f"{full}_seconds", about, labels=_LABELS)
        family = families.setdefault(name, summary)
        family.add_sample(f"{full}_seconds_count", its, value.count)
        family.add_sample(f"{full}_seconds_sum", its, value.sum_s)
        return
    families.setdefault(name, GaugeMetricFamily(full, about, labels=_LABELS)).add_sample(
        full, its, value
    )
