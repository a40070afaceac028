"""Handlers of producers' commands: PRODUCER, SEND and CLOSE_PRODUCER."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

import proto.PulsarApi_pb2 as pb
from broker.authorization.questions import Asked
from broker.messages.errors import (
    MessageStoreError,
    encryption_required,
    fenced,
    no_initial_subscription,
    not_stored,
    terminated,
)
from broker.messages.metadata import digest_of
from broker.messages.position import signed
from broker.messages.producer import Producer, ProducerState
from broker.messages.publishing.checks import refusal_of, refusal_of_claims, refusal_of_metadata
from broker.messages.topic import PersistentTopic
from broker.stores.changes import StoreError
from proto.commands import error_command, success_command, with_body
from proto.errors import RemoteProtocolError
from proto.excerpts import excerpt
from proto.frames import split_body, verify_checksum
from proto.names import InvalidNameError, TopicName, is_same_topic
from server.connection.request_errors import RequestError, UnansweredRequestError

if TYPE_CHECKING:
    from broker.cnx import ServerCnx
    from broker.messages.topic import Topic
    from proto.frames import Frame

_CHECKSUM_FAILED = "Checksum failed on the broker"


# -- PRODUCER -------------------------------------------------------------------------------------


def producer(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Start a task that opens a producer; if its id is in use, answer with the existing one's name.

    Profile floodgate refuses an id that is in use for another topic.
    """
    request = with_body(command, "producer").producer
    name = request.producer_name if request.HasField("producer_name") else None
    if name is None:
        name = cnx.parts.producer_names.generate()
    there = cnx.producers.get(request.producer_id)
    if there is not None and there.state in (ProducerState.OPEN, ProducerState.CLOSING):
        if cnx.parts.refuses_ids_in_use and not _is_of(there, request.topic):
            cnx.send(error_command(request.request_id, pb.NotAllowedError, _in_use(there)))
        else:
            there.answer_again(request.request_id)
    elif there is not None:
        refusal = "Producer is already present on the connection"
        cnx.send(error_command(request.request_id, pb.ServiceNotReady, refusal))
    elif len(cnx.requests.tasks) >= cnx.parts.publish_rules.max_producers_being_made:
        refusal = "Too many producers are being made for this connection"
        cnx.send(error_command(request.request_id, pb.ServiceNotReady, refusal))
    else:
        made = Producer(cnx, request, name, cnx.parts.flow.clock.wall_ms())
        cnx.producers[request.producer_id] = made
        cnx.requests.tasks.start(request.request_id, partial(_open, cnx, request, made))


def _is_of(there: Producer, topic: str) -> bool:
    return there.topic is not None and is_same_topic(topic, there.topic.name)


def _in_use(there: Producer) -> str:
    topic = "" if there.topic is None else excerpt(there.topic.full_name)
    return f"producer id {there.producer_id} is used for {topic}: close that, or use another id"


async def _open(cnx: ServerCnx, request: pb.CommandProducer, made: Producer) -> None:
    try:
        await _allowed(cnx, request, made)
    except RequestError as error:
        _fail(made, error)
    except StoreError as error:
        _fail(made, RequestError(pb.MetadataError, str(error)))
    except MessageStoreError as error:
        _fail(made, not_stored(error))
    except UnansweredRequestError as error:
        cnx.parts.permits.unanswered.left(request.topic, cnx.peer, str(error))
    except BaseException:
        made.dropped()
        raise


def _fail(made: Producer, error: RequestError) -> None:
    if made.state is ProducerState.OPENING:
        made.fail(error)


async def _allowed(cnx: ServerCnx, request: pb.CommandProducer, made: Producer) -> None:
    """Open a producer if the client is authorized, and create its initial subscription.

    Raises:
        RequestError: The client is not authorized, or the producer cannot be opened.
    """
    try:
        name = TopicName.parse(request.topic)
    except InvalidNameError as error:
        raise RequestError(pb.InvalidTopicName, f"Invalid topic name: {error}") from None
    authorization, first = cnx.parts.authorization, request.initial_subscription_name
    if authorization is None:
        await _opened(cnx, request, made, name)
        return
    async with authorization.opening(cnx.session, name, Asked.PRODUCE):
        if first:
            await authorization.check(cnx.session, name, Asked.BEGIN, first)
        await _opened(cnx, request, made, name)


