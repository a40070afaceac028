"""A table view's decisions, with a reader fed by tests."""

import asyncio
from types import SimpleNamespace
from typing import Any, Self

import pytest

import client.table_view as module
import proto.PulsarApi_pb2 as pb
from client.consumers.options import ReaderOptions
from client.exceptions import NotConnected, Timeout
from client.messages.message import EntryHead, Message
from client.schema import StringSchema
from client.table_view import TableView, open_table_view
from tests.support.clocks.settle import settle, started

TOPIC = "persistent://public/default/t"


def message(key: str | None, value: str | None) -> Message:
    """A message of no batch."""
    metadata = pb.MessageMetadata()
    if key is not None:
        metadata.partition_key = key
    if value is None:
        metadata.null_value = True
    head = EntryHead(metadata, pb.CommandMessage(), TOPIC, StringSchema())
    return Message(head, None, (value or "").encode(), -1)


class FedReader:
    """A reader of messages from a test."""

    def __init__(self, *messages: Message | Exception) -> None:
        self.coming: asyncio.Queue[Message | Exception | None] = asyncio.Queue()
        for one in messages:
            self.coming.put_nowait(one)
        self.closed = 0
        self.asked = asyncio.Event()

    def topic(self) -> str:
        return TOPIC

    async def has_message_available(self) -> bool:
        self.asked.set()
        return not self.coming.empty()

    async def read_next(self, _: int | None = None) -> Message:
        found = await self.coming.get()
        if isinstance(found, Exception):
            raise found
        assert found is not None
        return found

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        if (found := await self.coming.get()) is None:
            raise StopAsyncIteration
        if isinstance(found, Exception):
            raise found
        return found

    async def close(self) -> None:
        self.closed += 1


class Opened:
    """Opens table views on readers of a test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reader = FedReader()
        self.options: ReaderOptions | None = None
        self.context: Any = SimpleNamespace(parts=set())
        monkeypatch.setattr(module, "open_reader", self._open)

    async def _open(self, context: object, topic: str, start: object, options: Any) -> FedReader:
        self.options = options
        return self.reader

    async def view(self, *messages: Message | Exception, name: str | None = None) -> TableView:
        self.reader = FedReader(*messages)
        return await open_table_view(self.context, TOPIC, name, StringSchema())


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    return Opened(monkeypatch)


async def test_null_and_empty_values_remove_their_keys(opened: Opened) -> None:
    view = await opened.view(
        message("a", "1"),
        message("b", "2"),
        message("c", "3"),
        message(None, "no key"),
        message("a", None),
        message("b", ""),
        message("never", None),
    )
    assert dict(view) == {"c": "3"}
    assert opened.options is not None
    assert opened.options.is_read_compacted
    await view.close()


async def test_the_subscription_name_is_passed_to_the_reader(opened: Opened) -> None:
    view = await opened.view(name="mine")
    assert opened.options is not None
    assert opened.options.subscription_name == "mine"
    await view.close()


async def test_a_read_error_while_filling_closes_the_reader(opened: Opened) -> None:
    with pytest.raises(NotConnected):
        await opened.view(message("a", "1"), NotConnected("gone"))
    assert opened.reader.closed == 1


async def test_an_announced_message_that_does_not_arrive_is_not_awaited(opened: Opened) -> None:
    view = await opened.view(message("a", "1"), Timeout("no message came"))
    assert dict(view) == {"a": "1"}
    await view.close()


async def test_a_cancelled_opening_closes_the_reader(opened: Opened) -> None:
    opened.reader = reader = FedReader()
    hold = asyncio.Event()
    reader.has_message_available = hold.wait  # type: ignore[method-assign,assignment]
    opening = await started(open_table_view(opened.context, TOPIC))
    opening.cancel()
    await asyncio.wait([opening])
    assert reader.closed == 1


async def test_a_later_read_error_keeps_the_table_and_is_reported_as_failure(
    opened: Opened,
) -> None:
    view = await opened.view(message("a", "1"))
    failure = Timeout("gone")
    opened.reader.coming.put_nowait(failure)
    await settle()
    assert view.failure is failure
    assert dict(view) == {"a": "1"}
    await view.close()


async def test_the_end_of_the_topic_keeps_the_table_without_a_failure(opened: Opened) -> None:
    view = await opened.view(message("a", "1"))
    opened.reader.coming.put_nowait(None)
    await settle()
    assert view.failure is None
    assert dict(view) == {"a": "1"}
    await view.close()


async def test_closing_twice_removes_the_view_from_the_client(opened: Opened) -> None:
    view = await opened.view()
    opened.context.parts.add(view)
    async with view:
        pass
    await view.close()
    assert opened.context.parts == set()


async def test_keys_may_be_removed_during_iteration(opened: Opened) -> None:
    view = await opened.view(message("a", "1"), message("b", "2"))
    keys = []
    for key in view:
        keys.append(key)
        view._newest.clear()
    assert keys == ["a", "b"]
    await view.close()


async def test_filling_a_large_table_yields_to_other_tasks(opened: Opened) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = await started(count())
    view = await opened.view(*(message(str(number), "x") for number in range(1_000)))
    assert len(view) == 1_000
    assert turns >= 10
    counting.cancel()
    await view.close()
