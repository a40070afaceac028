"""A topic's producers: names, access modes and waiting order, as recorded."""

import asyncio
from dataclasses import replace

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.errors import MessageStoreError, fenced
from broker.messages.topic import PersistentTopic
from broker.policies.effective import DEFAULTS
from proto.commands import NO_REQUEST
from server.connection.request_errors import RequestError
from tests.support.clocks.settle import settle
from tests.support.messages.producing import (
    ProducingConnection,
    TopicOnHand,
    add,
    limits,
)

Type = pb.BaseCommand
PULSAR = {"floodgateProfile": "pulsar"}
EXCEPTION = "org.apache.pulsar.broker.service.BrokerServiceException$"


async def on_hand(
    keys: dict[str, str] | None = None,
) -> tuple[PersistentTopic, TopicOnHand, ProducingConnection]:
    """Return a topic, what it is made of, and a connection."""
    hand = TopicOnHand(keys=keys or {})
    return await hand.topic(), hand, hand.connection()


def refusal(topic: PersistentTopic, cnx: ProducingConnection, **fields: object) -> str:
    with pytest.raises(RequestError) as raised:
        add(topic, cnx.producer(99, **fields))
    return str(raised.value).replace(EXCEPTION, "")


async def test_a_producer_name_in_use_is_refused() -> None:
    topic, hand, cnx = await on_hand()
    add(topic, cnx.producer(1, producer_name="same"))
    text = refusal(topic, hand.connection(), producer_name="same")
    assert text == (
        "ProducerBusy: NamingException: Producer with name 'same' is already connected to topic "
        "'persistent://public/default/t'"
    )


async def test_a_shared_producer_is_ready_without_an_epoch_before_an_exclusive_producer() -> None:
    topic, _, cnx = await on_hand()
    add(topic, cnx.producer(1))
    (answer,) = cnx.take()
    assert answer.producer_success == pb.CommandProducerSuccess(
        request_id=101,
        producer_name="p1",
        last_sequence_id=-1,
        schema_version=b"",
        producer_ready=True,
    )


async def test_a_shared_producer_after_an_exclusive_producer_gets_its_epoch() -> None:
    topic, _, cnx = await on_hand()
    exclusive = cnx.producer(1, producer_access_mode=pb.Exclusive)
    add(topic, exclusive)
    exclusive.close(1)
    cnx.take()
    add(topic, cnx.producer(2))
    (answer,) = cnx.take()
    assert answer.producer_success.HasField("topic_epoch")
    assert answer.producer_success.topic_epoch == 0


@pytest.mark.parametrize(("mode", "why"), [(pb.Shared, "Busy"), (pb.Exclusive, "Fenced")])
async def test_a_producer_beside_an_exclusive_producer_is_refused(mode: int, why: str) -> None:
    topic, hand, _ = await on_hand()
    add(topic, hand.connection().producer(1, producer_access_mode=pb.Exclusive))
    found = refusal(topic, hand.connection(), producer_access_mode=mode)
    text = "Topic has an existing exclusive producer: p1"
    assert found == f"Producer{why}: Producer{why}Exception: {text}"


async def test_an_exclusive_producer_beside_shared_producers_is_refused() -> None:
    topic, hand, _ = await on_hand()
    add(topic, hand.connection().producer(1))
    found = refusal(topic, hand.connection(), producer_access_mode=pb.Exclusive)
    assert found.endswith("Topic has existing shared producers")


async def test_fencing_removes_active_producers_without_a_command() -> None:
    topic, hand, cnx = await on_hand()
    shared = [cnx.producer(number) for number in (1, 2)]
    for one in shared:
        add(topic, one)
    cnx.take()
    other = hand.connection()
    add(topic, other.producer(3, producer_access_mode=pb.ExclusiveWithFencing))
    assert cnx.take() == []
    assert cnx.producers == {}
    assert 1 not in cnx.closed_by_broker
    await settle()
    (answer,) = other.take()
    assert answer.producer_success.topic_epoch == 0


