"""The table that `nvidia-smi` prints without arguments (its layout up to R595)."""

from __future__ import annotations

from .devices import CUDA_VERSION, DRIVER_VERSION
from .holders import Holder
from .smi_fields import Reading

_WIDTH = 89


def _rule(character: str = "-") -> str:
    return "+" + character * _WIDTH + "+"


def _line(text: str = "") -> str:
    return f"| {text:<{_WIDTH - 2}} |"


def table(readings: list[Reading], holders: list[tuple[int, Holder]]) -> str:
    """Header, two lines a GPU, and the processes with the index of their GPU."""
    versions = f"NVIDIA-SMI {DRIVER_VERSION:<21} Driver Version: {DRIVER_VERSION:<14} "
    lines = [_rule(), _line(f"{versions} CUDA Version: {CUDA_VERSION}"), _rule()]
    lines.append(_line("GPU  Name                 Persistence-M | Bus-Id          Disp.A | ECC"))
    lines.append(
        _line("Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util")
    )
    lines.append(_rule("="))
    for reading in readings:
        gpu = reading.gpu
        lines.append(_line(f"{reading.index:>3}  {gpu.name:<24} On      | {gpu.bus_id} Off |    0"))
        used = f"{reading.used_mib}MiB / {gpu.memory_mib:>6}MiB"
        lines.append(_line(f"N/A   36C    P8             12W /  72W | {used:>22} |   0%  Default"))
        lines.append(_rule())
    lines += ["", _rule(), _line("Processes:")]
    lines.append(_line(" GPU   GI   CI              PID   Type   Process name      GPU Memory"))
    lines.append(_rule("="))
    if not holders:
        lines.append(_line(" No running processes found"))
    for index, holder in holders:
        name = holder.process_name[-34:]
        lines.append(
            _line(f"{index:>4}  N/A  N/A {holder.pid:>16}      C   {name:<34} {holder.mib:>6}MiB")
        )
    return "\n".join([*lines, _rule()])
