"""Shell scripts that set a host's gateway up and take it away.

Each may be run again after a kill at any point. What is new is tried before it is installed, by
`nginx -t` on a copy: if it cannot be taken, everything stays as it is, and serves on. nginx is
reloaded for a configuration only; routes (`host/routes.py`) are read by its workers when the file
`revision` changes, so no client's connection is closed for them.
"""

from __future__ import annotations

import ipaddress
import shlex
from pathlib import Path

from components.renderers import gateway_config, gateway_unit, host_service
from components.renderers.gateway_config import DIRECTORY, RUN, SELF_SIGNED, USER
from components.renderers.gateway_shell import FUNCTIONS, LOCK
from components.renderers.host_setup import RELOAD
from models.gateway import Gateway
from models.host import Restart

PACKAGES = Path(__file__).parents[2] / "tools" / "nginx"
_CERTIFICATE_DAYS = 3650
_RENEW_S = 90 * 86400


def setup(gateway: Gateway, restart: Restart) -> str:
    """Packages, user, certificate, configuration and unit; the gateway runs when it ends."""
    files = {**gateway_config.lua(), "nginx.conf": gateway_config.nginx_conf(gateway)}
    lines = [
        f"sh -eu <<'END_OF_FILE'\n{PACKAGES.read_text()}END_OF_FILE",
        FUNCTIONS.rstrip(),
        f"id -u {USER} >/dev/null 2>&1 || useradd --system --user-group --no-create-home "
        f"--shell /usr/sbin/nologin {USER}",
        f"install -d -m 0755 /etc/berth {DIRECTORY} {DIRECTORY}/lua {DIRECTORY}/lua/berth {RUN}",
        f"install -d -m 0750 -g {USER} {DIRECTORY}/routes.d",
        f"install -d -m 0700 {DIRECTORY}/tls",
        "locked",
    ]
    if gateway.tls == "self_signed":
        lines.append(_certificate(gateway))
    lines += [
        f"stage=$(mktemp -d {DIRECTORY}.XXXXXX); trap 'rm -rf \"$stage\"' EXIT",
        'mkdir -p "$stage/lua/berth"',
    ]
    lines += [_staged(path, text) for path, text in files.items()]
    lines.append(_TRIED.rstrip())
    lines += [_REPLACED.format(path=path).rstrip() for path in files]
    lines += [
        f"for f in {DIRECTORY}/lua/berth/*; do",
        '  [ -e "$stage/lua/berth/${f##*/}" ] || rm -f "$f"',
        "done",
        f"unit={gateway_unit.PATH}",
        f"cat > $unit.new <<'END_OF_FILE'\n{gateway_unit.text(restart)}END_OF_FILE",
        "if cmp -s $unit.new $unit; then rm -f $unit.new; else mv -f $unit.new $unit; fi",
        # Without need it is not done: it can cut running containers off their GPUs
        # (nvidia-container-toolkit#48). `enable` does it too.
        "reload=no",
        f"systemctl is-enabled --quiet {gateway_unit.NAME} || "
        f"{{ systemctl enable --quiet {gateway_unit.NAME}; reload=yes; }}",
        f'[ "$(systemctl show -p NeedDaemonReload --value {gateway_unit.NAME})" != yes ] || '
        "reload=yes",
        RELOAD.rstrip(),
        "configuration=$(digest nginx.conf lua tls)",
        'written configuration "$configuration"',
        "started",
        f'says configuration "$configuration" || systemctl reload {gateway_unit.NAME}',
        'awaited configuration "$configuration"',
        "routed",
    ]
    if gateway.tls == "self_signed":  # What clients verify it by, for the stack's outputs.
        lines.append(f"cat {SELF_SIGNED.certificate}")
    return "\n".join(lines) + "\n"


def start() -> str:
    """The unit enabled and running again, with what is installed: after a stop by hand."""
    return f"""\
systemctl reset-failed {gateway_unit.NAME} 2>/dev/null || true
systemctl enable --quiet --now {gateway_unit.NAME}
"""


_TRIED = """\
/usr/sbin/nginx -e stderr -p "$stage/" -c nginx.conf -t -q || {
  echo "  The gateway was left as it is." >&2
  exit 1
}
"""
_REPLACED = f"""\
cmp -s "$stage/{{path}}" {DIRECTORY}/{{path}} || {{{{
  cp "$stage/{{path}}" {DIRECTORY}/{{path}}.new; sync {DIRECTORY}/{{path}}.new
  mv -f {DIRECTORY}/{{path}}.new {DIRECTORY}/{{path}}
}}}}
"""


def unused() -> str:
    """Refuses while demos have routes there, so that nothing is ended before it is known."""
    return host_service.unused(DIRECTORY, gateway_unit.NAME)


def teardown() -> str:
    """The gateway gone. Refuses while demos have routes there."""
    return f"""\
{unused()}\
systemctl disable --quiet --now {gateway_unit.NAME} 2>/dev/null || true
rm -f {gateway_unit.PATH}
reload=yes
{RELOAD}\
rm -rf {DIRECTORY} {DIRECTORY}.?????? {RUN}
rm -f {LOCK}
! id -u {USER} >/dev/null 2>&1 || userdel {USER}
"""


def _staged(path: str, text: str) -> str:
    return f"cat > \"$stage/{path}\" <<'END_OF_FILE'\n{text}END_OF_FILE"


def _certificate(gateway: Gateway) -> str:
    """Made once, and again before it ends or when the names change."""
    named = {"localhost": None, "127.0.0.1": None, gateway.address: None}
    named |= dict.fromkeys(gateway.names)
    alternatives = shlex.quote(
        ",".join(f"{'IP' if _is_address(name) else 'DNS'}:{name}" for name in named)
    )
    folder = f"{DIRECTORY}/tls"
    return f"""\
if ! openssl x509 -checkend {_RENEW_S} -noout -in {SELF_SIGNED.certificate} >/dev/null 2>&1 ||
   [ "$(cat {folder}/names 2>/dev/null)" != {alternatives} ]; then
  (umask 0077
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days {_CERTIFICATE_DAYS} \\
    -subj /CN=berth-gateway -addext subjectAltName={alternatives} \\
    -keyout {SELF_SIGNED.key}.new -out {SELF_SIGNED.certificate}.new 2>/dev/null)
  mv -f {SELF_SIGNED.key}.new {SELF_SIGNED.key}
  mv -f {SELF_SIGNED.certificate}.new {SELF_SIGNED.certificate}
  echo {alternatives} > {folder}/names
fi"""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
