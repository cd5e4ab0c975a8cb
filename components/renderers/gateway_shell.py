"""Shell functions that the gateway's scripts share."""

from __future__ import annotations

from components.renderers.gateway_config import DIRECTORY, RUN
from components.renderers.gateway_unit import NAME

LOCK = "/etc/berth/gateway.lock"
"""Held by a script while it changes the gateway."""
ASK = """\
import http.client, socket, sys
class Gateway(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(5)
        self.sock.connect(sys.argv[1])
gateway = Gateway("gateway")
gateway.request("GET", "/status")
answer = gateway.getresponse()
print(answer.read().decode())
sys.exit(answer.status != 200)
"""
"""For `python3 -I -c`, with the status socket's path: prints the gateway's status, as JSON."""
FUNCTIONS = f"""\
# ask: the gateway's status.
ask() {{
  python3 -I -c '{ASK}' {RUN}/status.sock
}}
# locked: nobody else changes the gateway until this script ends; what a killed one left is gone.
locked() {{
  exec 9> {LOCK}
  flock -w 60 9 || {{ echo "another run has been changing the gateway for a minute" >&2; exit 1; }}
  rm -rf {DIRECTORY}.??????
}}
# written NAME TEXT: a file of one line, in one step.
written() {{
  (umask 0022; echo "$2" > {DIRECTORY}/$1.new); mv -f {DIRECTORY}/$1.new {DIRECTORY}/$1
}}
# says NAME TEXT: the gateway that runs has loaded this.
says() {{
  ask 2>/dev/null | grep -q "\\"$1\\":\\"$2\\""
}}
# awaited NAME TEXT: it has, within 15 seconds.
awaited() {{
  for i in $(seq 75); do ! says "$1" "$2" || return 0; sleep 0.2; done
  journalctl --unit {NAME} --lines 8 --output cat --no-pager >&2 || true
  echo "{NAME} does not serve what was installed" >&2
  exit 1
}}
# started: the unit runs and answers. Before it does, the signal to reload would end it.
started() {{
  systemctl is-active --quiet {NAME} || {{
    systemctl reset-failed {NAME} 2>/dev/null || true
    systemctl start {NAME}
  }}
  for i in $(seq 50); do ! ask >/dev/null 2>&1 || return 0; sleep 0.2; done
}}
# digest PATH…: of what is installed there.
digest() {{
  (cd {DIRECTORY} && find "$@" -type f ! -name '*.new' | LC_ALL=C sort | xargs -r sha256sum |
    sha256sum | cut -c1-16)
}}
# routed: the routes that are installed are served.
routed() {{
  revision=$(digest routes.d)
  written revision "$revision"
  awaited revision "$revision"
}}
"""
