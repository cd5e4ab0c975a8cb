"""vLLM's command line: its flags, and what argparse says of what is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.vllm_serve import flags
from sandbox.vllm_serve.__main__ import main
from sandbox.vllm_serve.command_line import parse, serve_parser
from sandbox.vllm_standin.argument_names import ENGINE_ARGUMENTS


def test_it_has_every_flag_of_0_32() -> None:
    """As `vllm serve --help` lists them: 318 names, and `--no-` for 88 of them."""
    options = {o for a in serve_parser()._actions for o in a.option_strings if o.startswith("--")}
    assert len(options) == 406
    assert len([option for option in options if option.startswith("--no-")]) == 88


def test_no_flag_is_in_two_lists() -> None:
    lists = [flags.SWITCHES, flags.MARKS, flags.INTEGERS, flags.HUMAN_INTEGERS, flags.NUMBERS]
    lists += [flags.JSON_VALUES, flags.LISTS, list(flags.CHOICES), flags.WORDS]
    names = [name for one in lists for name in one]
    assert len(names) == len(set(names))


def test_the_engines_flags_reach_the_engine() -> None:
    found = parse(["/data/m", "-tp", "2", "--max_model_len", "8k", "--enforce-eager", "--port=1"])
    engine = {name: value for name, value in vars(found).items() if name in ENGINE_ARGUMENTS}
    wanted = {"tensor_parallel_size": 2, "max_model_len": 8000, "enforce_eager": True}
    assert engine == {"model": "/data/m", **wanted}


def test_a_file_gives_flags_and_the_command_line_wins(tmp_path: Path) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text("model: /data/m\nport: 9\nserved-model-name: [a, b]\nenforce-eager: true\n")
    found = parse([f"--config={file}", "--port=8"])
    assert (found.model, found.port, found.enforce_eager) == ("/data/m", 8, True)
    assert found.served_model_name == ["a", "b"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nope"], "unrecognized arguments: --nope"),
        (["--task=embed"], "unrecognized arguments: --task=embed"),
        (["--port=eighty"], "argument --port: invalid int value: 'eighty'"),
        (["--gpu-memory-utilization=most"], "invalid float value: 'most'"),
        (["--max-model-len=1.5K"], "Decimals are not allowed with binary suffixes like K"),
        (["--dtype=float8"], "invalid choice: 'float8'"),
        (["--hf-overrides={"], "cannot be converted"),
        (["--config=serve.json"], "Config file must be of a yaml/yml type"),
    ],
)
def test_what_it_does_not_take_ends_it_with_status_2(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["serve", "/data/m", *words])
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert shown.startswith("usage: vllm serve")
    assert said in shown


def test_it_tells_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "0.32.0\n"


def test_a_model_after_the_served_names_is_taken_for_one_of_them() -> None:
    with pytest.raises(ValueError, match="should be provided as the first positional argument"):
        parse(["--served-model-name", "architect", "/data/m"])
