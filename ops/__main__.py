"""`berth`: drive stacks, see what runs, ask a role."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from config.files import read_yaml, stack_names
from config.project import load_plan
from config.ssh_keys import ssh_of_hosts
from engines.failure import EngineError
from models.plan import Plan
from models.refusal import Refusal
from ops import claims as host_claims
from ops import discover as discovery
from ops import fit as fitting
from ops import live, show
from ops.drive import Stack, say
from ops.environment import project_directory
from ops.reference import reference as written_reference
from ops.state import forget_if_changed

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

StackName = Annotated[str, typer.Argument(help="name of the stack, as in Pulumi.<stack>.yaml")]
StackOption = Annotated[str, typer.Option("--stack", "-s", help="the stack that has the role")]
HostOption = Annotated[str | None, typer.Option("--host", help="only this one of its hosts")]
QUESTION = "In one sentence: who are you?"
ANSWER_TIMEOUT_S = 120


@app.command()
def up(
    stack: StackName = "dev",
    fresh_if_changed: Annotated[
        Path | None,
        typer.Option(help="forget the stack's state when this file is another: its host is new"),
    ] = None,
) -> None:
    """Bring a stack up, then show what runs and let each role answer once."""
    project = _project()
    driven = Stack(project, stack)
    if fresh_if_changed is not None:
        forget_if_changed(driven, fresh_if_changed)
    if driven.up() != 0:
        raise typer.Exit(1)
    _end(project, driven)


@app.command()
def retry(
    role: Annotated[str, typer.Argument(help="a role that its fallback serves")],
    stack: StackOption = "dev",
) -> None:
    """Try a role's own model again; its fallback leaves the GPUs for as long as that takes."""
    project = _project()
    plan = load_plan(project, stack)
    _see_role(plan, role)
    driven = Stack(project, stack)
    if driven.retry(plan.roles[role].claim_name) != 0:
        raise typer.Exit(1)
    _end(project, driven)


def _end(project: Path, driven: Stack) -> None:
    """Show what runs and let each role answer; last, who serves in whose place."""
    plan = load_plan(project, driven.name)
    seen = live.look_when_settled(plan, ssh_of_hosts(project, plan.hosts))
    known = cache(driven.reasons)
    served = show.show(_console(), plan, seen, known)
    served = served and _ask(project, plan, list(plan.roles), QUESTION)
    for line in show.stand_ins(plan, seen, known):
        typer.echo(line)
    raise typer.Exit(0 if served else 1)


@app.command()
def preview(
    stack: StackName = "dev",
    recorded: Annotated[
        bool | None,
        typer.Option("--recorded/--live", help="instead of what `berth:inventory` says"),
    ] = None,
) -> None:
    """Show what `up` would change, judged by the policy pack; `--recorded` asks no host."""
    raise typer.Exit(Stack(_project(), stack).preview(recorded))


@app.command()
def discover(
    host: Annotated[str, typer.Argument(help="a host that a stack declares")],
    stack: Annotated[
        str | None, typer.Option("--stack", "-s", help="the stack whose declaration is meant")
    ] = None,
) -> None:
    """Record what a host is and holds in inventory/HOST.json, for previews without it."""
    project = _project()
    typer.echo(discovery.discover(project, host, stack))


@app.command()
def down(stack: StackName = "dev") -> None:
    """Take a stack down and forget it."""
    raise typer.Exit(Stack(_project(), stack).down())


@app.command()
def forget(stack: StackName) -> None:
    """Forget a stack whose host is gone for good. Nothing is deleted on any host."""
    raise typer.Exit(Stack(_project(), stack).forget())


@app.command()
def outputs(stack: StackName = "dev") -> None:
    """Print a stack's outputs as JSON, and nothing else, on standard output."""
    raise typer.Exit(Stack(_project(), stack).outputs())


@app.command()
def status(stack: StackName = "dev") -> None:
    """Show what really runs; exit status 1 when something declared does not."""
    project = _project()
    raise typer.Exit(0 if _show(project, load_plan(project, stack)) else 1)


@app.command()
def ask(
    role: Annotated[str, typer.Argument(help="a role of the stack")],
    text: Annotated[str, typer.Argument(help="what to say to it")],
    stack: StackOption = "dev",
) -> None:
    """Let a role answer."""
    project = _project()
    plan = load_plan(project, stack)
    _see_role(plan, role)
    raise typer.Exit(0 if _ask(project, plan, [role], text) else 1)


@app.command()
def key(
    name: Annotated[str, typer.Argument(help="one of the demo's `keys`")] = "default",
    stack: StackOption = "dev",
) -> None:
    """Print a key of a stack's demo, which its clients send to the gateway."""
    found = Stack(_project(), stack).keys()
    if name not in found:
        known = ", ".join(sorted(found))
        raise Refusal(
            f"stack {stack} has no key `{name}`",
            fix=f"its keys: {known}." if known else "declare `gateway` for its host, and a demo.",
        )
    typer.echo(found[name])


@app.command()
def claims(stack: StackOption = "dev", host: HostOption = None) -> None:
    """Show what a stack's hosts' ledgers hold, of every stack."""
    project = _project()
    plan = load_plan(project, stack)
    found = host_claims.ask_hosts(_ssh(project, plan, host))
    name = read_yaml(project / "Pulumi.yaml")["name"]
    known = [f"{name}/{each}" for each in stack_names(project)]
    raise typer.Exit(0 if host_claims.show(_console(), plan, found, known) else 1)


