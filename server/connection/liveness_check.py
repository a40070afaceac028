"""Asks a client at once whether it lives: somebody else wants what it has."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from limiter.clock import deadline

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock


class LivenessCheck:
    """A PING to one client and the wait for anything that it sends; several who ask share one.

    Args:
        ping: Sends the PING.
        end: Ends the connection of a client that does not answer.
        clock: Measures the time it has.

    Source: upstream ServerCnx.checkConnectionLiveness.
    """

    __slots__ = ("_clock", "_end", "_heard", "_ping")

    def __init__(self, ping: Callable[[], object], end: Callable[[], object], clock: Clock) -> None:
        self._ping = ping
        self._end = end
        self._clock = clock
        self._heard: asyncio.Future[bool] | None = None

    async def lives(self, seconds: float) -> bool:
        """Return true once the client sends something; end it if it does not in time."""
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
        """Take that the client sent something."""
        self._settle(lives=True)

    def lost(self) -> None:
        """Take that the client is gone."""
        self._settle(lives=False)

    def _settle(self, *, lives: bool) -> None:
        heard, self._heard = self._heard, None
        if heard is not None and not heard.done():
            heard.set_result(lives)
