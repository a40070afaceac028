"""A partitioned topic has a producer per partition, and routes each message."""

import asyncio
from typing import Any

import pytest

import proto.PulsarApi_pb2 as pb
from client.exceptions import (
    AlreadyClosed,
    AuthorizationError,
    InvalidConfiguration,
    InvalidTopicName,
    NotAllowedError,
    ProducerBusy,
    Timeout,
)
from client.messages.enums import HashingScheme, PartitionsRoutingMode
from client.messages.message import Message
from client.producers.options import ProducerOptions
from client.producers.partitioned_producer import options_of_each
from client.producers.producer import Producer, open_producer
from client.producers.routing import Router, key_hash
from client.producers.sending.pending_message import PendingMessage
from client.producers.topic_producer import TopicProducer
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started
from tests.support.peers.scripted_broker import TOPIC, ScriptedBroker, refusal


async def partitioned(broker: ScriptedBroker, **options: Any) -> Producer:
    chosen = ProducerOptions(**{"batching_enabled": False, **options})
    return await open_producer(broker.context(), "t", chosen)


def message(size: int = 0, key: str | None = None) -> PendingMessage:
    result = asyncio.get_running_loop().create_future()
    one = PendingMessage(bytes(size), -1, result=result, waits=True)
    one.partition_key = key
    return one


def indexes(router: Router, count: int, size: int = 0) -> list[int]:
    return [router.partition(message(size), 3) for _ in range(count)]


async def test_every_partition_has_its_own_producer() -> None:
    broker = ScriptedBroker(partition_count=3)
    producer = await partitioned(broker)
    topics = sorted(one.topic for one in broker.producers)
    assert topics == [f"{TOPIC}-partition-{index}" for index in range(3)]
    assert producer.topic() == TOPIC
    assert producer.is_connected()
    assert producer.producer_name() == "given"
    await producer.close()
    assert not producer.is_connected()


async def test_messages_are_routed_round_robin_and_their_ids_name_the_partition() -> None:
    broker = ScriptedBroker(partition_count=3)
    producer = await partitioned(broker)
    results = [producer.send_nowait(b"%d" % number) for number in range(6)]
    broker.answers()
    found = [one.result().partition() for one in results]
    assert sorted(found[:3]) == [0, 1, 2]
    assert found[:3] == found[3:]
    assert producer.last_sequence_id() == 1
    assert producer.statistics().messages_sent_total == 6
    await producer.close()


async def test_a_refused_partition_fails_the_opening_and_detaches_every_producer() -> None:
    broker = ScriptedBroker(partition_count=3, refusals=[None, refusal(pb.ProducerBusy)])
    with pytest.raises(ProducerBusy):
        await partitioned(broker)
    assert not broker.cnx.attached.producers


async def test_a_failed_opening_closes_its_partitions_within_the_operation_timeout() -> None:
    # Given two partitions, of which one is refused late, and a broker that answers no leaving
    broker = ScriptedBroker(
        partition_count=2,
        refusals=[None, refusal(pb.ProducerBusy)],
        holds=asyncio.Event(),
        holds_closes=asyncio.Event(),
    )
    opening = await started(partitioned(broker))
    broker.clock.advance(20)
    broker.holds.set()  # type: ignore[union-attr]
    await settle()
    broker.clock.advance(10)
    await settle()
    assert opening.done()
    with pytest.raises(ProducerBusy):
        await opening
    assert not broker.cnx.attached.producers


async def test_lazy_partitions_are_attached_by_their_first_message() -> None:
    broker = ScriptedBroker(partition_count=5, holds=asyncio.Event())
    producer = await partitioned(
        broker,
        lazy_start_partitioned_producers=True,
        message_routing_mode=PartitionsRoutingMode.UseSinglePartition,
    )
    assert broker.producers == []
    first, second = producer.send_nowait(b"0"), producer.send_nowait(b"1")
    await settle()
    assert broker.contents == []
    assert producer.statistics().pending_messages == 2
    assert broker.holds is not None
    broker.holds.set()
    await settle()
    assert len(broker.producers) == 1
    assert broker.contents == [b"0", b"1"]
    broker.answers()
    assert first.result() < second.result()
    await producer.close()


