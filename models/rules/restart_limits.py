"""A unit is restarted when its server ends, and given up when that does not help.

systemd counts starts within StartLimitIntervalSec; with RestartSec between them, the limit is
reached only if so many fit into the interval (systemd.unit(5), systemd.service(5)).
"""

from __future__ import annotations

import math
import re

from models.finding import Finding, wrong
from models.judged import Judged, JudgedInstance, JudgedService

NAME = "restart-limits"
DESCRIPTION = "Units are restarted, and a limit that can really be reached ends that."
REMEDY = "Set the host's `restart` so that burst × delay_s is less than within_s."

_UNITS = {
    "": 1.0, "s": 1, "sec": 1, "second": 1, "seconds": 1, "ms": 1e-3, "msec": 1e-3, "us": 1e-6,
    "usec": 1e-6, "m": 60, "min": 60, "minute": 60, "minutes": 60, "h": 3600, "hr": 3600,
    "hour": 3600, "hours": 3600, "d": 86400, "day": 86400, "days": 86400, "w": 604800,
    "week": 604800, "weeks": 604800,
}  # fmt: skip
_SPAN = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([a-z]*)\s*")
_DEFAULT_PAUSE_S = 0.1


def findings(judged: Judged) -> list[Finding]:
    """One for each host whose unit would not be restarted, or for ever."""
    units: dict[tuple[str, str], str] = {}
    own: list[JudgedInstance | JudgedService] = [*judged.own_instances, *judged.services]
    for instance in own:
        unit = (instance.host, instance.unit)
        units[unit] = min(instance.name, units.get(unit, instance.name))
    found = []
    for (host, text), name in sorted(units.items()):
        problem = _problem(text)
        if problem:
            found.append(
                wrong(
                    f"the unit of {name}: {problem}",
                    consequence="A server that cannot start would be started again for ever, or "
                    "one that ended would stay away.",
                    fix=_fix(text),
                    at=f"berth:hosts.{host}.restart",
                )
            )
    return found


def _problem(text: str) -> str:
    if not text.strip():
        return "nothing says how it is restarted"
    settings = _settings(text)
    restart = settings.get("Service.Restart", "no")
    if restart == "no":
        return "it has no Restart=, so it is not started again"
    shown = {key: settings.get(f"Unit.{key}", "") for key in ("StartLimitIntervalSec", _BURST)}
    for key, value in shown.items():
        if not value:
            return f"it has no {key}="
    within, burst = _seconds(shown["StartLimitIntervalSec"]), _whole(shown[_BURST])
    if within is None or burst is None:
        return f"{shown} is no time and number"
    if within <= 0:
        return f"StartLimitIntervalSec={shown['StartLimitIntervalSec']} means no limit"
    if burst <= 0:
        return f"{_BURST}={shown[_BURST]} means no limit"
    pause = _pause(settings)
    if pause is None:
        return f"RestartSec={settings.get('Service.RestartSec')} is no time"
    if burst * pause >= within:
        return (
            f"{burst} starts {pause:g} s apart take {burst * pause:g} s, and only those within "
            f"{within:g} s are counted, so the limit is never reached"
        )
    return ""


_BURST = "StartLimitBurst"


def _fix(text: str) -> str:
    settings = _settings(text)
    burst = _whole(settings.get(f"Unit.{_BURST}", "")) or 10
    pause = _pause(settings)
    delay = math.ceil(pause) if pause is not None and pause < 3600 else 2
    within = max(300, burst * delay * 2)
    return f"set `restart` of the host to delay_s: {delay}, burst: {burst}, within_s: {within}."


def _pause(settings: dict[str, str]) -> float | None:
    """The longest pause between two starts, in seconds; None: not readable."""
    pause = _seconds(settings.get("Service.RestartSec", str(_DEFAULT_PAUSE_S)))
    longest = settings.get("Service.RestartMaxDelaySec", "")
    if pause is None or not longest or settings.get("Service.RestartSteps", "0") == "0":
        return pause
    other = _seconds(longest)
    return None if other is None else max(pause, other)


def _settings(text: str) -> dict[str, str]:
    """`Section.Key` → value; the last one counts, as in systemd."""
    found: dict[str, str] = {}
    section = ""
    for line in re.sub(r"\\\n", " ", text).splitlines():
        stripped = line.strip()
        if stripped.startswith(("#", ";")):
            continue
        if stripped.startswith("[") and stripped.endswith("]"):
            section = stripped[1:-1]
        elif "=" in stripped:
            key, _, value = stripped.partition("=")
            found[f"{section}.{key.strip()}"] = value.strip()
    return found


def _seconds(text: str) -> float | None:
    """A time span as systemd writes it: `300`, `5min 20s`, `infinity`."""
    if text == "infinity":
        return math.inf
    parts = list(_SPAN.finditer(text))
    if not parts or "".join(part[0] for part in parts) != text:
        return None
    if any(part[2] not in _UNITS for part in parts):
        return None
    return sum(float(part[1]) * _UNITS[part[2]] for part in parts)


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None