async def test_fencing_refuses_waiting_producers() -> None:
    topic, hand, _ = await on_hand()
    add(topic, hand.connection().producer(1))
    cnx = hand.connection()
    add(topic, cnx.producer(2, producer_access_mode=pb.WaitForExclusive))
    (told,) = cnx.take()
    assert not told.producer_success.producer_ready
    assert not told.producer_success.HasField("topic_epoch")
    add(topic, hand.connection().producer(3, producer_access_mode=pb.ExclusiveWithFencing))
    (answer,) = cnx.take()
    assert (answer.error.request_id, answer.error.error) == (102, pb.ProducerFenced)
    assert answer.error.message == f"{EXCEPTION}ProducerFencedException: Fenced out"


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
async def test_waiting_producers_become_ready_in_order(profile: str) -> None:
    topic, hand, _ = await on_hand({"floodgateProfile": profile})
    first = hand.connection()
    add(topic, first.producer(1, producer_access_mode=pb.Exclusive))
    waiting = [hand.connection() for _ in range(2)]
    for number, cnx in enumerate(waiting, 2):
        add(topic, cnx.producer(number, producer_access_mode=pb.WaitForExclusive))
        cnx.take()
    assert topic.producers.waiting == 2
    first.producers[1].end()
    await settle()
    (answer,) = waiting[0].take()
    assert (answer.producer_success.request_id, answer.producer_success.topic_epoch) == (102, 1)
    assert answer.producer_success.producer_ready
    assert waiting[1].take() == []
    waiting[0].producers[2].close(7)
    await settle()
    (answer,) = waiting[1].take()
    assert answer.producer_success.topic_epoch == 2
    assert topic.ledger.properties["topic_epoch"] == "2"


async def test_a_waiting_producer_becomes_ready_after_all_shared_producers_close() -> None:
    topic, hand, cnx = await on_hand()
    waits = hand.connection()
    for number in (1, 2):
        add(topic, cnx.producer(number))
    add(topic, waits.producer(3, producer_access_mode=pb.WaitForExclusive))
    waits.take()
    cnx.producers[1].close(1)
    assert waits.take() == []
    assert refusal(topic, cnx).endswith("Topic has an existing exclusive producer: null")
    cnx.producers[2].close(2)
    await settle()
    (answer,) = waits.take()
    assert answer.producer_success.topic_epoch == 0


async def test_in_profile_pulsar_a_closed_waiting_producer_keeps_its_turn() -> None:
    topic, _, cnx = await on_hand(PULSAR)
    add(topic, cnx.producer(1, producer_access_mode=pb.Exclusive))
    for number in (2, 3):
        add(topic, cnx.producer(number, producer_access_mode=pb.WaitForExclusive))
    cnx.producers[2].close(5)
    await settle()
    cnx.take()
    cnx.producers[1].close(6)
    await settle()
    closed, turn = cnx.take()
    assert closed.type == Type.SUCCESS
    assert (turn.producer_success.request_id, turn.producer_success.topic_epoch) == (103, 2)


async def test_a_lost_waiting_producer_leaves_the_queue() -> None:
    topic, _, cnx = await on_hand()
    add(topic, cnx.producer(1))
    add(topic, cnx.producer(2, producer_access_mode=pb.WaitForExclusive))
    cnx.producers[2].end()
    add(topic, cnx.producer(3))
    assert len(topic.producers) == 2


@pytest.mark.parametrize("mode", [pb.Exclusive, pb.ExclusiveWithFencing, pb.WaitForExclusive])
async def test_a_producer_with_an_old_epoch_is_fenced(mode: int) -> None:
    topic, _, cnx = await on_hand()
    for number in (1, 2):
        add(topic, cnx.producer(number, producer_access_mode=pb.Exclusive))
        cnx.producers[number].close(number)
    found = refusal(topic, cnx, producer_access_mode=mode, topic_epoch=0)
    ends = "Topic epoch has already moved. Current epoch: 1, Producer epoch: 0"
    assert found.endswith(ends)


async def test_a_later_epoch_becomes_the_epoch_of_the_topic() -> None:
    topic, hand, _ = await on_hand()
    add(topic, hand.connection().producer(1, producer_access_mode=pb.Exclusive, topic_epoch=99))
    assert topic.producers.epoch == 99


async def test_the_epoch_survives_an_unload() -> None:
    topic, hand, _ = await on_hand()
    add(topic, hand.connection().producer(1, producer_access_mode=pb.Exclusive))
    hand.store.close_ledger(topic.full_name)
    again = await hand.topic()
    add(again, hand.connection().producer(1, producer_access_mode=pb.Exclusive))
    assert again.producers.epoch == 1


