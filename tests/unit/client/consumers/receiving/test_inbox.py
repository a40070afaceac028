"""The inbox merges topics fairly, and delivers only wanted messages."""

import asyncio
from collections import deque
from typing import Any

import pytest

from client.consumers.options import ConsumerBatchReceivePolicy
from client.consumers.receiving.inbox import Inbox
from client.exceptions import AlreadyClosed
from limiter.clock import deadline
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started


class Text(str):
    """A message, reduced to the attributes read by the inbox."""

    @property
    def size_bytes(self) -> int:
        return len(self)


class Topic:
    """Messages of one topic; those starting with "-" are unwanted."""

    more_may_come = True

    def __init__(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self.messages: deque[str] = deque()
        self.found_nothing_count = 0
        inbox.add(self)

    def come(self, *messages: str) -> None:
        self.messages.extend(messages)
        self.inbox.arrived(self, len(messages), sum(map(len, messages)))

    def drop(self) -> None:
        self.inbox.left(len(self.messages), sum(map(len, self.messages)))
        self.messages.clear()

    def take(self) -> Any:
        while self.messages:
            message = self.messages.popleft()
            self.inbox.left(1, len(message))
            if not message.startswith("-"):
                return Text(message)
        return None

    def found_nothing(self) -> None:
        self.found_nothing_count += 1


@pytest.fixture
def inbox() -> Inbox:
    return Inbox(ManualClock())


async def batch(inbox: Inbox, *policy: int) -> list[Any]:
    return await inbox.receive_batch(ConsumerBatchReceivePolicy(*policy), 100)


def test_a_topic_with_dropped_messages_keeps_a_single_turn(inbox: Inbox) -> None:
    lost, other = Topic(inbox), Topic(inbox)
    for _ in range(3):
        lost.come("x")
        lost.drop()
    lost.come("a", "b", "c")
    other.come("1", "2", "3")
    assert [inbox.take() for _ in range(6)] == ["a", "1", "b", "2", "c", "3"]
    assert (inbox.take(), inbox.queued, inbox.queued_bytes) == (None, 0, 0)


def test_a_removed_topic_has_no_turn(inbox: Inbox) -> None:
    lost, other = Topic(inbox), Topic(inbox)
    lost.come("x")
    lost.drop()
    inbox.remove(lost)
    other.come("1")
    assert inbox.take() == "1"


async def test_pending_receives_complete_in_their_order(inbox: Inbox) -> None:
    topic = Topic(inbox)
    receives = [await started(inbox.receive()) for _ in range(3)]
    topic.come("a", "b", "c")
    assert await asyncio.gather(*receives) == ["a", "b", "c"]
    assert inbox.waiting == 0


@pytest.mark.parametrize("arrives_first", [True, False])
async def test_a_message_arriving_at_the_timeout_of_a_receive_is_not_lost(
    arrives_first: bool,
) -> None:
    clock = ManualClock()
    inbox = Inbox(clock)
    topic = Topic(inbox)

    async def receive() -> Any:
        async with deadline(clock, 1):
            return await inbox.receive()

    first, second = await started(receive()), await started(inbox.receive())
    # When both happen in one turn of the loop
    if arrives_first:
        topic.come("a")
    clock.advance(1)
    if not arrives_first:
        topic.come("a")
    await settle()
    # Then one receiver has the message
    assert first.done()
    taken = [one.result() for one in (first, second) if one.done() and not one.exception()]
    assert (taken, inbox.queued) == (["a"], 0)
    second.cancel()


async def test_a_batch_receive_keeps_waiting_when_every_arrived_message_is_skipped(
    inbox: Inbox,
) -> None:
    topic = Topic(inbox)
    topic.come("-a", "-b")
    receiving = await started(batch(inbox, 2, -1, 1_000))
    assert not receiving.done()
    topic.come("c", "d")
    assert await receiving == ["c", "d"]


async def test_a_batch_receive_ends_at_its_byte_limit(inbox: Inbox) -> None:
    topic = Topic(inbox)
    receiving = await started(batch(inbox, -1, 5, -1))
    topic.come("aaaa")
    await settle()
    early = receiving.done()
    topic.come("bbb", "c")
    assert not early
    assert await receiving == ["aaaa", "bbb"]
    assert inbox.queued == 1


async def test_a_batch_receive_without_a_timeout_returns_when_no_more_messages_may_come(
    inbox: Inbox,
) -> None:
    # Given a broker that may send no more
    topic = Topic(inbox)
    topic.come("a")
    topic.more_may_come = False
    assert await batch(inbox, 10, -1, -1) == ["a"]


async def test_a_batch_receive_without_a_timeout_ends_when_any_topic_can_send_no_more(
    inbox: Inbox,
) -> None:
    # Given an empty topic with permits
    full, _ = Topic(inbox), Topic(inbox)
    receiving = await started(batch(inbox, 10, -1, -1))
    full.come("a")
    await settle()
    waits = not receiving.done()
    full.more_may_come = False
    full.come("b")
    await settle()
    assert waits
    assert receiving.done()
    assert await receiving == ["a", "b"]


async def test_end_fails_every_waiting_receive_and_may_be_revoked(inbox: Inbox) -> None:
    topic = Topic(inbox)
    waiting = [await started(inbox.receive()), await started(batch(inbox, 10, -1, -1))]
    inbox.end(AlreadyClosed("closed"))
    await settle()
    assert [type(one.exception()) for one in waiting] == [AlreadyClosed, AlreadyClosed]
    inbox.end(None)
    receiving = await started(inbox.receive())
    topic.come("a")
    assert await receiving == "a"


async def test_a_receive_that_finds_nothing_notifies_every_topic(inbox: Inbox) -> None:
    topics = [Topic(inbox), Topic(inbox)]
    (await started(inbox.receive())).cancel()
    assert [one.found_nothing_count for one in topics] == [1, 1]


def test_topics_with_an_arrival_or_a_standing_request_are_notified_again(inbox: Inbox) -> None:
    # Given topics known to be empty
    latest, quiet, attached, always = (Topic(inbox) for _ in range(4))
    inbox.add(always, always_told=True)
    inbox.tell_sources()
    latest.come("a")
    inbox.take()
    inbox.tell_again(attached)
    for _ in range(2):
        inbox.tell_sources()
    # Then the latest receiver is reported each time: the receiver may want more
    told = [one.found_nothing_count for one in (latest, quiet, attached, always)]
    assert told == [3, 1, 2, 3]


def test_a_removed_topic_is_not_notified(inbox: Inbox) -> None:
    topic = Topic(inbox)
    topic.come("a")
    inbox.take()
    inbox.remove(topic)
    inbox.tell_sources()
    assert topic.found_nothing_count == 0


async def test_a_stopped_inbox_delivers_nothing_and_fails_every_receive() -> None:
    inbox = Inbox(ManualClock())
    topic = Topic(inbox)
    waiting = await started(inbox.receive())
    inbox.stop(AlreadyClosed("stopped"))
    topic.come("too late")
    inbox.end(None)
    assert inbox.take() is None
    for waits in (waiting, inbox.receive(), inbox.receive_batch(ConsumerBatchReceivePolicy(), 10)):
        with pytest.raises(AlreadyClosed, match="stopped"):
            await waits
