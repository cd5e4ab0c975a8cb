"""With the real engine: what is no longer declared stays where a build was refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolchain.conftest import REPO, Toolchain
from tests.toolchain.program import Program

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(3600)]

PROGRAM = """
    import sys
    from pathlib import Path

    import pulumi
    from pulumi.dynamic import CreateResult, Resource, ResourceProvider

    class Marks(ResourceProvider):
        def create(self, props):
            if props["refused"]:
                raise ValueError("refused")
            Path(props["mark"]).touch()
            return CreateResult(props["mark"], props | {"state": "READY"})

        def delete(self, id, props):
            Path(id).unlink()

    class Mark(Resource):
        state: pulumi.Output[str]

        def __init__(self, name, refused=False, opts=None):
            mark = str(Path(__file__).with_name(name))
            super().__init__(Marks(), name, {"mark": mark, "refused": refused, "state": None}, opts)
"""
BEFORE = 'Mark("old")'
AFTER = f"""
    sys.path.insert(0, {str(REPO)!r})
    from components.resources.refused_builds import stay_as_it_was

    build = Mark("build", refused=True)
    outputs = {{
        "builds": {{"alpha/newer": {{"versions": build.state}}}},
        "instances": {{"other": {{"state": Mark("other").state}}}},
        "models": {{
            "new": {{"state": Mark("new", opts=pulumi.ResourceOptions(depends_on=build)).state}}
        }},
    }}
    pulumi.run(lambda: stay_as_it_was(outputs))
"""


def test_nothing_goes_and_what_does_not_wait_for_it_comes(
    toolchain: Toolchain, tmp_path: Path
) -> None:
    program = Program(toolchain, tmp_path)
    program.write(f"{PROGRAM}\n    {BEFORE}\n")
    program.must("stack", "init", "organization/small/test")
    program.must("up", "--yes", "--skip-preview")
    program.write(PROGRAM + AFTER)
    code, said = program.pulumi("up", "--yes", "--skip-preview", "--continue-on-error")
    assert code != 0
    assert "no good image came of build alpha/newer" in said
    assert (tmp_path / "old").exists()
    assert (tmp_path / "other").exists()
    assert not (tmp_path / "new").exists()
    program.must("destroy", "--yes", "--skip-preview")
