"""Memory is held by living processes, and by them alone."""

import os
import signal
import time
from pathlib import Path

import pytest

from sandbox.simgpu.devices import cuda_visible, gpu_uuid, present
from sandbox.simgpu.memory import Allocation, OutOfMemoryError, used_mib

from .gpus import gpus_under


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    gpus_under(tmp_path, monkeypatch)
    return tmp_path


def test_a_killed_process_leaves_nothing_behind(root: Path) -> None:
    gpu = present(root)[0]
    child = os.fork()
    if child == 0:
        Allocation(root, gpu).resize(4000)
        time.sleep(60)
        os._exit(0)
    deadline = time.monotonic() + 5
    while used_mib(root, gpu) == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert used_mib(root, gpu) == 4000
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert used_mib(root, gpu) == 0


def test_more_than_is_free_is_refused_and_changes_nothing(root: Path) -> None:
    gpu = present(root)[0]
    mine, other = Allocation(root, gpu), Allocation(root, gpu)
    mine.resize(22_000)
    with pytest.raises(OutOfMemoryError) as caught:
        other.resize(566)
    assert caught.value.free_mib == 565
    assert used_mib(root, gpu) == 22_000
    mine.close()


def test_an_allocation_may_grow_and_shrink(root: Path) -> None:
    gpu = present(root)[3]
    allocation = Allocation(root, gpu)
    for size in (100, 22_565, 7):
        allocation.resize(size)
        assert used_mib(root, gpu) == size
    allocation.close()


@pytest.mark.parametrize(
    ("selection", "indexes"),
    [
        (None, [0, 1, 2, 3]),
        ("2,0", [2, 0]),
        ("1,9,2", [1]),
        (gpu_uuid(3)[:12], [3]),
        ("", []),
    ],
)
def test_cuda_visible_devices_hides_all_after_an_invalid_entry(
    selection: str | None, indexes: list[int], root: Path
) -> None:
    assert [gpu.index for gpu in cuda_visible(root, selection)] == indexes
