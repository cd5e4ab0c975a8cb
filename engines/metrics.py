"""What an engine counts, under one set of names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True)
class Timing:
    """A histogram's sum in seconds and its count, since the engine started."""

    sum_s: float
    count: int


@dataclass(frozen=True)
class Metrics:
    """Gauges are of now, totals since the engine started. None: the engine does not say."""

    requests_running: int | None = None
    requests_waiting: int | None = None
    requests_done_total: int | None = None
    prompt_tokens_total: int | None = None
    generation_tokens_total: int | None = None
    kv_cache_share: float | None = None
    """Of the KV cache's blocks in use, 0 to 1."""
    time_to_first_token: Timing | None = None
    inter_token: Timing | None = None
    queue_time: Timing | None = None
    request_time: Timing | None = None

    def known(self) -> dict[str, int | float | Timing]:
        """Name → value of what the engine says."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in found.items() if value is not None}


class Samples:
    """Prometheus text, summed over the labels that are not asked for."""

    def __init__(self, text: str, **labels: str) -> None:
        """Those with these labels. Raises ValueError where the text is not Prometheus's."""
        self._samples = [
            (sample.name, sample.labels, sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if labels.items() <= sample.labels.items()
        ]

    def _found(self, names: tuple[str, ...], labels: dict[str, str]) -> Iterator[float]:
        for name in names:
            values = [
                value
                for has, its, value in self._samples
                if has == name and labels.items() <= its.items()
            ]
            if values:
                yield sum(values)
                return

    def number(self, *names: str, **labels: str) -> int | None:
        """The first of `names` that is there, as a whole number."""
        return next((round(value) for value in self._found(names, labels)), None)

    def share(self, *names: str, **labels: str) -> float | None:
        """The first of `names` that is there, as it is."""
        return next(self._found(names, labels), None)

    def timing(self, *names: str, **labels: str) -> Timing | None:
        """The first histogram of `names` that is there, in seconds."""
        sums = self.share(*(f"{name}_sum" for name in names), **labels)
        count = self.number(*(f"{name}_count" for name in names), **labels)
        return None if sums is None or count is None else Timing(sums, count)
