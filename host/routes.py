"""A demo's routes in the files that the gateway and the adapter read: made, closed, taken away.

Each change is whole or not at all: it is tried by the gateway that runs, written to the disk by a
rename, and told only when the gateway serves it. All may be run again after a kill at any point.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from host.gateway import Gateway, written
from models.refusal import Refusal

VERSION = 1
"""Of the files' form; the gateway and the adapter read just this one."""
UNTOUCHED = "Nothing was changed."
NOT_YET = "its model is not loaded yet"
RETRY_AFTER_S = 10
DRAIN_S = 30
APIS = ("openai", "framing", "kserve")
LONGEST_REASON = 300
"""Characters of a reason that clients are told."""


@dataclass
class Demo:
    """What the files say of one demo; an absent one is empty."""

    name: str
    routes: dict[str, Any]
    """As in the gateway's `routes.d/<demo>.json`."""
    adapted: dict[str, Any]
    """Name → its route in the adapter's."""
    keys: dict[str, str]
    """What the adapter is to show to engines that ask for a key, by name."""

    @property
    def roles(self) -> dict[str, Any]:
        """Role → its route in the gateway's file."""
        found: dict[str, Any] = self.routes["roles"]
        return found

    def adapted_of(self, role: str) -> set[str]:
        """Names of a role's routes in the adapter: its own, and those of its further replicas."""
        return {each for each in self.adapted if each.partition(".")[0] == role}

    def drop_adapted(self, names: Iterable[str]) -> None:
        """Routes in the adapter gone, those that are there."""
        for name in names:
            self.adapted.pop(name, None)


