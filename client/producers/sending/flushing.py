"""Waiters for the answers of all messages sent before."""

from __future__ import annotations

import asyncio


class Flushers:
    """The callers of ``flush``, each with its newest awaited message.

    Bounded: one item per caller, removed on cancellation.
    """

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], int] = {}
        self._errors: dict[asyncio.Future[None], Exception] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    async def wait_for(self, serial: int) -> Exception | None:
        """Wait until all messages up to a serial are answered; return the first error.

        None: all messages were sent.
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
        """Record a failed message."""
        for done, newest in self._waiting.items():
            if newest >= serial:
                self._errors.setdefault(done, error)

    def oldest_is(self, serial: int | None) -> None:
        """Wake the waiters without older unanswered messages; all if None."""
        for done, newest in self._waiting.items():
            if serial is not None and newest >= serial:
                return  # Later waiters await newer messages.
            if not done.done():
                done.set_result(None)
