"""Callers that wait until all that was sent before is answered."""

from __future__ import annotations

import asyncio


class Flushers:
    """The callers of ``flush``, each with the newest message it waits for.

    Bound: one entry a caller, which leaves when it is cancelled.
    """

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], int] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    async def wait_for(self, serial: int) -> None:
        """Return when no message up to this one is without an answer."""
        done = asyncio.get_running_loop().create_future()
        self._waiting[done] = serial
        try:
            await done
        finally:
            self._waiting.pop(done, None)

    def oldest_is(self, serial: int | None) -> None:
        """Let those go whose messages all came before this one; all if there is none."""
        for done, newest in self._waiting.items():
            if serial is not None and newest >= serial:
                return  # Those behind it wait for newer ones.
            if not done.done():
                done.set_result(None)