async def _opened(
    cnx: ServerCnx, request: pb.CommandProducer, made: Producer, name: TopicName
) -> None:
    topic = await cnx.parts.loaded_topics.get(name)
    if isinstance(topic, PersistentTopic):
        topic.check_room()
    if topic.policies.encryption_required and not made.encrypted:
        raise encryption_required(topic.full_name)
    schema = request.schema if request.HasField("schema") else None
    made.schema_version = await cnx.parts.schemas.for_producer(name, schema, topic.policies)
    if isinstance(topic, PersistentTopic):
        made.last_sequence_id = topic.deduplication.last_sequence_id(made.name)
        await _begin(topic, request.initial_subscription_name)
    await _displace_dead(cnx, topic, made)
    _join(cnx, topic, made)


async def _begin(topic: PersistentTopic, subscription: str) -> None:
    """Create the initial subscription that a producer requests, unless it exists."""
    if not subscription or any(one.name == subscription for one in topic.subscriptions):
        return
    if not topic.policies.auto_subscription_creation:
        raise no_initial_subscription()
    topic.subscriptions.create(subscription)
    await topic.ledger.flushed()


async def _displace_dead(cnx: ServerCnx, topic: Topic, made: Producer) -> None:
    """Ping the client whose producer has the requested name; no answer ends its producer."""
    there = topic.producers.named(made.name)
    if there is None or there.cnx is cnx or made.access_mode != pb.Shared:
        return
    topic.producers.check_sharing()  # Refused without a ping (recorded).
    if not await there.cnx.answers_ping():
        there.connection_lost()


def _join(cnx: ServerCnx, topic: Topic, made: Producer) -> None:
    if made.state is not ProducerState.OPENING:
        return  # The client has closed the producer.
    if topic.terminated:
        raise terminated()
    if topic.closing:
        raise fenced()
    made.topic = topic
    cnx.closed_by_broker.discard(made.producer_id)
    topic.producers.add(made, topic.policies.max_producers)


def close_producer(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Close a producer; an unknown producer counts as closed."""
    request = with_body(command, "close_producer").close_producer
    found = cnx.producers.get(request.producer_id)
    if found is not None:
        found.close(request.request_id)
        return
    cnx.send(success_command(request.request_id))


# -- SEND -----------------------------------------------------------------------------------------


def send(cnx: ServerCnx, frame: Frame) -> None:
    """Publish the message, or batch of messages, in a SEND.

    Raises:
        RemoteProtocolError: The command is malformed, or its producer is not open; the connection
            closes.
    """
    command, data = split_body(frame.body(), frame.total_size)
    try:
        parsed = pb.BaseCommand.FromString(command)
    except DecodeError:
        raise RemoteProtocolError("a SEND that cannot be read") from None
    if not (parsed.HasField("send") and parsed.IsInitialized()):
        raise RemoteProtocolError("a SEND that lacks its body, or a required field")
    sent = parsed.send
    if not cnx.takes_messages:
        return
    found = cnx.producers.get(sent.producer_id)
    if found is not None and found.state is ProducerState.OPEN:
        _publish(cnx, found, sent, data)
    elif sent.producer_id not in cnx.closed_by_broker:
        raise RemoteProtocolError(f"a SEND of the producer {sent.producer_id}, which is not open")


def _publish(cnx: ServerCnx, sender: Producer, sent: pb.CommandSend, data: bytes) -> None:
    if not verify_checksum(data):
        # For a batch, the error carries the last sequence id (recorded).
        last = max(sent.sequence_id, sent.highest_sequence_id)
        sender.refused(last, pb.ChecksumError, _CHECKSUM_FAILED)
        return
    topic, rules = sender.topic, cnx.parts.publish_rules
    assert topic is not None
    refusal = refusal_of_metadata(data, rules)
    if refusal is not None:
        sender.refused(sent.sequence_id, *refusal)
        return
    metadata = rules.metadata_of(data)
    refusal = refusal_of(sent, data, metadata, topic.policies, rules, cnx.parts.flow.clock)
    if refusal is None and rules.compares_claims:
        refusal = refusal_of_claims(data, metadata, topic.policies, sender.name)
    if refusal is not None:
        sender.refused(sent.sequence_id, *refusal)
        return
    highest = signed(sent.highest_sequence_id)
    if highest < signed(sent.sequence_id) or not sent.HasField("highest_sequence_id"):
        highest = -1
    whole = True
    if sent.is_chunk:
        sender.statistics.chunks += 1
        whole = metadata.chunk_id == metadata.num_chunks_from_msg - 1
    topic.publish(sender, sent.sequence_id, highest, data, digest_of(metadata), whole=whole)
