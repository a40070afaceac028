"""Entries bound for the dead-letter topic count as long as their connection lives."""

import asyncio

import pytest

from client.consumers import dead_letters
from client.consumers.consumer import Consumer
from client.consumers.dead_letters import _Letter
from client.consumers.options import ConsumerDeadLetterPolicy
from client.exceptions import AlreadyClosed, NotConnected, PulsarException, TopicTerminated
from client.messages.enums import ConsumerType
from client.messages.outgoing import OutgoingMessage
from tests.support.clocks.settle import settle, started
from tests.support.messages.entries import batch_of
from tests.support.peers.model_broker import ModelBroker
from tests.support.peers.model_consumers import after, opened


class Topic:
    """Counts freed entries."""

    def __init__(self) -> None:
        self.incoming = self
        self.losses = 0
        self.freed: list[tuple[int, int]] = []

    def count_freed(self, messages: int, size_bytes: int) -> None:
        self.freed.append((messages, size_bytes))


@pytest.fixture
def broker() -> ModelBroker:
    return ModelBroker().publish()


@pytest.mark.parametrize(("losses", "freed"), [(0, [(2, 300)]), (1, [])])
def test_an_entry_lost_with_its_connection_is_not_freed_again(losses, freed) -> None:
    topic = Topic()
    letter = _Letter(topic, None, 2, 300, topic.losses)  # type: ignore[arg-type]
    topic.losses += losses
    letter.freed()
    assert topic.freed == freed


