"""The columns of `nvidia-smi --query-gpu` and `--query-compute-apps`: names, units, cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .devices import DRIVER_VERSION, Gpu
from .holders import Holder

Cell = str | int


@dataclass(frozen=True)
class Reading:
    """A GPU at one moment, with the index that nvidia-smi shows here and its used MiB."""

    gpu: Gpu
    index: int
    used_mib: int
    count: int

    @property
    def free_mib(self) -> int:
        return self.gpu.cuda_total_mib - self.used_mib

    @property
    def utilisation(self) -> int:
        """Percent; a simulated GPU is never seen computing."""
        return 0


@dataclass(frozen=True)
class Field:
    header: str
    unit: str
    cell: Callable[[Reading], Cell]


def _field(name: str, cell: Callable[[Reading], Cell], unit: str = "") -> tuple[str, Field]:
    return name, Field(f"{name} [{unit}]" if unit else name, unit, cell)


def _always(value: Cell) -> Callable[[Reading], Cell]:
    return lambda _: value


GPU_FIELDS: dict[str, Field] = dict(
    [
        _field("timestamp", _always("2026/01/01 00:00:00.000")),
        _field("index", lambda r: r.index),
        _field("count", lambda r: r.count),
        _field("uuid", lambda r: r.gpu.uuid),
        _field("name", lambda r: r.gpu.name),
        _field("serial", lambda r: f"13225230{r.gpu.index:05d}"),
        _field("driver_version", _always(DRIVER_VERSION)),
        _field("compute_cap", _always("8.9")),
        _field("compute_mode", _always("Default")),
        _field("pci.bus_id", lambda r: r.gpu.bus_id),
        _field("pci.bus", lambda r: f"0x{r.gpu.bus_id[9:11]}"),
        _field("pci.domain", _always("0x0000")),
        _field("pcie.link.gen.current", _always(4)),
        _field("pcie.link.width.current", _always(16)),
        _field("pstate", _always("P8")),
        _field("persistence_mode", _always("Enabled")),
        _field("display_active", _always("Disabled")),
        _field("mig.mode.current", _always("[N/A]")),
        _field("mig.mode.pending", _always("[N/A]")),
        _field("ecc.mode.current", _always("Enabled")),
        _field("ecc.mode.pending", _always("Enabled")),
        _field("ecc.errors.corrected.volatile.total", _always(0)),
        _field("ecc.errors.uncorrected.volatile.total", _always(0)),
        _field("memory.total", lambda r: r.gpu.memory_mib, "MiB"),
        _field("memory.reserved", lambda r: r.gpu.reserved_mib, "MiB"),
        _field("memory.used", lambda r: r.used_mib, "MiB"),
        _field("memory.free", lambda r: r.free_mib, "MiB"),
        _field("utilization.gpu", lambda r: r.utilisation, "%"),
        _field("utilization.memory", _always(0), "%"),
        _field("temperature.gpu", lambda r: 41 if r.used_mib else 36),
        _field("fan.speed", _always("[N/A]"), "%"),
        _field("power.draw", lambda r: "16.52" if r.used_mib else "12.07", "W"),
        _field("power.limit", _always("72.00"), "W"),
        _field("clocks.current.sm", _always(210), "MHz"),
        _field("clocks.current.memory", _always(405), "MHz"),
    ]
)
ALIASES = {
    "gpu_uuid": "uuid",
    "gpu_name": "name",
    "gpu_bus_id": "pci.bus_id",
    "compute_capability": "compute_cap",
    "clocks.sm": "clocks.current.sm",
    "clocks.mem": "clocks.current.memory",
}


@dataclass(frozen=True)
class AppField:
    header: str
    unit: str
    cell: Callable[[Holder], Cell]


APP_FIELDS: dict[str, AppField] = {
    "gpu_uuid": AppField("gpu_uuid", "", lambda h: h.gpu.uuid),
    "gpu_name": AppField("gpu_name", "", lambda h: h.gpu.name),
    "gpu_bus_id": AppField("gpu_bus_id", "", lambda h: h.gpu.bus_id),
    "pid": AppField("pid", "", lambda h: h.pid),
    "process_name": AppField("process_name", "", lambda h: h.process_name),
    "name": AppField("process_name", "", lambda h: h.process_name),
    "used_memory": AppField("used_gpu_memory [MiB]", "MiB", lambda h: h.mib),
    "used_gpu_memory": AppField("used_gpu_memory [MiB]", "MiB", lambda h: h.mib),
}
