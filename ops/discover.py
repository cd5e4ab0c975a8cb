"""`berth discover`: records what a host is, and says what changed there since it was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from components.providers.readiness import ask_hosts
from config.files import PREFIX, stack_names, stack_sections
from config.inventory import file_name, read, write
from config.ssh_keys import ssh_of_hosts
from models.flat import flat
from models.gpu_map import gpu_map, of_host
from models.host import Host
from models.inventory import Inventory
from models.refusal import Refusal
from models.stack import StackConfig
from models.validation import parse

MOST = 40
"""Changes that are listed one by one; `git diff` shows all."""


def discover(project: Path, host_name: str, stack: str | None) -> str:
    """Ask a host, record its answer, and say what was seen and what is new.

    Raises:
        Refusal: no stack declares the host, several declare it differently, or it cannot be asked.
    """
    host = declared(project, host_name, stack)
    hosts = {host_name: host}
    found = ask_hosts(hosts, ssh_of_hosts(project, hosts))[host_name]
    try:
        before, trouble = read(project, host_name), ""
    except Refusal as refusal:
        before, trouble = None, refusal.cause
    write(project, host_name, found)
    # As it was written, so that what is not written is no change either.
    now = read(project, host_name)
    news = list(changes(before, now)) if before else [f"nothing to compare with: {trouble}"]
    more = [f"and {len(news) - MOST} more: `git diff {file_name(host_name)}`"]
    told = news if len(news) <= MOST else [*news[:MOST], *more]
    return "\n".join(
        [
            gpu_map(of_host(host_name, host, found, f"facts of {found.taken_at}")),
            f"since it was recorded last: {'nothing changed' if not told else ''}".rstrip(),
            *(f"  {each}" for each in told),
            f"written to {file_name(host_name)}; commit it for previews without the host.",
        ]
    )


def declared(project: Path, host_name: str, stack: str | None) -> Host:
    """The host as the stacks of the project declare it.

    A stack whose config cannot be read is passed over where another one declares the host.

    Raises:
        Refusal: as `discover`, or the named stack's config is wrong.
    """
    found: dict[str, Host] = {}
    known: set[str] = set()
    unreadable: list[Refusal] = []
    for name in [stack] if stack else stack_names(project):
        try:
            at = f"Pulumi.{name}.yaml: {PREFIX}"
            config = parse(StackConfig, stack_sections(project, name), at)
        except Refusal as refusal:
            unreadable.append(refusal)
            continue
        known |= set(config.hosts)
        if host_name in config.hosts:
            found[name] = config.hosts[host_name]
    if not found and unreadable:
        raise unreadable[0]
    if not found:
        raise Refusal(
            f"no host `{host_name}` in {f'stack {stack}' if stack else 'any stack'}",
            consequence="Nobody was asked.",
            fix=f"name one of: {', '.join(sorted(known)) or 'none is declared there'}.",
        )
    (first, host), *others = found.items()
    if any(other != host for _, other in others):
        raise Refusal(
            f"host `{host_name}` is declared differently by stacks {', '.join(found)}",
            consequence="Nobody was asked.",
            fix=f"say whose is meant: `berth discover {host_name} --stack {first}`.",
        )
    return host


def changes(before: Inventory, after: Inventory) -> Iterator[str]:
    """What is another in the later one, a line each; when it was taken is left out."""
    old, new = _members(before), _members(after)
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            yield f"new: {name} ({new[name][0]})"
        elif name not in new:
            yield f"gone: {name} ({old[name][0]})"
        elif old[name] != new[name]:
            yield from _differences(name, old[name][1], new[name][1])


def _differences(name: str, old: object, new: object) -> Iterator[str]:
    was, now = ({at.lstrip(": "): value for at, value in flat(side, "")} for side in (old, new))
    for at in sorted(was.keys() | now.keys()):
        if was.get(at) != now.get(at):
            yield f"{name}{f' {at}' if at else ''}: {was.get(at, '-')} → {now.get(at, '-')}"


def _members(inventory: Inventory) -> dict[str, tuple[str, object]]:
    """What the inventory holds, by name: (what a person calls it, its plain values)."""
    found: dict[str, tuple[str, object]] = {}
    content = inventory.model_dump(mode="json")
    found |= {f"GPU {gpu.uuid}": (gpu.name, gpu.model_dump()) for gpu in inventory.gpus.found}
    for process in inventory.processes:
        whose = process.instance or "not Berth's"
        said = f"{process.name}, {process.mib} MiB on {process.gpu}, {whose}"
        found[f"process {process.pid}"] = (said, process.model_dump())
    for record in inventory.claims:
        found[f"claim {record.name}"] = (record.said(), record.json())
    for container in inventory.docker.containers:
        said = f"{container.instance}, {container.state}"
        found[f"container {container.name}"] = (said, container.model_dump(mode="json"))
    for image in inventory.images:
        said = ", ".join(f"{name} {version}" for name, version in sorted(image.versions.items()))
        found[f"image {image.reference}"] = (said, image.model_dump(mode="json"))
    for name, weights in inventory.weights.items():
        said = f"{weights.files} files, {weights.total // 2**20} MiB"
        known = {"content": weights.digest[:12], "trouble": list(weights.trouble)}
        found[f"weights {name}"] = (said, known)
    found |= {f"port {port}": ("something listens", port) for port in inventory.ports}
    found |= {f"unit {unit}": (state, state) for unit, state in inventory.units.items()}
    found["nvidia-smi"] = ("", {key: content["gpus"][key] for key in ("status", "said")})
    found["docker"] = (
        "",
        {key: it for key, it in content["docker"].items() if key != "containers"},
    )
    for name in ("berth_host", "driver", "systemd", "ledger_trouble", "free_mib"):
        found[name] = ("", content[name])
    return found