@pytest.mark.parametrize(
    ("refused", "error"),
    [(refusal(pb.ProducerBusy), ProducerBusy), (KeyError("a schema's own"), Exception)],
    ids=["refused", "any error"],
)
async def test_a_lazy_partition_that_fails_to_open_fails_its_messages_and_is_retried(
    refused, error
) -> None:
    broker = ScriptedBroker(partition_count=1, refusals=[refused])
    producer = await partitioned(broker, lazy_start_partitioned_producers=True)
    failed = producer.send_nowait(b"0")
    await settle()
    assert isinstance(failed.exception(), error)
    producer.send_nowait(b"1")
    await settle()
    assert broker.contents == [b"1"]
    assert broker.memory.current_usage == 1


async def test_flush_waits_for_every_partition_and_raises_a_partitions_error() -> None:
    broker = ScriptedBroker(partition_count=2)
    producer = await partitioned(broker)
    results = [producer.send_nowait(b"%d" % number) for number in range(2)]
    flushing = await started(producer.flush())
    broker.refuses(broker.sent[0].send, pb.NotAllowedError)
    await settle()
    assert not flushing.done()
    broker.answers()
    with pytest.raises(NotAllowedError):
        await flushing
    assert [one.exception() is None for one in results].count(False) == 1
    await producer.close()
    with pytest.raises(AlreadyClosed):
        await producer.flush()


async def test_a_cancelled_send_is_withdrawn_only_from_its_partition(monkeypatch) -> None:
    asked: list[str] = []
    withdraw = TopicProducer.withdraw

    def noting(producer: TopicProducer, message: PendingMessage) -> None:
        asked.append(producer.topic)
        withdraw(producer, message)

    monkeypatch.setattr(TopicProducer, "withdraw", noting)
    broker = ScriptedBroker(partition_count=3)
    producer = await partitioned(broker, message_router=lambda *_: 1, max_pending_messages=1)
    producer.send_nowait(b"0")
    waiting = await started(producer.send(b"1"))
    waiting.cancel()
    await settle()
    assert asked == [f"{TOPIC}-partition-1"]
    assert producer.statistics().waiting_sends == 0


@pytest.mark.parametrize("errors", [[], [refusal(pb.ServiceNotReady)], [RuntimeError("odd")]])
async def test_new_partitions_are_used_even_when_an_update_fails_first(
    errors: list[Exception],
) -> None:
    broker = ScriptedBroker(partition_count=1)
    producer = await partitioned(broker)
    broker.partition_count = 2
    broker.lookup_refusals = [*errors]
    for _ in (0, *errors):
        await settle()
        broker.clock.advance(60.0)
        await settle()
    results = [producer.send_nowait(b"") for _ in range(2)]
    broker.answers()
    assert {one.result().partition() for one in results} == {0, 1}
    assert broker.may_create == [True, False, *(False for _ in errors)]
    await producer.close()


async def test_a_closed_producer_refuses_sends_and_closes_every_partition() -> None:
    broker = ScriptedBroker(partition_count=2)
    producer = await partitioned(broker)
    await producer.close()
    await producer.close()
    with pytest.raises(AlreadyClosed):
        await producer.send(b"")
    closes = [one for one in broker.cnx.commands if one.type == pb.BaseCommand.CLOSE_PRODUCER]
    assert len(closes) == 2


async def test_the_partition_lookup_is_retried_until_answered() -> None:
    later = refusal(pb.ServiceNotReady)
    broker = ScriptedBroker(partition_count=1, lookup_refusals=[later, later])
    opening = await started(partitioned(broker))
    for _ in range(3):
        await settle()
        broker.clock.advance(1.0)
    assert (await opening).is_connected()


