"""What every dynamic provider of Berth does to the plugin process that it runs in."""

from __future__ import annotations

import gc
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor

import pulumi
from pulumi.dynamic import ConfigureRequest, ResourceProvider

from models.refusal import Refusal

OPERATIONS_AT_ONCE = 32
"""The SDK's dynamic server works with 4 threads, whatever `--parallel` says (facts: 12 creates of
1 s take 3 s). Loads wait on a network, so many may be under way, on different servers."""


class BerthProvider(ResourceProvider):
    """A provider whose refusals reach the person without a traceback, and which does not queue.

    `configure` is called only in the plugin process, by the SDK's dynamic server
    (`pulumi/dynamic/__main__.py`), before any other method.
    """

    # Nothing is captured in a provider here: pickled by reference, it holds no secret, and a state
    # whose `__provider` is readable can be reviewed.
    serialize_as_secret_always = False

    def configure(self, req: ConfigureRequest) -> None:
        """Make refusals plain and the server's thread pool large enough."""
        del req
        show_refusals_plainly()
        enlarge_thread_pool()


def show_refusals_plainly() -> None:
    """Make `traceback.format_exc` give a Refusal's own text; a bug keeps its traceback.

    The dynamic server aborts a call with `traceback.format_exc()`, and has no other way to fail
    one than `CheckFailure`, which would mean slow network I/O in `check`.
    """
    original = traceback.format_exc
    if getattr(original, "berth", False):
        return

    def format_exc(limit: int | None = None, chain: bool = True) -> str:
        error = sys.exc_info()[1]
        return str(error) if isinstance(error, Refusal) else original(limit, chain)

    format_exc.berth = True  # type: ignore[attr-defined]
    traceback.format_exc = format_exc


def enlarge_thread_pool() -> None:
    """Let the pool that runs this call grow to `OPERATIONS_AT_ONCE`; if not found, 4 it stays."""
    here = threading.current_thread()
    for candidate in gc.get_objects():
        if type(candidate) is not ThreadPoolExecutor:
            continue
        if here in getattr(candidate, "_threads", ()):
            workers = getattr(candidate, "_max_workers", OPERATIONS_AT_ONCE)
            if workers < OPERATIONS_AT_ONCE:
                candidate._max_workers = OPERATIONS_AT_ONCE
            return


def same(old: object, new: object) -> bool:
    """Whether two property values are equal; a value not known yet never is.

    `Unknown` has no `__eq__`. Pulumi makes every number a float, and 8000 == 8000.0 here.
    """
    if isinstance(old, pulumi.output.Unknown) or isinstance(new, pulumi.output.Unknown):
        return False
    return old == new
