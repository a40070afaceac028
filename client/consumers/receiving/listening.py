"""Message listeners: a program's function called with each message."""

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
"""Messages per event-loop iteration, for functions without an await."""


class Listening:
    """A loop calling a function with every message, in order, until the receiver ends.

    An exception of the function is logged; the ack timeout redelivers the message.

    Args:
        listener: Called with the owner and a message; an awaitable result is awaited.
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
        """Stop calling the function until ``resume``."""
        self._allowed.clear()

    def resume(self) -> None:
        """Call the function again."""
        self._allowed.set()

    async def close(self) -> None:
        """Cancel the running call too, unless the call itself is closing."""
        await ended(self._task)
