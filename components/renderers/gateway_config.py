"""The gateway's nginx.conf, and the Lua files beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from models.gateway import Gateway, TlsFiles

DIRECTORY = "/etc/berth/gateway"
RUN = "/run/berth-gateway"
USER = "berth-gateway"
SELF_SIGNED = TlsFiles(certificate=f"{DIRECTORY}/tls/cert.pem", key=f"{DIRECTORY}/tls/key.pem")
CONNECT_S = 2
"""How long a connection to an engine may take, in seconds; it is on the same machine."""
KEPT_S = 2
"""How long a connection to an engine is kept for the next request, in seconds. Less than engines
keep it themselves (uvicorn: 5 s), or one would be closed under a request, which nginx does not
send twice."""
_LUA = Path(__file__).parent / "gateway"


@dataclass(frozen=True)
class Place:
    """Where nginx finds its own things; the default is a host's."""

    run: str = RUN
    """Folder of its process id, its status socket, and of buffers on disk, which it never fills."""
    user: str = USER
    """Whom the workers run as."""
    access_log: str = "syslog:server=unix:/dev/log,nohostname,tag=berth_gateway"
    """nginx's own notation; on a host the journal reads that socket."""
    error_log: str = "stderr"


def lua() -> dict[str, str]:
    """Path below the gateway's directory → text of its Lua files."""
    return {f"lua/berth/{file.name}": file.read_text() for file in sorted(_LUA.glob("*.lua"))}


def nginx_conf(gateway: Gateway, place: Place | None = None) -> str:
    """nginx.conf; paths in it that may differ between a copy and the installed one are relative.

    Everything below `location /` is decided by the Lua in `access`; what a client sent in its path
    and headers goes no further, only what is set here does.
    """
    place = place or Place()
    # No body is written to a file, since it holds prompts: there is room for the chunks' own lines.
    body, room = f"{gateway.max_body_mib}m", f"{gateway.max_body_mib * 2}m"
    return f"""\
# Written by Berth. A change made here by hand is undone by the next `pulumi up` that touches it.
load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
daemon off;
user {place.user};
pid {place.run}/nginx.pid;
error_log {place.error_log} warn;
worker_processes {gateway.workers};
worker_shutdown_timeout {gateway.timeout_s}s;

events {{
  worker_connections 16384;
}}

http {{
  lua_package_path "$prefix/lua/?.lua;;";
  lua_shared_dict berth_counts 2m;
  lua_shared_dict berth_health 1m;
  lua_shared_dict berth_routes 16m;
  lua_socket_log_errors off;
  lua_max_running_timers 64;
  init_by_lua_block {{
    require("berth.routes").load {{
      connect_s = {CONNECT_S}, timeout_s = {gateway.timeout_s}, silence_s = {gateway.silence_s},
      connections_per_key = {gateway.connections_per_key},
    }}
    for _, each in ipairs {{ "access", "answer", "journal", "status", "worker" }} do
      require("berth." .. each)
    end
  }}
  init_worker_by_lua_block {{ require("berth.worker").start() }}
  log_by_lua_block {{ require("berth.journal").write() }}
  log_format berth escape=none "$berth_log";
  access_log {place.access_log} berth;
  uninitialized_variable_warn off;

  server_tokens off;
  default_type application/json;
  client_body_temp_path {place.run}/body;
  proxy_temp_path {place.run}/proxy;
  fastcgi_temp_path {place.run}/fastcgi;
  uwsgi_temp_path {place.run}/uwsgi;
  scgi_temp_path {place.run}/scgi;
  client_max_body_size {body};
  client_body_buffer_size {room};
  client_body_in_single_buffer on;
  client_header_timeout 15s;
  client_body_timeout 60s;
  send_timeout 60s;
  keepalive_requests 100000;
  lingering_timeout 1s;

  upstream engines {{
    server 0.0.0.1;
    balancer_by_lua_block {{ require("berth.balance").run() }}
    keepalive 256;
    keepalive_timeout {KEPT_S}s;
  }}

  server {{
    listen {gateway.listen}{_listen_options(gateway)};
{_tls(gateway)}
    header_filter_by_lua_block {{ require("berth.answer").headers() }}
    body_filter_by_lua_block {{ return require("berth.answer").body() }}
    error_page 400 403 404 405 408 413 414 416 421 429 431 500 501 502 503 504 505 /refused;
    error_page 494 =431 /refused;
    error_page 495 496 497 =400 /refused;

    location / {{
      set $berth_log "";
      set $berth_demo "";
      set $berth_role "";
      set $berth_engine "";
      set $berth_key "";
      set $berth_replica "";
      set $berth_replica_id "";
      set $berth_role_count "";
      set $berth_outcome "";
      set $berth_shape "";
      set $berth_path "";
      set $berth_content_type "";
      set $berth_tensor_header "";
      set $berth_request_id "";
      access_by_lua_block {{ require("berth.access").run() }}
      proxy_pass http://engines$berth_path;
      proxy_http_version 1.1;
      proxy_pass_request_headers off;
      proxy_set_header Host localhost;
      proxy_set_header Connection "";
      proxy_set_header Accept "*/*";
      proxy_set_header Content-Type $berth_content_type;
      proxy_set_header Inference-Header-Content-Length $berth_tensor_header;
      proxy_set_header X-Request-Id $berth_request_id;
      proxy_buffering off;
      proxy_buffers 8 16k;
      proxy_buffer_size 16k;
      proxy_ignore_client_abort off;
      proxy_ignore_headers X-Accel-Redirect X-Accel-Expires X-Accel-Limit-Rate X-Accel-Buffering
                           X-Accel-Charset Expires Cache-Control Set-Cookie Vary;
      proxy_next_upstream error timeout;
      proxy_next_upstream_timeout {CONNECT_S * 5}s;
      proxy_redirect off;
    }}

    location = /refused {{
      internal;
      content_by_lua_block {{ require("berth.refuse").by_nginx() }}
    }}
  }}

  server {{
    listen unix:{place.run}/status.sock;
    access_log off;
    log_by_lua_block {{ }}
    location = /status {{
      content_by_lua_block {{ require("berth.status").print() }}
    }}
    location = /check {{
      content_by_lua_block {{ require("berth.status").check() }}
    }}
    location / {{
      return 404;
    }}
  }}
}}
"""


def _listen_options(gateway: Gateway) -> str:
    """A client that vanished without a word is noticed after a minute."""
    options = " backlog=4096 so_keepalive=30s:10s:3"
    return options if gateway.tls == "off" else f" ssl{options}"


def _tls(gateway: Gateway) -> str:
    if gateway.tls == "off":
        return ""
    files = SELF_SIGNED if gateway.tls == "self_signed" else gateway.tls
    return f"""\
    ssl_certificate {files.certificate};
    ssl_certificate_key {files.key};
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_session_cache shared:berth_tls:4m;
    ssl_buffer_size 4k;
"""
