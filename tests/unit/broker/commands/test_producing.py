"""PRODUCER, SEND and CLOSE_PRODUCER, as seen by a client."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import proto.PulsarApi_pb2 as pb
from broker.cnx import BrokerParts
from broker.messages.errors import fenced
from broker.messages.topic import PersistentTopic
from broker.policies.effective import DEFAULTS, NO_RATE, EffectivePolicies, Rate
from proto.frames import encode_command, encode_payload_command
from proto.names import NamespaceName, TopicName
from tests.support.clocks.settle import settle
from tests.support.messages.deletion import deletion_of
from tests.support.messages.producing import SlowLedger
from tests.support.processes.commands import Wire
from tests.unit.broker.commands.test_table import CONNECTED, parts, wire

Type = pb.BaseCommand
NAME = TopicName.parse("t")
LEDGER = 1


def producer_command(producer_id: int = 1, **fields: Any) -> pb.BaseCommand:
    request = pb.CommandProducer(
        **{"topic": "t", "producer_id": producer_id, "request_id": producer_id + 100, **fields}
    )
    return pb.BaseCommand(type=Type.PRODUCER, producer=request)


def subscribe(request_id: int, consumer_id: int = 1, **fields: Any) -> pb.BaseCommand:
    asked = {"topic": "t", "subscription": "s", "subType": pb.CommandSubscribe.Exclusive, **fields}
    body = pb.CommandSubscribe(request_id=request_id, consumer_id=consumer_id, **asked)
    return pb.BaseCommand(type=Type.SUBSCRIBE, subscribe=body)


def send_frame(
    sequence_id: int = 0, payload: bytes = b"m", producer_id: int = 1, **fields: Any
) -> bytes:
    metadata = fields.pop("metadata", None)
    if metadata is None:
        metadata = pb.MessageMetadata(
            producer_name="p", sequence_id=sequence_id, publish_time=1
        ).SerializeToString()
    sent = pb.CommandSend(producer_id=producer_id, sequence_id=sequence_id, **fields)
    return encode_payload_command(pb.BaseCommand(type=Type.SEND, send=sent), metadata, payload)


class Client(Wire):
    """A connected peer that waits for answers."""

    async def ask(self, *said: pb.BaseCommand | bytes) -> list[pb.BaseCommand]:
        """Send commands or frames in one chunk; return the answers."""
        frames = [one if isinstance(one, bytes) else encode_command(one) for one in said]
        self.transport.peer_sends(b"".join(frames))
        await settle()
        return self.answers()


async def client(of: BrokerParts | None = None, **keys: str) -> Client:
    shared = of or parts(**keys)
    await shared.loaded_topics._parts.topics._store.create_namespace(
        NamespaceName("public", "default")
    )
    found = wire(CONNECTED, shared)
    found.__class__ = Client
    assert isinstance(found, Client)
    request = pb.CommandLookupTopic(topic="t", request_id=1)
    await found.ask(pb.BaseCommand(type=Type.LOOKUP, lookupTopic=request))
    return found


async def producing(policies: EffectivePolicies = DEFAULTS, **keys: str) -> Client:
    found = await client(**keys)
    (answer,) = await found.ask(producer_command())
    assert answer.producer_success.producer_ready
    topic(found).policies = policies
    return found


def slow_ledger(of: Client) -> SlowLedger:
    """Return the ledger of the client's topic, which from now on confirms entries on command."""
    ledger = topic(of).ledger
    ledger.__class__ = SlowLedger
    assert isinstance(ledger, SlowLedger)
    return ledger


def topic(of: Client) -> PersistentTopic:
    loaded = of.cnx.parts.loaded_topics.loaded(NAME)  # type: ignore[attr-defined]
    assert isinstance(loaded, PersistentTopic)
    return loaded


@pytest.fixture
async def found() -> Client:
    return await producing()


# -- PRODUCER -------------------------------------------------------------------------------------


