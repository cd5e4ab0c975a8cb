"""Asking a real Triton with the project's own client, through SSH."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from components.providers.ssh import Session
from components.providers.ssh_shared import on_host
from components.providers.ssh_tunnel import tunnel
from components.providers.triton_client import TritonClient
from models.instance import CONTROL_HEADER
from tests.triton.real_triton import KEY, RealTriton

T = TypeVar("T")


def ask(triton: RealTriton, question: Callable[[TritonClient], Awaitable[T]], key: str = KEY) -> T:
    """The answer, over a connection and a tunnel of its own."""

    async def work(session: Session) -> T:
        async with tunnel(session, triton.port, {CONTROL_HEADER: key}) as http:
            return await question(TritonClient(http))

    return on_host(triton.sshd.ssh, work)