def declare(gateway: Gateway, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Make a demo known: its keys, its own limit, and its roles as not loaded yet.

    A role that is there already stays as it is, and one that is not named stays too: its own
    resource takes it away.

    Args:
        gateway: this host's.
        asked: {"demo", "keys": [{"name", "sha256"}…], "connections_per_key": n or null,
            "drain_s": seconds that `close` and `remove` wait unless told otherwise, "roles": {role:
            {"model", "engine", "loads": names of the claims that it waits for}}}.

    Raises:
        Refusal: this host has no gateway, or it cannot take this.
    """
    with _changed(gateway, _name(asked)) as demo:
        demo.routes["keys"] = list(asked["keys"])
        demo.routes["connections_per_key"] = asked.get("connections_per_key")
        demo.routes["drain_s"] = asked.get("drain_s", DRAIN_S)
        for role, about in asked["roles"].items():
            demo.roles.setdefault(role, _unloaded(about, NOT_YET))
    return {}


def put(gateway: Gateway, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Open a role's route: clients reach its model when this returns.

    What it led to before may end then: answers under way there are waited for.

    Args:
        gateway: this host's.
        asked: {"demo", "role", "route": as in the gateway's file, "adapter": {name: its route as in
            the adapter's file}, "key_files": {name of a key there: file on this host that has it}}.

    Returns:
        {"left": requests still under way at what it led to before, when the time was over}.

    Raises:
        Refusal: as `declare`, or the demo is not known here.
    """
    name, role = _name(asked), str(asked["role"])
    before = gateway.leads_to(name, role)
    with _changed(gateway, name) as demo:
        if not demo.routes["keys"]:
            raise Refusal(
                f"demo {name} is not known to this host's gateway, so it has no key",
                consequence=UNTOUCHED,
                fix="`pulumi up --refresh` the demo's stack.",
            )
        demo.roles[role] = copy.deepcopy(asked["route"])
        dropped = demo.adapted_of(role) - set(asked["adapter"])
        demo.adapted |= copy.deepcopy(asked["adapter"])
        for key, file in asked.get("key_files", {}).items():
            demo.keys[key] = _key(Path(file))
        drain_s = _drain_s(demo, asked)
    left = gateway.left(before, drain_s)
    if dropped:
        # The adapter's last: until now nginx may have sent what was on its way to them.
        with _changed(gateway, name) as demo:
            demo.drop_adapted(dropped)
    return {"left": left}


def close(gateway: Gateway, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Send no more requests to a model that is about to go, and wait for those under way.

    Args:
        gateway: this host's.
        asked: {"demo", "load": the name of its claim, "reason": what clients are told, "drain_s":
            how long requests are waited for, in seconds}.

    Returns:
        {"closed": [role…], "left": requests still under way when the time was over}; a host
        without a gateway has nothing to close.
    """
    if not gateway.there:
        return {"closed": [], "left": 0}
    name, reason = _name(asked), _one_line(asked["reason"])
    closed: list[str] = []
    before = _read(gateway, name)
    if any(_leads_to(route, asked["load"]) for route in before.roles.values()):
        with _changed(gateway, name) as demo:
            for role, route in demo.roles.items():
                if _leads_to(route, asked["load"]):
                    _close(route, asked["load"], reason)
                    closed.append(role)
    # Other replicas of a role go on, so it is not the role that falls quiet.
    replicas = {each for role in closed for each in gateway.leads_to(name, role, closed=True)}
    left = gateway.left(replicas, _drain_s(before, asked))
    return {"closed": sorted(closed), "left": left}


def remove(gateway: Gateway, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Take a role's route away, or with "role" null the whole demo; what is gone is no error.

    Args:
        gateway: this host's.
        asked: {"demo", "role", "drain_s": how long requests under way are waited for, in seconds}.

    Returns:
        {"left": requests still under way when the time was over}.
    """
    if not gateway.there:
        return {"left": 0}
    name, role = _name(asked), asked.get("role")
    if role is None:
        gateway.forget(name)
        return {"left": 0}
    before = _read(gateway, name)
    if role not in before.roles:
        return {"left": 0}
    # Closed first: requests under way are counted under the role as long as it is there.
    with _changed(gateway, name) as demo:
        for load in _loads(demo.roles[role]):
            _close(demo.roles[role], load, "it is being taken down")
    left = gateway.drained(name, [role], _drain_s(before, asked))
    with _changed(gateway, name) as demo:
        demo.roles.pop(role, None)
        demo.drop_adapted(demo.adapted_of(role))
    return {"left": left}


def show(gateway: Gateway, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What the files say of a demo: {"there", "routes", "adapter"}."""
    name = _name(asked)
    there = gateway.there and gateway.routes(name).exists()
    demo = _read(gateway, name) if there else Demo(name, {}, {}, {})
    return {"there": there, "routes": demo.routes, "adapter": demo.adapted}


ACTIONS = {"declare": declare, "put": put, "close": close, "remove": remove, "show": show}
"""Word of the command line → what is done."""


@contextmanager
def _changed(gateway: Gateway, name: str) -> Iterator[Demo]:
    """A demo as it is; what is changed of it in the block is served when the block has ended."""
    with gateway.changing():
        demo = _read(gateway, name)
        before = copy.deepcopy(demo)
        yield demo
        if demo == before and gateway.routes(name).exists():
            # A run that was killed may have written it, and never had it served.
            if gateway.status():
                gateway.serve()
            return
        text = _json(demo.routes)
        gateway.see_that_it_takes(name, text)
        # The adapter's first: nginx must not send what the adapter does not know yet.
        if gateway.adapter.is_dir():
            routes = {"version": VERSION, "routes": demo.adapted}
            written(gateway.adapter_keys(name), _json(demo.keys))
            written(gateway.adapter_routes(name), _json(routes))
        written(gateway.routes(name), text)
        gateway.serve()


def _read(gateway: Gateway, name: str) -> Demo:
    routes = _loaded(gateway.routes(name)) or {
        "version": VERSION, "demo": name, "keys": [], "roles": {}, "connections_per_key": None,
    }  # fmt: skip
    adapter = _loaded(gateway.adapter_routes(name)) or {"routes": {}}
    keys = _object(gateway.adapter_keys(name)) or {}
    return Demo(name, routes, adapter["routes"], keys)


def _loaded(file: Path) -> dict[str, Any] | None:
    found = _object(file)
    whole = found and isinstance(found.get("roles", found.get("routes")), dict)
    return found if whole else None


def _object(file: Path) -> dict[str, Any] | None:
    """None for a file that is not there, or that somebody broke: it is written anew then."""
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _key(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError as error:
        raise Refusal(
            f"{file} cannot be read: {error.strerror}",
            consequence=UNTOUCHED,
            fix="`pulumi up` the host's stack: it makes its instances' keys.",
        ) from None


def _unloaded(about: Mapping[str, Any], reason: str) -> dict[str, Any]:
    return {
        "model": about["model"], "engine": about["engine"], "openai": None, "framing": None,
        "kserve": None, "state": "not loaded", "reason": reason, "fallback": None,
        "retry_after_s": RETRY_AFTER_S, "awaits": list(about.get("loads", ())),
    }  # fmt: skip


def _drain_s(demo: Demo, asked: Mapping[str, Any]) -> float:
    return float(asked.get("drain_s", demo.routes.get("drain_s", DRAIN_S)))


def _replicas(route: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for api in APIS:
        yield from (route.get(api) or {}).get("replicas", ())


def _loads(route: Mapping[str, Any]) -> set[str]:
    return {replica.get("load", "") for replica in _replicas(route)}


def _leads_to(route: Mapping[str, Any], load: str) -> bool:
    return load in _loads(route) or load in route.get("awaits", ())


def _close(route: dict[str, Any], load: str, reason: str) -> None:
    for replica in _replicas(route):
        if replica.get("load") == load:
            replica["closed"] = reason
    if route["state"] != "serving":
        route["reason"] = reason


def _one_line(reason: object) -> str:
    """What nginx's Lua takes for a reason: printable ASCII, one line."""
    words = " ".join(str(reason).split())
    ascii_only = words.encode("ascii", "replace").decode()
    return ascii_only[:LONGEST_REASON] or "it is being replaced"


def _name(asked: Mapping[str, Any]) -> str:
    name = asked.get("demo")
    plain = isinstance(name, str) and name.replace("-", "").isalnum() and name.islower()
    if not plain or not str(name).isascii():
        raise Refusal(f"{name!r} is no demo's name", consequence=UNTOUCHED)
    return str(name)


def _json(value: object) -> str:
    return json.dumps(value, indent=1, sort_keys=True) + "\n"
