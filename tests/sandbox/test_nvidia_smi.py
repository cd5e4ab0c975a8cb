"""nvidia-smi's formats, statuses and failures."""

import os
from pathlib import Path

import pytest

from sandbox.simgpu.devices import gpu_uuid, present
from sandbox.simgpu.memory import Allocation

from .gpus import gpus_under, nvidia_smi

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    gpus_under(tmp_path, monkeypatch)
    return tmp_path


FIELDS = (
    "index,uuid,name,memory.total,memory.used,memory.free,driver_version,compute_cap,pci.bus_id,"
    "utilization.gpu,persistence_mode,mig.mode.current"
)


def test_a_row_has_the_fields_in_the_order_asked(capsys: Capture) -> None:
    arguments = [f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits", "-i", "0"]
    status, text = nvidia_smi(arguments, capsys)
    assert status == 0
    assert text == (
        f"0, {gpu_uuid(0)}, NVIDIA L4, 23034, 0, 22565, 580.105.08, 8.9, "
        "00000000:17:00.0, 0, Enabled, [N/A]\n"
    )


def test_units_stand_in_header_and_cells_unless_left_out(capsys: Capture) -> None:
    arguments = ["--query-gpu=memory.total,utilization.gpu", "--format=csv", "--id=1"]
    assert nvidia_smi(arguments, capsys)[1] == (
        "memory.total [MiB], utilization.gpu [%]\n23034 MiB, 0 %\n"
    )


def test_an_unknown_field_is_named_on_standard_output(capsys: Capture) -> None:
    status, text = nvidia_smi(["--query-gpu=nonsense", "--format=csv"], capsys)
    assert status == 2
    assert 'Field "nonsense" is not a valid field to query.' in text


def test_total_is_more_than_used_and_free(root: Path, capsys: Capture) -> None:
    allocation = Allocation(root, present(root)[2])
    allocation.resize(1000)
    arguments = ["--query-gpu=memory.used,memory.free", "--format=csv,noheader,nounits", "-i", "2"]
    assert nvidia_smi(arguments, capsys)[1] == "1000, 21565\n"
    allocation.close()
    assert nvidia_smi(arguments, capsys)[1] == "0, 22565\n"


def test_a_holder_is_shown_with_its_pid(root: Path, capsys: Capture) -> None:
    allocation = Allocation(root, present(root)[1])
    allocation.resize(512)
    query = ["--query-compute-apps=gpu_uuid,pid,process_name,used_memory", "--format=csv"]
    lines = nvidia_smi(query, capsys)[1].splitlines()
    allocation.close()
    assert lines[0] == "gpu_uuid, pid, process_name, used_gpu_memory [MiB]"
    assert lines[1].startswith(f"{gpu_uuid(1)}, {os.getpid()}, ")
    assert lines[1].endswith(", 512 MiB")


def test_without_holders_only_the_header_is_printed(capsys: Capture) -> None:
    query = ["--query-compute-apps=pid", "--format=csv,noheader"]
    assert nvidia_smi(query, capsys) == (0, "")


def test_a_list_names_every_gpu_with_its_uuid(capsys: Capture) -> None:
    text = nvidia_smi(["-L"], capsys)[1]
    assert text.splitlines()[3] == f"GPU 3: NVIDIA L4 (UUID: {gpu_uuid(3)})"


@pytest.mark.parametrize(
    ("failure", "status", "words"),
    [
        ("no-driver", 9, "couldn't communicate with the NVIDIA driver"),
        ("version-mismatch", 18, "Driver/library version mismatch"),
        ("no-library", 12, "couldn't find libnvidia-ml.so"),
        ("no-devices", 6, "No devices were found"),
    ],
)
def test_a_failure_to_order_has_nvidias_words_and_status(
    failure: str, status: int, words: str, root: Path, capsys: Capture
) -> None:
    (root / "failure").write_text(f"{failure}\n")
    got, text = nvidia_smi(["-L"], capsys)
    assert got == status
    assert words in text


def test_the_others_keep_their_indexes_when_one_falls_off_the_bus(
    root: Path, capsys: Capture
) -> None:
    (root / "failure").write_text("lost 1\n")
    arguments = ["--query-gpu=index", "--format=csv,noheader"]
    status, text = nvidia_smi(arguments, capsys)
    assert status == 15
    assert text.splitlines() == [
        "Unable to determine the device handle for GPU1: 0000:39:00.0: Unknown Error",
        "0",
        "2",
        "3",
    ]


def test_uuids_are_the_same_on_every_sandbox() -> None:
    assert gpu_uuid(0) == "GPU-3704cbc7-d19a-5c10-a618-5a60eecdf278"