async def test_a_generated_producer_name_is_used_up_even_by_a_refused_producer() -> None:
    found = await client()
    (one,) = await found.ask(producer_command(1))
    await found.ask(producer_command(2, topic="persistent://public//x"))
    (other,) = await found.ask(producer_command(3))
    first, second = (answer.producer_success.producer_name for answer in (one, other))
    prefix, _, number = first.rpartition("-")
    assert prefix.startswith("standalone-")
    assert second == f"{prefix}-{int(number) + 2}"


async def test_an_empty_producer_name_is_accepted_unchanged() -> None:
    found = await client()
    (answer,) = await found.ask(producer_command(producer_name=""))
    assert answer.producer_success.producer_name == ""


async def test_an_open_producer_id_is_answered_with_the_name_of_its_producer() -> None:
    found = await client()
    await found.ask(producer_command(1, producer_name="same"))
    (answer,) = await found.ask(producer_command(1, producer_name="other"))
    assert answer.producer_success.producer_name == "same"
    assert answer.producer_success.request_id == 101


async def test_the_id_of_a_producer_waiting_for_exclusive_access_is_refused() -> None:
    found = await client()
    await found.ask(producer_command(1))
    await found.ask(producer_command(2, producer_access_mode=pb.WaitForExclusive))
    (answer,) = await found.ask(producer_command(2))
    assert answer.error.error == pb.ServiceNotReady


@pytest.mark.parametrize(
    ("fields", "code", "text"),
    [
        (
            {"topic": "persistent://public//x"},
            pb.InvalidTopicName,
            "Invalid topic name: Invalid topic name public//x",
        ),
        (
            {"topic": "x-partition-1"},
            pb.NotAllowedError,
            "Partition metadata not found for the partitioned topic: "
            "persistent://public/default/x-partition-1",
        ),
    ],
)
async def test_a_producer_for_an_invalid_topic_or_a_missing_partition_is_refused(
    fields, code, text
) -> None:
    found = await client()
    (answer,) = await found.ask(producer_command(**fields))
    assert (answer.error.error, answer.error.message) == (code, text)
    assert found.cnx.producers == {}  # type: ignore[attr-defined]


async def test_an_unencrypted_producer_is_refused_where_encryption_is_required() -> None:
    found = await producing(replace(DEFAULTS, encryption_required=True))
    (answer,) = await found.ask(producer_command(2))
    assert (answer.error.error, answer.error.message) == (
        pb.MetadataError,
        "Encryption is required in persistent://public/default/t",
    )
    (answer,) = await found.ask(producer_command(3, encrypted=True))
    assert answer.type == Type.PRODUCER_SUCCESS


async def test_a_terminated_topic_refuses_producers(found: Client) -> None:
    topic(found).terminate()
    found.answers()
    (answer,) = await found.ask(producer_command(2))
    assert answer.error.error == pb.TopicTerminatedError


async def test_terminating_a_topic_closes_producers_before_consumers_reach_its_end() -> None:
    found = await producing()
    await found.ask(subscribe(2, subType=pb.CommandSubscribe.Shared))
    topic(found).terminate()
    told = [one.type for one in found.answers()]
    assert told == [Type.CLOSE_PRODUCER, Type.REACHED_END_OF_TOPIC]


@pytest.mark.parametrize(
    ("domain", "told"),
    [
        ("persistent", [Type.CLOSE_CONSUMER, Type.CLOSE_PRODUCER]),
        ("non-persistent", [Type.CLOSE_PRODUCER, Type.CLOSE_CONSUMER]),
    ],
)
async def test_a_deleted_topic_closes_producers_and_consumers_in_the_order_of_its_domain(
    domain, told
) -> None:
    name = f"{domain}://public/default/d"
    found = await client()
    await found.ask(producer_command(topic=name))
    await found.ask(subscribe(2, topic=name, subType=pb.CommandSubscribe.Shared))
    cnx: Any = found.cnx
    await deletion_of(cnx.parts.loaded_topics).delete(TopicName.parse(name), force=True)
    assert [one.type for one in found.answers()] == told


