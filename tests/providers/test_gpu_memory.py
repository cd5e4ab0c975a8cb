"""When an unloaded model's memory counts as back."""

from __future__ import annotations

from components.providers.gpu_memory import (
    Memory,
    Process,
    beyond_claim,
    not_freed,
    read_memory,
    risen,
)
from components.providers.ssh_shared import on_host
from tests.providers.local_sshd import LocalSshd

CLAIM = 9000


def _memory(used: int, *processes: tuple[int, int]) -> Memory:
    return Memory({"G": used}, {"G": [Process(pid, mib, "vllm") for pid, mib in processes]})


def _held(before: Memory, now: Memory, claim: int = CLAIM) -> bool:
    return not_freed(before, now, ["G"], claim) == ["G"]


def test_memory_as_it_was_is_not_back() -> None:
    before = _memory(9500, (1, 9000))
    assert _held(before, before)


def test_an_idle_gpu_is_free_whatever_was_there_before() -> None:
    assert not _held(_memory(600), _memory(500))


def test_a_small_claim_is_not_back_while_it_would_pass_for_an_idle_gpu() -> None:
    assert _held(_memory(400), _memory(400), claim=390)


def test_half_the_claim_less_is_back() -> None:
    assert not _held(_memory(12000), _memory(7500))
    assert _held(_memory(12000), _memory(7501))


def test_a_newcomers_memory_does_not_hide_that_the_process_has_gone() -> None:
    assert not _held(_memory(9500, (1, 9000)), _memory(9500, (2, 9000)))


def test_a_process_that_stays_is_not_hidden_by_a_neighbour_that_shrinks_a_little() -> None:
    assert _held(_memory(13500, (1, 9000), (2, 4000)), _memory(10000, (1, 9000), (2, 500)))


def test_every_gpu_of_a_wide_model_counts() -> None:
    before = Memory({"G": 9500, "H": 9500})
    assert not_freed(before, Memory({"G": 5, "H": 9500}), ["G", "H"], CLAIM) == ["H"]


def test_more_memory_than_before_a_failed_load_has_risen() -> None:
    assert risen(_memory(100), _memory(700), ["G"], CLAIM) == ["G"]
    assert risen(_memory(100), _memory(600), ["G"], CLAIM) == []


def test_who_holds_memory_is_told_with_process_and_amount() -> None:
    assert _memory(9500, (7, 9000)).held_by(["G"]) == (
        "G: 9500 MiB in use by vllm (pid 7, 9000 MiB)"
    )


def test_nvidia_smis_answer_is_read_with_commas_in_names_and_unknown_amounts(
    sshd: LocalSshd,
) -> None:
    sshd.executable(
        "nvidia-smi",
        "#!/bin/sh\ncase $1 in --query-gpu=*) printf 'G, 9500\\nH, 3\\n' ;;\n"
        "*) printf 'G, 7, 9000, a, b\\nG, 8, [N/A], c\\n' ;; esac\n",
    )
    try:
        assert on_host(sshd.ssh, read_memory) == Memory(
            {"G": 9500, "H": 3}, {"G": [Process(7, 9000, "a, b"), Process(8, 0, "c")]}
        )
    finally:
        (sshd.bin / "nvidia-smi").unlink()


def test_an_nvidia_smi_that_fails_says_nothing_usable(sshd: LocalSshd) -> None:
    sshd.executable("nvidia-smi", "#!/bin/sh\necho 'No devices were found'; exit 6\n")
    try:
        assert on_host(sshd.ssh, read_memory) is None
    finally:
        (sshd.bin / "nvidia-smi").unlink()


def test_a_model_within_its_claim_and_a_little_more_is_as_planned() -> None:
    before = _memory(300, (1, 250))
    assert beyond_claim(before, _memory(10836, (1, 250), (2, 10536)), ["G"], CLAIM) == []


def test_one_that_takes_more_is_told_with_the_numbers() -> None:
    before = _memory(300, (1, 250))
    told = beyond_claim(before, _memory(10837, (1, 250), (2, 10537)), ["G"], CLAIM)
    assert told == ["G: 10537 MiB instead of 9000"]


def test_where_the_driver_lists_no_process_the_growth_tells() -> None:
    assert beyond_claim(_memory(300), _memory(10836), ["G"], CLAIM) == []
    assert beyond_claim(_memory(300), _memory(10837), ["G"], CLAIM) == [
        "G: 10537 MiB instead of 9000"
    ]


def test_a_neighbour_that_comes_at_the_same_time_is_not_taken_for_it() -> None:
    assert beyond_claim(_memory(0), _memory(20000, (2, 5000), (3, 15000)), ["G"], CLAIM) == []


def test_what_was_there_before_is_not_counted() -> None:
    before = _memory(12000, (1, 12000))
    assert beyond_claim(before, _memory(21000, (1, 12000), (2, 9000)), ["G"], CLAIM) == []
