"""In a preview that reaches no host, keys that are not on this machine are no change of the stack.

A pull request's preview runs where no private key is. What the stack's state knows of it stays.
"""

from __future__ import annotations

from collections.abc import Iterable

import pulumi
from pulumi.runtime import register_resource_transform

from components.resources.access import HostAccess

_PRIVATE = ["connection.privateKey", "connection.agentSocketPath"]
_COMMAND, _DOCKER, _DYNAMIC = (
    "command:remote:Command",
    "pulumi:providers:docker",
    "pulumi-python:dynamic/",
)


def let_keys_be(accesses: Iterable[HostAccess]) -> None:
    """Have changes of keys ignored; those of hosts' keys only where a file of one is not here.

    Once for all hosts: the engine calls each transform for every resource.
    """
    host_keys_missing = not all(access.key for access in accesses)

    def ignored(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult:
        paths = list(_PRIVATE) if args.type_ == _COMMAND else []
        if host_keys_missing:
            paths += ["connection.hostKey"] if args.type_ == _COMMAND else []
            paths += ["sshOpts"] if args.type_ == _DOCKER else []
            paths += ["ssh.host_key"] if args.type_.startswith(_DYNAMIC) else []
        opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(ignore_changes=paths))
        return pulumi.ResourceTransformResult(args.props, opts)

    register_resource_transform(ignored)