async def test_the_initial_subscription_of_a_producer_is_created_before_any_message() -> None:
    found = await client()
    await found.ask(producer_command(initial_subscription_name="s"))
    assert [one.name for one in topic(found).subscriptions] == ["s"]
    (answer,) = await found.ask(producer_command(2, initial_subscription_name="s"))
    assert answer.type == Type.PRODUCER_SUCCESS


async def test_the_initial_subscription_of_a_producer_begins_at_the_first_message() -> None:
    found = await producing()
    await found.ask(send_frame())
    await found.ask(producer_command(2, initial_subscription_name="s"))
    (subscription,) = topic(found).subscriptions
    assert subscription.cursor.backlog == 1


async def test_an_initial_subscription_that_may_not_be_created_is_refused_in_plain_words() -> None:
    found = await producing(replace(DEFAULTS, auto_subscription_creation=False))
    (answer,) = await found.ask(producer_command(2, initial_subscription_name="s"))
    assert answer.error.error == pb.NotAllowedError
    assert answer.error.message.startswith("Could not create the initial subscription")


@pytest.mark.parametrize("mode", pb.ProducerAccessMode.values())
async def test_the_maximum_of_producers_is_checked_first_for_each_access_mode(mode) -> None:
    found = await producing(replace(DEFAULTS, max_producers=1, encryption_required=True))
    (answer,) = await found.ask(producer_command(2, producer_access_mode=mode))
    assert answer.error.error == pb.ProducerBusy
    text = "Topic 'persistent://public/default/t' reached max producers limit"
    assert answer.error.message == text


async def test_the_topic_name_is_checked_even_for_a_producer_id_in_use(found: Client) -> None:
    (answer,) = await found.ask(producer_command(1, topic="persistent://a//b"))
    assert answer.error.error == pb.InvalidTopicName


async def test_a_repeated_key_of_a_producers_metadata_closes_the_connection(found: Client) -> None:
    twice = [{"key": "k", "value": "a"}, {"key": "k", "value": "b"}]
    await found.ask(producer_command(2, metadata=twice))
    assert found.closed


async def test_without_a_time_limit_each_client_counts_as_alive_without_a_ping() -> None:
    shared = parts(connectionLivenessCheckTimeoutMillis="0")
    old, new = await client(shared), await client(shared)
    await old.ask(producer_command(producer_name="same"))
    (answer,) = await new.ask(producer_command(producer_name="same"))
    assert answer.error.error == pb.ProducerBusy
    assert (old.answers(), old.closed) == ([], False)


async def test_a_producer_name_in_use_is_released_only_by_a_dead_connection() -> None:
    shared = parts()
    old, new = await client(shared), await client(shared)
    await old.ask(producer_command(producer_name="same"))
    old_cnx: Any = old.cnx
    # The old producer's connection is alive.
    asked = await new.ask(producer_command(producer_name="same"))
    assert asked == []
    (ping,) = old.answers()
    assert ping.type == Type.PING
    (_,) = [await old.ask(pb.BaseCommand(type=Type.PONG, pong=pb.CommandPong()))]
    (answer,) = new.answers()
    assert answer.error.error == pb.ProducerBusy

    # The old producer's connection is dead.
    async def dead() -> bool:
        return False

    old_cnx.answers_ping = dead
    (answer,) = await new.ask(producer_command(producer_name="same"))
    assert answer.type == Type.PRODUCER_SUCCESS
    assert old_cnx.producers == {}


async def test_a_lost_connection_removes_its_producers_from_their_topics(found: Client) -> None:
    loaded = topic(found)
    assert len(loaded.producers) == 1
    found.transport.breaks()
    assert len(loaded.producers) == 0


# -- CLOSE_PRODUCER -------------------------------------------------------------------------------


