"""Shell scripts that set a host up for instances, and take it all away again.

Each may be run again after a kill at any point, and changes nothing that is right already. Those
that set up are piped into `sh`; those that take away are its argument, because the Command
provider pipes the standard input of `create` into `delete` too.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from components.renderers import berth_host, unit
from components.renderers.container import SERVE
from models.host import Host
from models.plan import SERVERS, PlannedInstance

SERVE_SOURCE = Path(__file__).parents[2] / "host" / "serve_triton.py"
_LEDGER_DIR = berth_host.LEDGER.rpartition("/")[0]

INSTALL = """\
# install_file PATH [MODE]: standard input becomes the file, in one step; says `changed` where it
# differed.
install_file() {
  t=$(mktemp "$1.XXXXXX"); trap 'rm -f "$t"' EXIT
  cat > "$t"; chmod "${2:-0644}" "$t"
  if cmp -s "$t" "$1"; then rm -f "$t"; else sync "$t"; mv -f "$t" "$1"; echo changed; fi
}
"""


def from_stdin(user: str) -> str:
    """The command that runs a script from standard input as root."""
    return "/bin/sh -eu" if user == "root" else "sudo -n /bin/sh -eu"


def as_argument(user: str, script: str) -> str:
    """The command that runs `script` as root."""
    return f"{from_stdin(user)}c {shlex.quote(script)}"


def setup(host: Host, instances: Sequence[PlannedInstance]) -> str:
    """Directories, berth-host, template unit, launcher, and a control key for each instance.

    `daemon-reload` runs only when the template unit changed, because on Docker's hook path it can
    cut running containers off their GPUs (nvidia-container-toolkit#48); units whose container lost
    them are restarted.
    """
    lines = [
        f"install -d -m 0755 {host.data_dir} {host.repository} {host.weights}",
        "install -d -m 0755 /etc/berth",
        f"install -d -m 0755 {SERVERS}",
        f"install -d -m 0700 /etc/berth/instances {_LEDGER_DIR}",
        INSTALL.rstrip(),
        _berth_host(),
        installed(SERVE, SERVE_SOURCE.read_text()),
        installed(unit.TEMPLATE_PATH, unit.template(host)),
        '[ -z "$changed" ] || reload=yes',
    ]
    lines += [
        f"[ -s {path} ] || (umask 0377; head -c 32 /dev/urandom | base64 -w0 | tr '+/' '-_'"
        f" > {path}.new; mv -f {path}.new {path})"
        for path in (instance.control_key_file for instance in instances)
    ]
    lines.append(_drop_others(instances))
    # A run that was killed may have installed the template without the reload that follows.
    lines += [
        f'[ "$(systemctl show -p NeedDaemonReload --value {instance.unit})" != yes ] || reload=yes'
        for instance in instances
    ]
    lines.append(RELOAD.rstrip())
    return "reload=no\n" + "\n".join(lines) + "\n"


RELOAD = """\
if [ "$reload" = yes ]; then
  systemctl daemon-reload
  for c in $(docker ps -q --filter label=berth.instance); do
    docker exec "$c" nvidia-smi -L >/dev/null 2>&1 && continue
    label='{{ index .Config.Labels "berth.instance" }}'
    u=$(docker inspect -f "$label" "$c" 2>/dev/null) || continue
    # One that is just being taken down lets nobody in either: its unit is disabled first.
    systemctl try-restart "$u" || ! systemctl is-enabled --quiet "$u" 2>/dev/null || exit 1
  done
fi
"""


def _berth_host() -> str:
    """Unpacked first: an interpreter that fails must not leave an empty program."""
    return (
        f"mkdir -p {berth_host.PATH.rpartition('/')[0]}\n"
        f"python3 -I -c '{berth_host.UNPACK}' > {_LEDGER_DIR}/berth-host.new <<'END_OF_FILE'\n"
        f"{berth_host.packed()}END_OF_FILE\n"
        f"changed=$(install_file {berth_host.PATH} 0755 < {_LEDGER_DIR}/berth-host.new)\n"
        f"rm -f {_LEDGER_DIR}/berth-host.new"
    )


def installed(path: str, text: str) -> str:
    return f"changed=$(install_file {path} <<'END_OF_FILE'\n{text}END_OF_FILE\n)"


def _drop_others(instances: Sequence[PlannedInstance]) -> str:
    """Keys of instances that are neither declared nor there: until then, models are unloaded."""
    kept = "|".join(instance.control_key_file for instance in instances) or "-"
    return (
        "for k in /etc/berth/instances/*.key; do\n"
        f'  case "$k" in {kept}) ;; *) [ -e "${{k%.key}}.env" ] || rm -f "$k" ;; esac\n'
        "done"
    )


def teardown(host: Host, host_stack: str) -> str:
    """Everything of `setup` gone, weights excepted.

    Refuses while repository entries are there, or claims of others than `host_stack`.
    """
    return f"""\
left=$(ls -A {host.repository} 2>/dev/null | tr '\\n' ' ')
if [ -n "$left" ]; then
  echo "{host.repository} still holds: $left" >&2
  echo "Demos on this host would lose their models, so it stays set up." >&2
  echo "Fix: pulumi destroy the stacks of those demos first." >&2
  exit 1
fi
[ ! -x {berth_host.PATH} ] || {berth_host.PATH} dismantle --stack {host_stack}
rm -f {unit.TEMPLATE_PATH}
systemctl daemon-reload
rm -rf /etc/berth {_LEDGER_DIR} {host.data_dir}/.staging
rm -f {berth_host.PATH}
[ ! -d {host.repository} ] || rmdir {host.repository}
"""


def start_instance(instance: PlannedInstance) -> str:
    """The unit's environment, then the unit enabled and running; reads what `preamble` sets.

    Containers of the same instance that a killed run left behind are removed: their name differs
    from the one that the unit is given.
    """
    label = f"label=berth.instance={instance.name}"
    return f"""\
umask 0077
printf '%s' "$ENVIRONMENT" > {instance.environment_file}.new
mv -f {instance.environment_file}.new {instance.environment_file}
for c in $(docker ps -aq --no-trunc --filter {label}); do
  [ "$c" = "$CONTAINER_ID" ] || docker rm -f "$c" >/dev/null
done
systemctl enable --quiet {instance.unit}
systemctl reset-failed {instance.unit} 2>/dev/null || true
{berth_host.PATH} gate {instance.name}
systemctl restart {instance.unit} || {{
  journalctl --unit {instance.unit} --lines 8 --output cat --no-pager >&2  # why it may not start
  exit 1
}}
systemctl is-active {instance.unit}
"""


def stop_instance(instance: PlannedInstance) -> str:
    """The unit stopped and disabled, its environment gone; its container stays as it is."""
    return f"""\
systemctl disable --quiet --now {instance.unit} 2>/dev/null || true
systemctl reset-failed {instance.unit} 2>/dev/null || true
rm -f {instance.environment_file}
"""


def preamble(instance: PlannedInstance, container: str, container_id: str, host_stack: str) -> str:
    """Shell variables that `start_instance` reads, once the container is known."""
    text = unit.environment(instance, container, host_stack)
    return f"CONTAINER_ID='{container_id}'\nENVIRONMENT='{text}'\n"
