"""Immediate liveness check of a client, when another client wants its resource."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from limiter.clock import deadline

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock


class LivenessCheck:
    """A PING to a client and the wait for any sign of life, shared by concurrent callers.

    Args:
        ping: Sends the PING.
        end: Closes the connection of a silent client.
        clock: The source of time.

    Source: upstream ServerCnx.checkConnectionLiveness.
    """

    __slots__ = ("_clock", "_end", "_heard", "_ping")

    def __init__(self, ping: Callable[[], object], end: Callable[[], object], clock: Clock) -> None:
        self._ping = ping
        self._end = end
        self._clock = clock
        self._heard: asyncio.Future[bool] | None = None

    async def lives(self, seconds: float) -> bool:
        """Return True once the client sends a frame; close its connection after ``seconds``."""
        if self._heard is None:
            self._heard = asyncio.get_running_loop().create_future()
            self._ping()
        try:
            async with deadline(self._clock, seconds):
                return await asyncio.shield(self._heard)
        except TimeoutError:
            self._end()
            return False

    def heard(self) -> None:
        """Handle a frame of the client."""
        self._settle(lives=True)

    def lost(self) -> None:
        """Handle the end of the connection."""
        self._settle(lives=False)

    def _settle(self, *, lives: bool) -> None:
        heard, self._heard = self._heard, None
        if heard is not None and not heard.done():
            heard.set_result(lives)
