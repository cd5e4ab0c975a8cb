"""nginx.conf and the files beside it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from components.renderers import gateway_config
from models.gateway import Gateway


def conf(**declared: Any) -> str:
    return gateway_config.nginx_conf(Gateway.model_validate(declared))


def test_limits_and_addresses_stand_where_nginx_reads_them() -> None:
    text = conf(
        address="10.0.0.7",
        port=443,
        max_body_mib=8,
        connections_per_key=5,
        timeout_s=300,
        silence_s=30,
        workers=2,
    )
    for line in (
        "worker_processes 2;",
        "worker_shutdown_timeout 300s;",
        "connect_s = 2, timeout_s = 300, silence_s = 30,",
        "connections_per_key = 5,",
        "client_max_body_size 8m;",
        "listen 10.0.0.7:443 ssl backlog=4096 so_keepalive=30s:10s:3;",
        "ssl_certificate /etc/berth/gateway/tls/cert.pem;",
        "ssl_certificate_key /etc/berth/gateway/tls/key.pem;",
        "user berth-gateway;",
        "listen unix:/run/berth-gateway/status.sock;",
        "access_log syslog:server=unix:/dev/log,nohostname,tag=berth_gateway berth;",
        "error_log stderr warn;",
    ):
        assert line in text, line


def test_a_given_certificate_is_used() -> None:
    text = conf(tls={"certificate": "/etc/ssl/a.pem", "key": "/etc/ssl/a.key"})
    assert "ssl_certificate /etc/ssl/a.pem;" in text
    assert "ssl_certificate_key /etc/ssl/a.key;" in text


def test_without_tls_nothing_of_it_is_there() -> None:
    text = conf(address="127.0.0.1", tls="off")
    assert "listen 127.0.0.1:8443 backlog=4096" in text
    assert "ssl" not in text


@pytest.mark.parametrize(
    "line",
    [
        "proxy_pass http://engines$berth_path;",
        "proxy_pass_request_headers off;",
        "proxy_buffering off;",
        "proxy_ignore_client_abort off;",
        "server_tokens off;",
    ],
)
def test_what_the_gateway_promises_hangs_on_lines_that_must_stay(line: str) -> None:
    assert line in conf()


def test_engines_are_asked_through_what_the_gateway_set_and_nothing_else() -> None:
    passed = re.findall(r"proxy_set_header \S+ (\S+);", conf())
    for value in passed:
        assert not value.startswith(("$http_", "$arg_", "$uri", "$request_uri", "$args")), value
    assert re.findall(r"proxy_pass (\S+);", conf()) == ["http://engines$berth_path"]


def test_every_lua_file_is_installed_and_each_module_that_is_used_is_there() -> None:
    files = gateway_config.lua()
    assert all(path.startswith("lua/berth/") for path in files)
    used = set(re.findall(r'require\(?\s*"berth\.(\w+)"', "\n".join([*files.values(), conf()])))
    assert used | {"access", "answer", "journal", "status", "worker"} == {
        path.removeprefix("lua/berth/").removesuffix(".lua") for path in files
    }