def close_command(producer_id: int) -> pb.BaseCommand:
    request = pb.CommandCloseProducer(producer_id=producer_id, request_id=9)
    return pb.BaseCommand(type=Type.CLOSE_PRODUCER, close_producer=request)


async def test_close_producer_succeeds_for_known_and_unknown_producers(found: Client) -> None:
    for producer_id in (1, 77):
        (answer,) = await found.ask(close_command(producer_id))
        assert answer.success.request_id == 9
    assert len(topic(found).producers) == 0


async def test_a_producer_closed_before_its_creation_completes_is_not_created() -> None:
    found = await client()
    answers = await found.ask(producer_command(1), close_command(1))
    assert [answer.type for answer in answers] == [Type.SUCCESS]
    assert len(topic(found).producers) == 0


# -- SEND -----------------------------------------------------------------------------------------


async def test_a_message_is_stored_byte_for_byte_as_received(found: Client) -> None:
    frames = [send_frame(number, b"x" * 2000) for number in range(3)]
    answers = await found.ask(*frames)
    assert [one.send_receipt.message_id.entryId for one in answers] == [0, 1, 2]
    ledger = topic(found).ledger
    (second,) = ledger.read(ledger.preceding(ledger.last_confirmed), 1, 10_000)
    assert frames[1].endswith(second.data)
    assert second.data[:2] == b"\x0e\x01"


async def test_a_message_without_a_checksum_is_accepted(found: Client) -> None:
    recorded = "000000230000000a080632060801100118010000000c0a017010011880d095ffbc3168656c6c6f"
    (answer,) = await found.ask(bytes.fromhex(recorded))
    assert answer.send_receipt.sequence_id == 1


async def test_a_message_with_a_wrong_checksum_is_refused_and_its_producer_stays_open(
    found: Client,
) -> None:
    frame = send_frame(2)
    (answer,) = await found.ask(frame[:-1] + b"?")
    assert answer.send_error == pb.CommandSendError(
        producer_id=1,
        sequence_id=2,
        error=pb.ChecksumError,
        message="Checksum failed on the broker",
    )
    (answer,) = await found.ask(frame)
    assert answer.type == Type.SEND_RECEIPT


async def test_each_error_of_a_batch_has_its_highest_sequence_id(found: Client) -> None:
    frame = send_frame(2, highest_sequence_id=4)
    (answer,) = await found.ask(frame[:-1] + b"?")
    assert answer.send_error.sequence_id == 4
    transaction = {"txnid_most_bits": 0, "txnid_least_bits": 1}
    (answer,) = await found.ask(send_frame(5, highest_sequence_id=6, **transaction))
    assert answer.send_error.sequence_id == 6


async def test_a_message_with_a_message_id_is_refused(found: Client) -> None:
    (answer,) = await found.ask(send_frame(1, message_id={"ledgerId": 1, "entryId": 2}))
    assert answer.send_error.error == pb.NotAllowedError
    assert answer.send_error.message == (
        "Only shadow topic supports sending messages with messageId"
    )


async def test_a_closed_producer_is_answered_after_its_last_receipt_and_refuses_later_messages(
    found: Client,
) -> None:
    ledger = slow_ledger(found)
    (refused,) = await found.ask(send_frame(0), close_command(1), send_frame(1))
    assert refused.send_error == pb.CommandSendError(
        producer_id=1, sequence_id=1, error=pb.PersistenceError, message="Producer is closed"
    )
    ledger.confirm(ledger.last_confirmed)
    await settle()
    assert [one.type for one in found.answers()] == [Type.SEND_RECEIPT, Type.SUCCESS]
    assert found.cnx.producers == {}  # type: ignore[attr-defined]


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
async def test_a_message_of_an_unknown_producer_closes_the_connection(profile: str) -> None:
    found = await client(floodgateProfile=profile)
    await found.ask(send_frame(producer_id=77))
    assert found.closed


async def test_a_message_sent_before_producer_is_answered_closes_the_connection() -> None:
    found = await client()
    await found.ask(producer_command(), send_frame())
    assert found.closed