@pytest.mark.parametrize("partitions", [0, 1])
async def test_partition_lookup_and_attachment_share_the_operation_timeout(partitions: int) -> None:
    broker = ScriptedBroker(
        partition_count=partitions,
        lookup_refusals=[refusal(pb.ServiceNotReady)] * 8,
        holds=asyncio.Event(),
    )
    opening = await started(partitioned(broker))
    for _ in range(30):
        await settle()
        broker.clock.advance(1.0)
    await settle()
    assert len(broker.producers) == 1
    assert opening.done()
    with pytest.raises(Timeout, match="in 30 s"):
        await opening


async def test_an_unauthorized_partition_lookup_is_not_retried() -> None:
    broker = ScriptedBroker(lookup_refusals=[refusal(pb.AuthorizationError)])
    with pytest.raises(AuthorizationError):
        await partitioned(broker)


async def test_an_invalid_topic_name_is_refused() -> None:
    with pytest.raises(InvalidTopicName):
        await open_producer(ScriptedBroker().context(), "a/b", ProducerOptions())


async def test_a_key_is_routed_by_its_hash_modulo_the_partitions() -> None:
    for scheme in HashingScheme:
        router = Router(ProducerOptions(hashing_scheme=scheme), TOPIC, ManualClock(), 0)
        for key in ("", "a", "anna", "ünï"):
            assert router.partition(message(key=key), 7) == key_hash(scheme, key) % 7


async def test_without_batching_messages_are_routed_round_robin() -> None:
    router = Router(ProducerOptions(batching_enabled=False), TOPIC, ManualClock(), 0)
    assert indexes(router, 4) == [1, 2, 0, 1]


async def test_with_batching_a_partition_is_kept_until_a_batch_would_be_sent() -> None:
    clock = ManualClock()
    by_count = Router(ProducerOptions(batching_max_messages=2), TOPIC, clock, 0)
    assert indexes(by_count, 5) == [0, 0, 1, 1, 2]
    options = ProducerOptions(batching_max_allowed_size_in_bytes=100)
    assert indexes(Router(options, TOPIC, clock, 0), 5, 40) == [0, 0, 1, 1, 2]
    by_time = Router(ProducerOptions(), TOPIC, clock, 0)
    assert indexes(by_time, 2) == [0, 0]
    clock.advance(0.011)
    assert indexes(by_time, 2) == [1, 1]


async def test_single_partition_routing_keeps_its_partition() -> None:
    options = ProducerOptions(message_routing_mode=PartitionsRoutingMode.UseSinglePartition)
    assert indexes(Router(options, TOPIC, ManualClock(), 7), 3) == [1, 1, 1]


async def test_a_custom_router_receives_the_message_and_partition_count() -> None:
    seen = []

    def route(message: Message, partitions: int) -> int:
        seen.append((message.data(), message.partition_key(), message.properties(), partitions))
        return 2

    router = Router(ProducerOptions(message_router=route), TOPIC, ManualClock())
    one = message(2, "k")
    one.properties = {"a": "b"}
    assert router.partition(one, 3) == 2
    assert seen == [(b"\0\0", "k", {"a": "b"}, 3)]
    assert one.sequence_id == -1


async def test_an_invalid_partition_or_a_missing_custom_router_is_refused() -> None:
    router = Router(ProducerOptions(message_router=lambda *_: 3), TOPIC, ManualClock())
    with pytest.raises(InvalidConfiguration, match="partition 3: there are 0 to 2"):
        router.partition(message(), 3)
    with pytest.raises(InvalidConfiguration, match="needs a message_router"):
        Router(
            ProducerOptions(message_routing_mode=PartitionsRoutingMode.CustomPartition),
            TOPIC,
            ManualClock(),
        )


@pytest.mark.parametrize(
    ("pending", "across", "partitions", "each"),
    [
        (1_000, 50_000, 10, 1_000),
        (1_000, 50_000, 100, 500),
        (5, 3, 10, 1),
        (0, 10, 5, 0),
        (9, 0, 2, 9),
    ],
)
def test_partitions_share_the_limit_of_pending_messages(
    pending: int, across: int, partitions: int, each: int
) -> None:
    options = ProducerOptions(
        max_pending_messages=pending, max_pending_messages_across_partitions=across
    )
    assert options_of_each(options, partitions).max_pending_messages == each
