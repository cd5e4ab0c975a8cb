"""Shell scripts that bring up a server of one model's own, and take it away again.

Each may be run again after a kill at any point.
"""

from __future__ import annotations

from components.renderers import server_container, unit
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
    """All of it gone, and the unit stopped, should its model's resource not have done so."""
    planned = server_container.planned(placement)
    files = sorted(server_container.renderer(placement).files(placement))
    gone = " ".join([planned.environment_file, unit.server_path(placement), *files])
    return f"""\
systemctl disable --quiet --now {planned.unit} 2>/dev/null || true
systemctl reset-failed {planned.unit} 2>/dev/null || true
rm -f {gone}
reload=yes
{RELOAD}"""


def prepare(placement: Placement, container: str, container_id: str, host_stack: str) -> str:
    """Before it is started: containers gone that a killed run left behind, with the unit stopped
    where it runs another than its own; the unit's environment written, and the unit enabled.

    That takes systemd a moment in which what it takes the place of still serves.

    Args:
        container: its container's name.
        container_id: and its id.
        host_stack: `project/stack` that set the host up.
    """
    planned = server_container.planned(placement)
    text = unit.server_environment(placement, container, host_stack)
    return f"""\
left=$(docker ps -aq --no-trunc --filter label=berth.instance={planned.name})
left=$(echo "$left" | grep -vx '{container_id}' || true)
if [ -n "$left" ]; then
  # The unit may hold one of them, and systemd would start it over and over from here on.
  [ "$(docker inspect --format '{{{{.State.Running}}}}' '{container_id}' 2>/dev/null)" = true ] ||
    systemctl stop {planned.unit} 2>/dev/null || true
  docker rm -f $left >/dev/null
fi
printf '%s' '{text}' > {planned.environment_file}.new
mv -f {planned.environment_file}.new {planned.environment_file}
systemctl reset-failed {planned.unit} 2>/dev/null || true
systemctl is-enabled --quiet {planned.unit} || systemctl enable --quiet {planned.unit}
"""
