"""A failed build is told in plain words, with what its failing step printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.providers.build_failure import heard_again, printed, refusal
from models.build import PlannedBuild
from tests.providers.local_sshd import LocalSshd

BUILD = PlannedBuild(
    "newer", "berth-build/newer:0a", "serving/newer", "Dockerfile", {"BASE": "a:1"}, ("a:1",), {}
)
# As pulumi-docker 5.2.0 and Docker 20.10 say it.
STEP = (
    "1 error occurred:\n\t* Error running legacy build: executor failed running [/bin/sh -c pip "
    "install x]: exit code: 3\n\n\n\n"
)
# As newer ones do.
PROCESS = 'process "/bin/sh -c pip install x" did not complete successfully: exit code: 3'
PLAIN = """\
#1 [internal] load build definition from Dockerfile
#1 transferring dockerfile: 31B done
#7 [3/3] RUN pip install x
#6 0.100 of another step
#7 0.412 Collecting x
#7 0.500 ERROR: No matching distribution found for x
#7 ERROR: executor failed running [/bin/sh -c pip install x]: exit code: 3
------
 > [3/3] RUN pip install x:
"""


@pytest.mark.parametrize("said", [STEP, PROCESS])
def test_the_step_that_failed_is_named_with_what_it_printed(said: str) -> None:
    text = str(refusal(BUILD, "alpha", said, printed(PLAIN)))
    assert text.startswith(
        "berth:builds.newer: the image cannot be built on alpha: "
        "`RUN pip install x` fails (status 3):"
    )
    assert "    ERROR: No matching distribution found for x" in text
    assert "of another step" not in text
    assert "Nothing was stopped" in text
    assert "mend serving/newer/Dockerfile" in text


def test_a_step_with_brackets_and_quotes_is_quoted_whole() -> None:
    said = 'executor failed running [/bin/sh -c [ -f "x" ] || exit 3]: exit code: 3'
    assert '`RUN [ -f "x" ] || exit 3` fails (status 3)' in str(refusal(BUILD, "a", said, ""))


def test_a_base_that_cannot_be_had_is_named() -> None:
    said = "1 error occurred:\n\t* Error running legacy build: pull access denied for a"
    text = str(refusal(BUILD, "alpha", said, ""))
    assert "the image cannot be built on alpha: pull access denied for a\n" in text
    assert "`docker pull` on alpha shows whether it can be had there: a:1." in text


def test_a_docker_that_cannot_take_the_context_is_told_with_the_setting_that_helps() -> None:
    said = "Error running legacy build: failed to read downloaded context: failed to load cache key"
    assert "containerd-snapshotter" in str(refusal(BUILD, "alpha", said, ""))


def test_what_did_not_fail_in_a_step_quotes_no_step() -> None:
    assert printed("#1 0.1 fine\n#1 DONE 0.1s\n") == ""


def test_the_hosts_own_docker_is_asked_for_the_words(sshd: LocalSshd, tmp_path: Path) -> None:
    folder = tmp_path / "serving/newer"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM a:1\n")
    said = tmp_path / "plain"
    said.write_text(PLAIN)
    sshd.executable(
        "docker",
        f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nls > {tmp_path}/sent\ncat {said}\nexit 1\n',
    )
    try:
        heard = heard_again(sshd.ssh, tmp_path, BUILD)
    finally:
        (sshd.bin / "docker").unlink()
    assert "ERROR: No matching distribution found for x" in heard
    asked = (tmp_path / "asked").read_text()
    assert asked == "build --progress plain --file=Dockerfile --build-arg=BASE=a:1 .\n"
    assert "Dockerfile" in (tmp_path / "sent").read_text().split()
