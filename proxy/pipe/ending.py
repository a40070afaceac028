"""The shutdown of a pipe on a draining proxy, after the broker's last answers.

A pipe copies bytes and does not know about pending requests. A draining proxy therefore stops
forwarding the client's bytes, and closes the pipe after a silence of the broker.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from limiter.clock import clock_sleep, deadline

if TYPE_CHECKING:
    from limiter.clock import Clock
    from proxy.pipe.leg import PipeLeg

QUIET_SECONDS = 0.1
"""The silence after which a broker has answered all pending requests."""
MOST_LOOKS = 20
"""Silence checks before a constantly sending broker is cut off."""


async def end_pipe(client: PipeLeg, clock: Clock, leave_seconds: float) -> None:
    """Wait until a pipe may be closed; return immediately for a connection without a pipe.

    Args:
        client: The client's side.
        clock: The time.
        leave_seconds: Grace period for the client to disconnect.
    """
    broker = client.other
    if broker is None:
        return
    if leave_seconds > 0:
        with suppress(TimeoutError):
            async with deadline(clock, leave_seconds):
                await client.wait_closed()
    client.take_no_more()
    for _ in range(MOST_LOOKS):
        before = broker.chunks_received
        if client.closed or broker.closed:
            return
        await clock_sleep(clock, QUIET_SECONDS)
        if broker.chunks_received == before:
            return