class Producer:
    """A producer whose sends a test completes."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.sent: list[tuple[bytes, dict[str, str]]] = []
        self.errors: list[PulsarException] = []
        self.hold: asyncio.Event | None = None
        self.closed = 0

    async def send(self, content: bytes, properties: dict[str, str], **_: object) -> None:
        if self.hold is not None:
            await self.hold.wait()
        if self.errors:
            raise self.errors.pop(0)
        self.sent.append((content, properties))

    async def close(self) -> None:
        self.closed += 1
        await settle()


class Producers:
    """A factory of producers, opened by a test."""

    def __init__(self) -> None:
        self.opened: list[Producer] = []
        self.errors: list[Exception] = []
        self.hold: asyncio.Event | None = None

    async def open(self, _: object, topic: str, options: object) -> Producer:
        if self.hold is not None:
            await self.hold.wait()
        if self.errors:
            raise self.errors.pop(0)
        self.opened.append(Producer(topic))
        return self.opened[-1]


@pytest.fixture
def producers(monkeypatch: pytest.MonkeyPatch) -> Producers:
    producers = Producers()
    monkeypatch.setattr(dead_letters, "open_producer", producers.open)
    return producers


async def retrying(broker: ModelBroker, *, retry_enabled: bool = True) -> Consumer:
    return await opened(
        broker,
        consumer_type=ConsumerType.Shared,
        dead_letter_policy=ConsumerDeadLetterPolicy(1, dead_letter_topic="dead"),
        retry_enabled=retry_enabled,
        negative_ack_redelivery_delay_ms=1_000,
    )


async def refused_twice(broker: ModelBroker, consumer: Consumer, messages: int = 1) -> None:
    for _ in range(2):
        for message in [await consumer.receive() for _ in range(messages)]:
            await consumer.negative_acknowledge(message)
        await after(broker, 1.2)


async def test_a_terminated_retry_producer_is_closed_and_replaced_for_the_next_message(
    broker: ModelBroker, producers: Producers
) -> None:
    consumer = await retrying(broker)
    message = await consumer.receive()
    await consumer.reconsume_later(message, 10)
    producers.opened[0].errors.append(TopicTerminated("terminated"))
    with pytest.raises(TopicTerminated):
        await consumer.reconsume_later(message, 10)
    await consumer.reconsume_later(message, 10)
    assert [(one.closed, len(one.sent)) for one in producers.opened] == [(1, 1), (0, 1)]
    await consumer.close()
    assert producers.opened[1].closed == 1


async def test_a_producer_that_failed_to_open_is_retried_with_the_next_delivery(
    broker: ModelBroker, producers: Producers
) -> None:
    consumer = await retrying(broker)
    producers.errors.append(NotConnected("not now"))
    await refused_twice(broker, consumer)
    failed = broker.left
    await after(broker, 1.2)
    await after(broker, 0.1)
    assert failed == [0]
    assert [one.topic for one in producers.opened] == ["dead"]
    assert len(producers.opened[0].sent) == 1
    assert broker.left == []


async def test_a_dead_letter_that_cannot_be_sent_does_not_block_other_messages(
    producers: Producers,
) -> None:
    broker = ModelBroker().publish(entries=2)
    consumer = await retrying(broker, retry_enabled=False)
    producers.errors.append(ValueError("an event's time that no producer takes"))
    await refused_twice(broker, consumer, messages=2)
    await after(broker, 0.1)
    assert broker.left == [0]
    await after(broker, 1.2)
    await after(broker, 0.1)
    assert broker.left == []


async def test_a_dead_letter_pending_over_a_lost_connection_is_sent_once(
    broker: ModelBroker, producers: Producers
) -> None:
    broker.publish()
    consumer = await retrying(broker, retry_enabled=False)
    producers.hold = asyncio.Event()
    await refused_twice(broker, consumer, messages=2)
    broker.breaks()
    await after(broker, 1)
    producers.hold.set()
    await after(broker, 1)
    assert [content for content, _ in producers.opened[0].sent].count(b"1") == 1
    assert broker.left == []
    await consumer.close()
    assert broker.memory.current_usage == 0


async def test_a_dead_letter_pending_over_a_redelivery_of_all_messages_is_sent_once(
    broker: ModelBroker, producers: Producers
) -> None:
    broker.publish()
    consumer = await retrying(broker, retry_enabled=False)
    producers.hold = asyncio.Event()
    await refused_twice(broker, consumer, messages=2)
    consumer.redeliver_unacknowledged_messages()
    await settle()
    producers.hold.set()
    await after(broker, 1)
    assert [content for content, _ in producers.opened[0].sent] == [b"0", b"1"]
    assert (broker.left, broker.memory.current_usage) == ([], 0)


async def test_reconsume_later_fails_when_the_consumer_closes(producers: Producers) -> None:
    broker = ModelBroker().publish()
    consumer = await retrying(broker)
    message = await consumer.receive()
    producers.hold = asyncio.Event()
    sending = await started(consumer.reconsume_later(message, 10))
    await consumer.close()
    with pytest.raises(AlreadyClosed):
        await sending
    with pytest.raises(AlreadyClosed):
        await consumer.reconsume_later(message, 10)
    assert producers.opened == []


async def test_a_dead_letter_in_flight_is_acknowledged_before_the_consumer_closes(
    broker: ModelBroker, producers: Producers
) -> None:
    broker.publish()
    consumer = await retrying(broker, retry_enabled=False)
    hold = producers.hold = asyncio.Event()
    await refused_twice(broker, consumer, messages=2)
    closing = await started(consumer.close())
    hold.set()
    await closing
    assert [content for content, _ in producers.opened[0].sent] == [b"0"]
    assert (broker.left, broker.memory.current_usage) == ([1], 0)
    assert producers.opened[0].closed == 1


async def test_a_stuck_dead_letter_does_not_prevent_acknowledgements_at_close(
    broker: ModelBroker, producers: Producers
) -> None:
    consumer = await retrying(broker, retry_enabled=False)
    producers.hold = asyncio.Event()
    await refused_twice(broker, consumer)
    broker.publish()
    await consumer.acknowledge(await consumer.receive())
    closing = await started(consumer.close())
    await after(broker, 15)
    assert closing.done()
    assert broker.left == [0]


async def test_a_cancelled_close_still_closes_every_producer(broker, producers) -> None:
    consumer = await retrying(broker)
    message = await consumer.receive()
    await consumer.reconsume_later(message, 10)
    letters = consumer._topics.letters
    assert letters is not None
    await letters.send_dead(message)
    closing = asyncio.create_task(consumer.close())
    for _ in range(3):
        await asyncio.sleep(0)
    closing.cancel()
    await settle()
    assert [one.closed for one in producers.opened] == [1, 1]


async def test_an_invalid_reconsume_count_is_treated_as_zero(producers: Producers) -> None:
    broker = ModelBroker()
    broker.store(batch_of([OutgoingMessage(b"0", 0, properties={"RECONSUMETIMES": "often"})]))
    consumer = await retrying(broker)
    await consumer.reconsume_later(await consumer.receive(), 10)
    ((_, properties),) = producers.opened[0].sent
    assert properties["RECONSUMETIMES"] == "1"
