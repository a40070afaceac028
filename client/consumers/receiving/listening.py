"""Calls a program's function with each message."""

from __future__ import annotations

import asyncio
import inspect
import logging
from itertools import count
from typing import TYPE_CHECKING

from client.consumers.all_of import ended
from client.exceptions import PulsarException

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from client.messages.message import Message

logger = logging.getLogger(__name__)

_MOST_AT_ONCE = 16
"""Messages after which others have the event loop, if the function never waits."""


class Listening:
    """Calls a function with one message after another, until there will be none.

    What the function raises is logged, and the message is left to the ack timeout.

    Args:
        listener: Called with the owner and a message; what it returns is awaited if it can be.
        owner: The consumer or reader.
        next_message: Returns the next message.
    """

    def __init__(
        self,
        listener: Callable[..., object],
        owner: object,
        next_message: Callable[[], Awaitable[Message]],
    ) -> None:
        self._listener = listener
        self._owner = owner
        self._next_message = next_message
        self._allowed = asyncio.Event()
        self._allowed.set()
        self._task = asyncio.get_running_loop().create_task(self._listen())

    async def _listen(self) -> None:
        for number in count(1):
            if not number % _MOST_AT_ONCE:
                await asyncio.sleep(0)
            await self._allowed.wait()
            try:
                message = await self._next_message()
            except PulsarException as error:
                logger.info("a listener gets no more messages: %s", error)
                return
            await self._allowed.wait()
            try:
                result = self._listener(self._owner, message)
                if inspect.isawaitable(result):
                    await result
            except (Exception, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and self._task.cancelling():
                    raise
                logger.exception("a message listener failed on %s", message.message_id())

    def pause(self) -> None:
        """Call it no more, until ``resume``."""
        self._allowed.clear()

    def resume(self) -> None:
        """Call it again."""
        self._allowed.set()

    async def close(self) -> None:
        """End the function's call too, unless it is the one that closes."""
        await ended(self._task)
