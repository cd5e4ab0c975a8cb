"""Which GPUs a container gets, and what it says of names it does not know."""

import pytest

from sandbox.simgpu.devices import gpu_uuid, simulated_l4
from sandbox.simgpu.selection import UnknownDeviceError, requested, select

GPUS = [simulated_l4(index) for index in range(4)]


@pytest.mark.parametrize(
    ("value", "indexes"),
    [
        ("all", [0, 1, 2, 3]),
        ("none", []),
        ("3,1", [1, 3]),
        (gpu_uuid(2), [2]),
        (gpu_uuid(2).upper(), [2]),
        (f"{gpu_uuid(3)},{gpu_uuid(0)}", [0, 3]),
        ("00000000:17:00.0", [0]),
    ],
)
def test_gpus_are_chosen_by_uuid_index_or_bus_id(value: str, indexes: list[int]) -> None:
    assert [gpu.index for gpu in select(GPUS, value, set())] == indexes


@pytest.mark.parametrize("value", ["4", "GPU-3704cbc7", "0,GPU-none"])
def test_one_unknown_name_fails_the_whole_start(value: str) -> None:
    with pytest.raises(UnknownDeviceError, match=r"device error: .*: unknown device"):
        select(GPUS, value, set())


def test_a_lost_gpu_is_unknown_and_not_among_all() -> None:
    assert [gpu.index for gpu in select(GPUS, "all", {1})] == [0, 2, 3]
    with pytest.raises(UnknownDeviceError):
        select(GPUS, "1", {1})


@pytest.mark.parametrize(
    ("environment", "value"),
    [
        (["PATH=/bin"], None),
        (["NVIDIA_VISIBLE_DEVICES=void"], None),
        (["NVIDIA_VISIBLE_DEVICES="], None),
        (["NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_VISIBLE_DEVICES=1"], "1"),
    ],
)
def test_the_last_of_several_variables_wins(environment: list[str], value: str | None) -> None:
    assert requested(environment) == value
