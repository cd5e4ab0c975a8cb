"""Shell scripts that bring up a server of one model's own, and take it away again.

Each may be run again after a kill at any point.
"""

from __future__ import annotations

from components.renderers import berth_host, server_container, unit
from components.renderers.host_setup import INSTALL, RELOAD, installed
from models.plan import SERVERS, Placement


def install(placement: Placement) -> str:
    """Its unit and the files that it reads; all of it is known before its container is."""
    files = server_container.renderer(placement).files(placement)
    kept = "|".join(["*.env", *sorted(files)])
    lines = [
        INSTALL.rstrip(),
        # Those of another engine that it had before.
        f"for f in {SERVERS}/{server_container.planned(placement).name}.*; do",
        f'  case "$f" in {kept}) ;; *) rm -f "$f" ;; esac',
        "done",
        *(installed(path, text) for path, text in sorted(files.items())),
        installed(unit.server_path(placement), unit.server(placement)),
        '[ -z "$changed" ] || reload=yes',
        RELOAD.rstrip(),
    ]
    return "reload=no\n" + "\n".join(lines) + "\n"


def uninstall(placement: Placement) -> str:
    """What `install` wrote gone."""
    files = sorted(server_container.renderer(placement).files(placement))
    return f"""\
rm -f {" ".join([unit.server_path(placement), *files])}
reload=yes
{RELOAD}"""


def start(placement: Placement, *, has_fallback: bool = False) -> str:
    """The unit's environment, then the unit enabled and running; reads what `preamble` sets.

    The gate is asked first, so that its words are told and no server is stopped in vain.

    Args:
        has_fallback: then it is started later, by its model's resource: the fallback may have the
            GPUs, and has to leave them first.
    """
    planned = server_container.planned(placement)
    label = f"label=berth.instance={planned.name}"
    ready = f"""\
printf '%s' "$ENVIRONMENT" > {planned.environment_file}.new
mv -f {planned.environment_file}.new {planned.environment_file}
for c in $(docker ps -aq --no-trunc --filter {label}); do
  [ "$c" = "$CONTAINER_ID" ] || docker rm -f "$c" >/dev/null
done
"""
    if has_fallback:
        return ready
    return f"""\
{ready}systemctl enable --quiet {planned.unit}
systemctl reset-failed {planned.unit} 2>/dev/null || true
{berth_host.PATH} gate {planned.name}
systemctl restart {planned.unit} || {{
  journalctl --unit {planned.unit} --lines 8 --output cat --no-pager >&2  # why it may not start
  exit 1
}}
"""


def stop(placement: Placement) -> str:
    """The unit stopped and disabled, its environment gone; its container stays as it is."""
    planned = server_container.planned(placement)
    return f"""\
systemctl disable --quiet --now {planned.unit} 2>/dev/null || true
systemctl reset-failed {planned.unit} 2>/dev/null || true
rm -f {planned.environment_file}
"""


def preamble(placement: Placement, container: str, container_id: str, host_stack: str) -> str:
    """Shell variables that `start` reads, once the container is known."""
    text = unit.server_environment(placement, container, host_stack)
    return f"CONTAINER_ID='{container_id}'\nENVIRONMENT='{text}'\n"
