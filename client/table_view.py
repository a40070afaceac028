"""A continuously updated table with the latest value of each key of a topic."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from client.consumers.options import ReaderOptions
from client.consumers.reader import open_reader
from client.exceptions import PulsarException, Timeout
from client.messages.message import ValueT
from client.messages.message_id import MessageId
from limiter.tasks import ended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from client.consumers.reader import Reader
    from client.consumers.statistics import ConsumerStatistics
    from client.context import ClientContext
    from client.messages.message import Message
    from client.schema.schema import Schema

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 100
"""Maximum number of messages added to the table in one event-loop iteration."""

ASK_AGAIN_MS = 1_000
"""Milliseconds to wait for a message that the broker announced, before asking it again."""


class TableView(Mapping[str, ValueT]):
    """The latest value of each key of a topic.

    ``Client.create_table_view`` creates it. A mapping: ``in``, ``len``, iteration over keys,
    ``items()`` and so on. Values are decoded at each access. A null or empty value removes its key;
    messages without a key are ignored. All values stay in memory, outside the client's memory
    limit.

    Example:
        async with await client.create_table_view("prices", schema=JsonSchema(Price)) as prices:
            print(prices.get("tea"))

    Args:
        context: State that the client shares with all its producers and consumers.
        reader: Reader that starts at the topic's first message.

    Attributes:
        failure: The error that stopped the updates, or None.
    """

    def __init__(self, context: ClientContext, reader: Reader[ValueT]) -> None:
        self._context = context
        self._reader = reader
        self._newest: dict[str, Message[ValueT]] = {}
        self._listeners: list[Callable[[str, Any], object]] = []
        self._task: asyncio.Task[None] | None = None
        self.failure: PulsarException | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __getitem__(self, key: str) -> ValueT:
        return self._newest[key].value()

    def __contains__(self, key: object) -> bool:
        return key in self._newest

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._newest))

    def __len__(self) -> int:
        return len(self._newest)

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def for_each(self, callback: Callable[[str, Any], object]) -> None:
        """Call ``callback`` with each key and its value."""
        for key, value in self.items():
            callback(key, value)

    def for_each_and_listen(self, callback: Callable[[str, Any], object]) -> None:
        """Call ``callback`` with each key and value, now and at each later update.

        Exceptions of later calls are logged.

        Args:
            callback: A plain function, called with key and value; the value of a removed key is
                None.
        """
        self.for_each(callback)
        self._listeners.append(callback)

    async def fill(self) -> None:
        """Read all existing messages of the topic into the table.

        Raises:
            PulsarException: The topic cannot be read.
        """
        count = 0
        while await self._reader.has_message_available():
            try:
                self._apply(await self._reader.read_next(ASK_AGAIN_MS))
            except Timeout:
                continue  # The announced messages are unreadable, or compacted away.
            count += 1
            if not count % MOST_AT_ONCE:
                await asyncio.sleep(0)

    def follow(self) -> None:
        """Start applying new messages to the table, until the table is closed."""
        self._task = asyncio.get_running_loop().create_task(self._follow())

    async def _follow(self) -> None:
        count = 0
        try:
            async for message in self._reader:
                self._apply(message)
                count += 1
                if not count % MOST_AT_ONCE:
                    await asyncio.sleep(0)
        except PulsarException as error:
            self.failure = error
            logger.warning("the table view of %s is no longer updated: %s", self.topic(), error)

    def _apply(self, message: Message[ValueT]) -> None:
        key = message.partition_key()
        if not key:
            return
        if message.has_null_value() or not message.data():
            self._newest.pop(key, None)
        else:
            self._newest[key] = message
        for listener in self._listeners:
            try:
                listener(key, self.get(key))
            except Exception:
                logger.exception("a listener of the table view of %s failed", self.topic())

    def topic(self) -> str:
        """Return the full name of the topic."""
        return self._reader.topic()

    def statistics(self) -> ConsumerStatistics:
        """Return the statistics of the reader that fills the table."""
        return self._reader.statistics()

    async def close(self) -> None:
        """Stop updating the table, which keeps its content; further calls do nothing."""
        self._context.parts.discard(self)
        try:
            await ended(self._task)
        finally:
            await self._reader.close()

    def __repr__(self) -> str:
        return f"<TableView of {self.topic()}, {len(self)} keys>"


async def open_table_view(
    context: ClientContext,
    topic: str,
    subscription_name: str | None = None,
    schema: Schema[Any] | None = None,
) -> TableView[Any]:
    """Return the table view of a topic, filled from all existing messages.

    Args:
        context: State that the client shares with all its producers and consumers.
        topic: Full name of the topic.
        subscription_name: Name of the reader's subscription; None for a random name.
        schema: Schema that decodes the values; with None, values are bytes.

    Raises:
        PulsarException: The topic cannot be read.
    """
    options = ReaderOptions(
        schema=schema, is_read_compacted=True, subscription_name=subscription_name
    )
    view = TableView(context, await open_reader(context, topic, MessageId.earliest, options))
    try:
        await view.fill()
    except BaseException:
        await view.close()
        raise
    view.follow()
    return view
