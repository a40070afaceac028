"""The end of a pipe whose proxy drains: what the broker still answers passes first.

The proxy does not know what a client waits for: it copies bytes. So it stops to pass on what the
client sends, and closes the pipe when the broker has said nothing for a moment.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from limiter.clock import clock_sleep, deadline

if TYPE_CHECKING:
    from limiter.clock import Clock
    from proxy.pipe.leg import PipeLeg

QUIET_SECONDS = 0.1
"""A broker that said nothing for so long has answered what it was asked."""
MOST_LOOKS = 20
"""A broker that does not fall silent, as one with messages for a consumer, is cut off then."""


async def end_pipe(client: PipeLeg, clock: Clock, leave_seconds: float) -> None:
    """Return when a pipe may be closed; at once for a connection that is none.

    Args:
        client: The side of the client.
        clock: Where time comes from.
        leave_seconds: How long the client may go on, in the hope that it leaves by itself.
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