@app.command()
def release(
    name: Annotated[str, typer.Argument(help="the claim's exact name, as `berth claims` shows it")],
    stack: StackOption = "dev",
    host: HostOption = None,
    unload: Annotated[bool, typer.Option("--unload", help="unload its model first")] = False,
) -> None:
    """Release one claim, such as that of a stack that is gone."""
    project = _project()
    ssh = _ssh(project, load_plan(project, stack), host)
    typer.echo(host_claims.release(ssh, name, unload=unload))


@app.command()
def fit(
    what: Annotated[str, typer.Argument(help="a weights directory, or a name of the catalog")],
    host: Annotated[str | None, typer.Option(help="a host that a stack declares")] = None,
    weights: Annotated[
        Path | None, typer.Option(help="directory of a catalog entry's weights, here")
    ] = None,
    gpus: Annotated[int | None, typer.Option(min=1, max=64, help="how many there are")] = None,
    gpu_mib: Annotated[
        int | None, typer.Option(min=1024, help="memory.total of nvidia-smi, of each, in MiB")
    ] = None,
    tp: Annotated[int | None, typer.Option(min=1, max=64, help="tensor parallelism")] = None,
    pp: Annotated[int | None, typer.Option(min=1, max=64, help="pipeline parallelism")] = None,
    max_model_len: Annotated[int | None, typer.Option(min=1, help="context, in tokens")] = None,
    gpu_memory_utilization: Annotated[
        float | None, typer.Option(min=0.01, max=1, help="share of each GPU")
    ] = None,
    vllm: Annotated[str | None, typer.Option(help="release of vLLM, as 0.19.0")] = None,
) -> None:
    """Say whether weights fit, term by term; exit status 0 fits, 1 does not, 2 not known."""
    options = fitting.Options(
        host, weights, gpus, gpu_mib, tp, pp, max_model_len, gpu_memory_utilization, vllm
    )
    try:
        status, text = fitting.fit(project_directory(), what, options)
    except Refusal as refusal:
        typer.echo(str(refusal), err=True)
        raise typer.Exit(fitting.NOT_KNOWN) from None
    typer.echo(text)
    raise typer.Exit(status)


@app.command()
def reference() -> None:
    """Print the reference of all that can be declared (docs/reference.md)."""
    typer.echo(written_reference(), nl=False)


def _see_role(plan: Plan, role: str) -> None:
    if role not in plan.roles:
        raise Refusal(
            f"stack {plan.stack} has no role `{role}`", fix=f"its roles: {', '.join(plan.roles)}."
        )


def _project() -> Path:
    """The project that the working directory is in; what it declares is relative to it."""
    project = project_directory()
    os.chdir(project)
    return project


def _console() -> Console:
    # A pipe has no width of its own: wide enough that no cell is cut.
    return Console(width=None if sys.stdout.isatty() else 160)


def _ssh(project: Path, plan: Plan, host: str | None) -> dict[str, dict[str, object]]:
    """How the stack's hosts are reached, or the one host that is asked for."""
    if host is not None and host not in plan.hosts:
        raise Refusal(
            f"stack {plan.stack} has no host `{host}`",
            fix=f"its hosts: {', '.join(plan.hosts)}.",
        )
    wanted = {name: it for name, it in plan.hosts.items() if host in (None, name)}
    return ssh_of_hosts(project, wanted)


def _show(project: Path, plan: Plan) -> bool:
    seen = live.look(plan, ssh_of_hosts(project, plan.hosts))
    return show.show(_console(), plan, seen, lambda: _reasons(project, plan.stack))


def _reasons(project: Path, stack: str) -> dict[str, str]:
    """Why a fallback serves: in the stack's state, which need not be in reach of who looks."""
    try:
        return Stack(project, stack).reasons()
    except Refusal:
        return {}


def _ask(project: Path, plan: Plan, roles: Sequence[str], text: str) -> bool:
    """Let roles answer at the same time, and print what each says. True when all did."""
    ssh = ssh_of_hosts(project, plan.hosts)

    async def answer(role: str) -> str | None:
        first = plan.roles[role]
        fallback = plan.fallback_of(first)
        for placement in [first, *([fallback] if fallback else [])]:
            host = placement.instance.host_name
            try:
                said = await live.ask(ssh[host], placement, text, ANSWER_TIMEOUT_S)
            except EngineError as error:
                who = (
                    f"its fallback {placement.model}" if placement is fallback else placement.model
                )
                say(f"{role}: {who} does not answer: {error}")
            else:
                return said
        return None

    async def all_answers() -> list[str | None]:
        return await asyncio.gather(*(answer(role) for role in roles))

    answers = dict(zip(roles, asyncio.run(all_answers()), strict=True))
    for role, said in answers.items():
        if said is not None:
            typer.echo(f"{role}: {said.strip()}")
    return None not in answers.values()


def main() -> None:
    """Run the command; a refusal is printed as it is."""
    try:
        app()
    except Refusal as refusal:
        typer.echo(str(refusal), err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