def holding_back(topic: PersistentTopic, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Return an event at which the topic's writes are stored."""
    stored = asyncio.Event()
    monkeypatch.setattr(topic.ledger, "flushed", stored.wait)
    return stored


async def test_an_exclusive_producer_opens_only_once_its_epoch_is_stored(monkeypatch) -> None:
    topic, _, cnx = await on_hand()
    stored = holding_back(topic, monkeypatch)
    add(topic, cnx.producer(1, producer_access_mode=pb.Exclusive))
    await settle()
    assert cnx.take() == []
    stored.set()
    await settle()
    (answer,) = cnx.take()
    assert answer.producer_success.topic_epoch == 0


async def test_a_shared_producer_opens_without_waiting_for_the_store(monkeypatch) -> None:
    topic, _, cnx = await on_hand()
    holding_back(topic, monkeypatch)
    add(topic, cnx.producer(1))
    (answer,) = cnx.take()
    assert answer.producer_success.producer_ready


async def test_a_producer_that_opens_while_the_publish_buffer_is_full_is_not_read() -> None:
    topic, hand, _ = await on_hand()
    of = limits(hand.clock, buffer_bytes=100)
    full, cnx = hand.connection(of), hand.connection(of)
    full.publishes.begun(101)
    add(topic, cnx.producer(1))
    assert not cnx.gate.open
    full.publishes.ended(101)
    assert cnx.gate.open


async def test_a_producer_fenced_before_its_epoch_is_stored_is_refused(monkeypatch) -> None:
    topic, hand, _ = await on_hand()
    stored, first, second = holding_back(topic, monkeypatch), hand.connection(), hand.connection()
    for cnx in (first, second):
        add(topic, cnx.producer(1, producer_access_mode=pb.ExclusiveWithFencing))
    await settle()
    (refused,) = first.take()
    assert (refused.error.request_id, refused.error.error) == (101, pb.ProducerFenced)
    stored.set()
    await settle()
    (answer,) = second.take()
    assert (answer.producer_success.topic_epoch, first.take()) == (1, [])


@pytest.mark.parametrize("why", ["failed", "unloaded"])
async def test_a_producer_whose_epoch_is_not_stored_is_refused(why: str, monkeypatch) -> None:
    async def no_room() -> None:
        raise MessageStoreError("there is no room")

    topic, _, cnx = await on_hand()
    monkeypatch.setattr(topic.ledger, "flushed", no_room)
    add(topic, cnx.producer(1, producer_access_mode=pb.Exclusive))
    if why == "unloaded":
        topic.producers.disconnect(fenced())
    await settle()
    (refused,) = cnx.take()
    expected = pb.PersistenceError if why == "failed" else pb.ServiceNotReady
    assert refused.error.error == expected
    assert len(topic.producers) == len(cnx.producers) == 0


async def test_a_maximum_of_zero_or_less_allows_any_number_of_producers() -> None:
    for unlimited in (0, -1):
        topic = await TopicOnHand(policies=replace(DEFAULTS, max_producers=unlimited)).topic()
        add(topic, TopicOnHand().connection().producer(1))


async def test_a_new_policy_of_encryption_closes_the_producers_that_do_not_encrypt() -> None:
    topic, hand, cnx = await on_hand()
    add(topic, cnx.producer(1))
    add(topic, cnx.producer(2, encrypted=True))
    cnx.take()
    hand.policies = replace(DEFAULTS, encryption_required=True)
    topic.policies_changed()
    (closed,) = cnx.take()
    assert closed.close_producer.producer_id == 1
    assert [one.producer_id for one in topic.producers] == [2]


async def test_a_disconnect_closes_active_and_refuses_waiting_producers() -> None:
    topic, hand, cnx = await on_hand()
    waits = hand.connection()
    add(topic, cnx.producer(1, producer_access_mode=pb.Exclusive))
    add(topic, waits.producer(2, producer_access_mode=pb.WaitForExclusive))
    await settle()
    cnx.take(), waits.take()
    topic.producers.disconnect(fenced())
    (closed,), (refused,) = cnx.take(), waits.take()
    assert closed.close_producer == pb.CommandCloseProducer(producer_id=1, request_id=NO_REQUEST)
    assert (refused.error.request_id, refused.error.error) == (102, pb.ServiceNotReady)
    assert refused.error.message == f"{EXCEPTION}TopicFencedException: " + (
        "Topic is temporarily unavailable"
    )
    assert 1 in cnx.closed_by_broker
    assert len(topic.producers) == topic.producers.waiting == 0
