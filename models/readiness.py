"""Whether a host can be used at all: judged from its inventory, before anything is touched."""

from __future__ import annotations

from collections.abc import Iterator

from models.host import Host
from models.inventory import DockerFacts, GpuFacts, Inventory
from models.plan import Plan
from models.refusal import Refusal

DOCKER_NEEDED = (20, 10)
"""Docker with API 1.41; device requests came with API 1.40."""
CDI_NEEDED = (25, 0)
"""First Docker with CDI devices."""
FREE_NEEDED_MIB = 64
"""Disk for repository entries and units; images and weights are the operator's."""
SETUP = "docs/host-setup.md"


def judge(plan: Plan, host_name: str, inventory: Inventory) -> list[Refusal]:
    """Everything that keeps this host from being used for this plan at all."""
    host = plan.hosts[host_name]
    findings = [*_system(inventory), *_docker(host, inventory.docker), *_gpus(host, inventory.gpus)]
    if not plan.owns_hosts:
        findings += _instances(plan, host_name, inventory)
    for finding in findings:
        finding.at = finding.at or f"host {host_name}"
        finding.consequence = finding.consequence or "Nothing was touched."
    return findings


def _system(inventory: Inventory) -> Iterator[Refusal]:
    if not inventory.systemd:
        yield Refusal("systemd does not run there", fix=f"Berth's instances are units: {SETUP}.")
    if inventory.free_mib < FREE_NEEDED_MIB:
        yield Refusal(
            f"{inventory.free_mib} MiB of disk free, {FREE_NEEDED_MIB} MiB needed",
            fix="free some disk on the host.",
        )
    if inventory.ledger_trouble:
        yield Refusal(
            f"its ledger cannot be read: {inventory.ledger_trouble}",
            consequence="Who holds which GPU there is not known. Nothing was touched.",
            fix="docs/recovery.md says how a ledger is begun anew.",
        )


def _docker(host: Host, docker: DockerFacts) -> Iterator[Refusal]:
    if not docker.installed:
        yield Refusal("Docker is not installed", fix=f"`apt-get install docker.io`, see {SETUP}.")
        return
    if not docker.version:
        yield Refusal(
            f"Docker's daemon does not answer: {docker.said}", fix="`systemctl start docker`."
        )
        return
    if not docker.user_may:
        yield Refusal(
            f"user {host.ssh.user} may not use Docker",
            fix=f"`usermod -aG docker {host.ssh.user}` on the host, then log in anew.",
        )
    version = tuple(int(part) for part in docker.version.split(".")[:2] if part.isdigit())
    if version < DOCKER_NEEDED:
        yield Refusal(
            f"Docker {docker.version} cannot pin GPUs by UUID; 20.10 is the first that can",
            fix=f"install a newer one, see {SETUP}.",
        )
    if host.gpu_access == "cdi" and version < CDI_NEEDED:
        yield Refusal(
            f"Docker {docker.version} has no CDI; 25.0 is the first that has",
            fix="install a newer Docker, or set `gpu_access: hook` (see its description).",
        )
    elif host.gpu_access == "cdi" and not docker.cdi:
        yield Refusal(
            "no CDI specification for NVIDIA GPUs in /etc/cdi or /var/run/cdi",
            fix="`nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`, or `gpu_access: hook`.",
        )
    elif host.gpu_access == "hook" and not docker.hook:
        yield Refusal(
            "the NVIDIA container runtime is not installed (no nvidia-container-runtime-hook)",
            fix=f"`apt-get install nvidia-container-toolkit`, then restart Docker: {SETUP}.",
        )


def _gpus(host: Host, gpus: GpuFacts) -> Iterator[Refusal]:
    if not gpus.found:
        fix = f"install the NVIDIA driver, see {SETUP}."
        if gpus.status == 18:
            fix = "reboot the host: its driver was upgraded, the old module is still loaded."
        said = " ".join(gpus.said.split()) or "nvidia-smi is not installed"
        yield Refusal(f"no GPU can be used: {said} (exit status {gpus.status})", fix=fix)
        return
    there = {listed.uuid: listed for listed in gpus.found}
    for gpu in host.gpus:
        # Whether it is there at all is the rule `gpu-exists`.
        total = there[gpu.uuid].memory_mib if gpu.uuid in there else 0
        if total and total != gpu.memory_mib:
            yield Refusal(
                f"GPU {gpu.index} ({gpu.uuid}) has {total} MiB, declared are {gpu.memory_mib}",
                fix=f"set its memory_mib to {total}.",
            )


def missing_weights(plan: Plan, host_name: str, inventory: Inventory) -> Iterator[Refusal]:
    """Models that this host cannot load. The others can be, so this is told, not refused."""
    folder = plan.hosts[host_name].weights
    here = plan.placements_on(host_name)
    for model, name in sorted({(load.model, load.catalog.weights) for load in here}):
        if name not in inventory.weights:
            cause = f"no weights at {folder}/{name}"
            known = ", ".join(inventory.weights) or "none"
            fix = f"copy them there, or name one of those there: {known}."
        elif inventory.weights[name].trouble:
            first, *more = inventory.weights[name].trouble
            cause = f"{folder}/{name} cannot be used: {first}"
            cause += f" (and {len(more)} more)" if more else ""
            fix = "copy the whole model directory there, as its publisher ships it."
        else:
            continue
        yield Refusal(
            cause,
            consequence=f"{model} cannot be loaded; other models can.",
            fix=fix,
            at=f"host {host_name}, catalog/{model}.yaml: weights",
        )


def _instances(plan: Plan, host_name: str, inventory: Inventory) -> Iterator[Refusal]:
    needed = sorted({load.instance.unit for load in plan.placements_on(host_name)})
    for unit in needed:
        state = inventory.units.get(unit, "not there")
        if state != "active":
            yield Refusal(
                f"{unit} is {state}",
                consequence="The demo's models have no server. Nothing was touched.",
                fix="bring up the host's own stack first (`pulumi up`); "
                f"`journalctl -u {unit}` there says more.",
            )