async def test_a_message_of_a_producer_waiting_for_access_closes_the_connection(
    found: Client,
) -> None:
    await found.ask(producer_command(2, producer_access_mode=pb.WaitForExclusive))
    await found.ask(send_frame(producer_id=2))
    assert found.closed


async def test_a_message_of_a_producer_that_the_broker_closed_is_ignored(found: Client) -> None:
    topic(found).producers.disconnect(fenced())
    assert [one.type for one in found.answers()] == [Type.CLOSE_PRODUCER]
    answers = await found.ask(send_frame())
    assert answers == []
    assert not found.closed


@pytest.mark.parametrize(
    "frame",
    [
        encode_command(pb.BaseCommand(type=Type.SEND)),
        b"\x00\x00\x00\x06\x00\x00\x00\x02\x08\x06",
        b"\x00\x00\x00\x08\x00\x00\x00\x04\x08\x06\x32\x7f",
        b"\x00\x00\x00\x0a\x00\x00\x00\x06\x08\x06\x32\x02\x10\x00",
    ],
)
async def test_a_malformed_send_closes_the_connection(found: Client, frame: bytes) -> None:
    await found.ask(frame)
    assert found.closed


@pytest.mark.parametrize(("profile", "closes"), [("pulsar", False), ("floodgate", True)])
@pytest.mark.parametrize("metadata", [b"\xff\xff\xff", b""])
async def test_unreadable_message_metadata_closes_the_connection_except_in_profile_pulsar(
    profile: str, closes: bool, metadata: bytes
) -> None:
    found = await producing(floodgateProfile=profile)
    await found.ask(send_frame(metadata=metadata))
    assert found.closed is closes


async def test_a_producer_may_reopen_after_its_topic_was_unloaded(found: Client) -> None:
    await found.cnx.parts.loaded_topics.unload(NAME)  # type: ignore[attr-defined]
    assert [one.type for one in found.answers()] == [Type.CLOSE_PRODUCER]
    assert await found.ask(send_frame()) == []
    (answer,) = await found.ask(producer_command(1))
    assert answer.type == Type.PRODUCER_SUCCESS
    (answer,) = await found.ask(send_frame())
    assert answer.type == Type.SEND_RECEIPT


# -- limits ---------------------------------------------------------------------------------------


async def test_an_exhausted_publish_rate_pauses_between_the_frames_of_a_chunk(
    found: Client,
) -> None:
    topic(found).rate.change(Rate(messages=2))
    answers = await found.ask(*(send_frame(number) for number in range(3)))
    assert [one.send_receipt.sequence_id for one in answers] == [0, 1]
    assert not found.cnx.gate.open
    topic(found).rate.change(NO_RATE)
    await settle()
    assert [one.send_receipt.sequence_id for one in found.answers()] == [2]


async def test_too_many_pending_publishes_pause_a_connection_until_half_are_stored() -> None:
    found = await producing(maxPendingPublishRequestsPerConnection="4")
    ledger = slow_ledger(found)
    assert await found.ask(*(send_frame(number) for number in range(10))) == []
    assert ledger.last_confirmed.entry_id == 3
    assert not found.cnx.gate.open
    received: list[int] = []
    while len(received) < 10:
        ledger.confirm(ledger.last_confirmed)
        await settle()
        received += [one.send_receipt.sequence_id for one in found.answers()]
    assert received == list(range(10))
    assert found.cnx.gate.open


async def test_a_connection_lost_while_paused_releases_its_publish_buffer() -> None:
    found = await producing(maxPendingPublishRequestsPerConnection="1")
    ledger = slow_ledger(found)
    await found.ask(send_frame())
    buffer = found.cnx.parts.publish_limits.buffer  # type: ignore[attr-defined]
    assert buffer.size_bytes > 0
    found.transport.breaks()
    ledger.confirm(ledger.last_confirmed)
    await settle()
    assert buffer.size_bytes == 0
    assert found.answers() == []
