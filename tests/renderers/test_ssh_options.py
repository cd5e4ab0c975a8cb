"""The Docker provider's ssh accepts the declared host key only."""

from __future__ import annotations

from components.renderers.ssh_options import ssh_options


def test_only_the_declared_key_is_accepted_and_nothing_is_asked() -> None:
    options = ssh_options("alpha", "ssh-ed25519 AAAA comment", "~/.ssh/id")
    pairs = dict(zip(options[::2], options[1::2], strict=True))
    assert set(options[::2]) == {"-o"}
    assert pairs["-o"] == "IdentityFile=~/.ssh/id"
    assert "KnownHostsCommand=/bin/echo berth-alpha ssh-ed25519 AAAA" in options
    assert "HostKeyAlias=berth-alpha" in options
    assert "StrictHostKeyChecking=yes" in options
    assert "BatchMode=yes" in options


def test_without_a_key_file_the_agent_is_asked() -> None:
    assert not [o for o in ssh_options("alpha", "ssh-ed25519 AAAA", None) if "Identit" in o]
