"""What depends on resources of which one may fail in this run.

The engine skips what depends on a failed resource, with all the dependencies that it had before.
One of those may be deleted in the same run (`--continue-on-error`), and the engine then refuses the
whole state for naming a resource that it does not hold (seen with Pulumi 3.259).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import pulumi

from components.providers.demo_routes import DemoRoutes
from components.providers.role_route import RoleRoute
from components.providers.served_model import ServedModel
from components.providers.triton_model import TritonModel

Settling = TritonModel | ServedModel | DemoRoutes | RoleRoute


class HasState(Protocol):
    """A resource that has failed in this run if its state is not known; in a preview, that is to
    change."""

    state: pulumi.Output[str]


def there(
    everything: Sequence[pulumi.Resource], late: Sequence[Settling]
) -> pulumi.Output[list[pulumi.Resource]]:
    """All of it, for `depends_on`, but what of `late` has failed in this run."""

    async def known() -> list[pulumi.Resource]:
        return [*everything, *[each for each in late if await each.state.is_known()]]

    return pulumi.Output.from_input(known())


async def any_failed(needed: Sequence[HasState]) -> bool:
    """Whether any has; not to be asked in a preview."""
    return not all([await each.state.is_known() for each in needed])


async def value_of(output: pulumi.Output[Any]) -> Any:
    """What it came to, without a dependency on where it came from."""
    return await output.future()
