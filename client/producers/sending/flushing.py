"""Callers that wait until all that was sent before is answered."""

from __future__ import annotations

import asyncio


class Flushers:
    """The callers of ``flush``, each with the newest message it waits for.

    Bound: one entry a caller, which leaves when it is cancelled.
    """

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], int] = {}
        self._errors: dict[asyncio.Future[None], Exception] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    async def wait_for(self, serial: int) -> Exception | None:
        """Return when no message up to this one is without an answer: the error of the first.

        None: all of them were sent.
        """
        done = asyncio.get_running_loop().create_future()
        self._waiting[done] = serial
        try:
            await done
            return self._errors.get(done)
        finally:
            self._waiting.pop(done, None)
            self._errors.pop(done, None)

    def failed(self, serial: int, error: Exception) -> None:
        """Note that a message was not sent."""
        for done, newest in self._waiting.items():
            if newest >= serial:
                self._errors.setdefault(done, error)

    def oldest_is(self, serial: int | None) -> None:
        """Let those go whose messages all came before this one; all if there is none."""
        for done, newest in self._waiting.items():
            if serial is not None and newest >= serial:
                return  # Those behind it wait for newer ones.
            if not done.done():
                done.set_result(None)
