"""What goes wrong on the way to a host, as refusals a person can act on."""

from __future__ import annotations

from components.providers.ssh_target import SshTarget
from models.refusal import Refusal

_NOTHING_DONE = "Nothing was changed on the host."


def unreachable(target: SshTarget, reason: str) -> Refusal:
    """Nobody answers as sshd at address and port."""
    return Refusal(
        f"cannot reach the host over SSH at {target.address}, port {target.port}: {reason}",
        consequence=_NOTHING_DONE,
        fix=f"see that the machine is up and `ssh -p {target.port} {target.login}` gets in from "
        "here; address and port are the host's `ssh.address` and `ssh.port`",
        at=target.login,
    )


def connection_lost(target: SshTarget, doing: str) -> Refusal:
    """The connection broke while something was under way."""
    return Refusal(
        f"the SSH connection broke off while {doing}",
        consequence="How far that got is not known; what was begun on the host may go on there.",
        fix="see that the host is up and run the same again: every step may be repeated",
        at=target.login,
    )


def took_too_long(target: SshTarget, doing: str, seconds: float) -> Refusal:
    """A command on the host did not end within its bound (seconds)."""
    return Refusal(
        f"{doing} took more than {seconds:.0f} s on the host",
        consequence="It was given up; what it began may go on there.",
        fix="see what the host is busy with (`systemctl --failed`, `dmesg`) and run the same again",
        at=target.login,
    )


def key_refused(target: SshTarget) -> Refusal:
    """sshd does not let this user in with this key."""
    with_what = target.private_key_file or "any key of the SSH agent"
    install = (
        f"ssh-copy-id -i {target.private_key_file}.pub -p {target.port} {target.login}"
        if target.private_key_file
        else f"ssh-copy-id -p {target.port} {target.login}"
    )
    return Refusal(
        f"the host does not let user `{target.user}` in with {with_what}",
        consequence=_NOTHING_DONE,
        fix=f"install the public key there: `{install}`; user and key are the host's `ssh.user` "
        "and `ssh.private_key_file`",
        at=target.login,
    )


def key_unusable(target: SshTarget, reason: str) -> Refusal:
    """The private key file cannot be used on this machine."""
    return Refusal(
        f"the private key {target.private_key_file} cannot be used: {reason}",
        consequence=_NOTHING_DONE,
        fix="set the host's `ssh.private_key_file` to a private key this user can read (relative "
        "to the project, or from `~`), without a passphrase; for a key with one, unset it and use "
        "`ssh-add`",
        at=target.login,
    )


def no_agent(target: SshTarget, reason: str) -> Refusal:
    """No private key file is declared, and the SSH agent offers no key either."""
    return Refusal(
        f"there is no key to log in with: {reason}, and no `ssh.private_key_file` is set",
        consequence=_NOTHING_DONE,
        fix="set the host's `ssh.private_key_file`, or start an agent and `ssh-add` a key",
        at=target.login,
    )


def host_key_changed(target: SshTarget, declared: str, offered: str) -> Refusal:
    """The machine that answers has another host key than the declared one (fingerprints)."""
    return Refusal(
        f"the host's key is not the declared one: declared {declared}, offered {offered}",
        consequence="This may be another machine in between: the connection was broken off before "
        "anything was sent.",
        fix="compare with `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the host's own "
        "console; only if the machine was reinstalled, put its new public key into the host's "
        "`ssh.host_key` (or `ssh.host_key_file`)",
        at=target.login,
    )


def host_key_unreadable(target: SshTarget, reason: str) -> Refusal:
    """The declared host key is not a public key line."""
    return Refusal(
        f"the declared host key cannot be read: {reason}",
        consequence=_NOTHING_DONE,
        fix="the host's `ssh.host_key` is the line in `/etc/ssh/ssh_host_ed25519_key.pub` there",
        at=target.login,
    )


def sudo_missing(target: SshTarget, reason: str) -> Refusal:
    """The login user is not root and may not use sudo without a password."""
    return Refusal(
        f"user `{target.user}` cannot act as root there: {reason}",
        consequence=_NOTHING_DONE,
        fix=f"as root on the host: `echo '{target.user} ALL=(ALL) NOPASSWD: ALL' > "
        f"/etc/sudoers.d/berth` (and install sudo), or set the host's `ssh.user` to root",
        at=target.login,
    )


def python_missing(target: SshTarget) -> Refusal:
    """There is no python3 on the host."""
    return Refusal(
        "there is no `python3` on the host",
        consequence=_NOTHING_DONE,
        fix="install Python 3.9 or later there (`apt-get install python3-minimal`)",
        at=target.login,
    )


def forwarding_forbidden(target: SshTarget, reason: str) -> Refusal:
    """sshd does not forward to a port of the host's loopback."""
    return Refusal(
        f"the host's sshd does not forward ports for `{target.user}`: {reason}",
        consequence="Triton listens on the host's loopback only, so it cannot be asked anything.",
        fix="set `AllowTcpForwarding local` for this user in the host's sshd_config",
        at=target.login,
    )
