"""Handlers of producers' commands: PRODUCER, SEND and CLOSE_PRODUCER."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

import proto.PulsarApi_pb2 as pb
from broker.authorization.questions import Asked
from broker.messages.errors import (
    MessageStoreError,
    fenced,
    not_stored,
    terminated,
)
from broker.messages.metadata import digest_of
from broker.messages.position import signed
from broker.messages.producer import Producer, ProducerState
from broker.messages.publishing.checks import (
    SendRefusal,
    refusal_of,
    refusal_of_claims,
    refusal_of_frame,
    refusal_of_metadata,
)
from broker.messages.topic import PersistentTopic
from broker.stores.changes import StoreError
from broker.topics.lookup import topic_named
from proto.commands import check_keys, error_command, success_command, with_body
from proto.errors import RemoteProtocolError
from proto.excerpts import excerpt
from proto.frames import split_body
from server.connection.request_errors import RequestError, UnansweredRequestError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from broker.cnx import ServerCnx
    from broker.messages.topic import Topic
    from proto.frames import Frame
    from proto.names import TopicName

_SENDS = (ProducerState.OPEN, ProducerState.CLOSING)


# -- PRODUCER -------------------------------------------------------------------------------------


def producer(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Start a task that opens a producer, unless its id is in use.

    Raises:
        RemoteProtocolError: The metadata or the schema's properties repeat a key; the connection
            closes (recorded).
    """
    request = with_body(command, "producer").producer
    name = request.producer_name if request.HasField("producer_name") else None
    if name is None:
        name = cnx.parts.producer_names.generate()
    check_keys(request.metadata, request.schema.properties)
    try:
        topic = topic_named(request.topic)
        _check_tasks(cnx)
    except RequestError as error:
        _refuse(cnx, request, error)
        return
    there = cnx.producers.get(request.producer_id)
    if there is not None:
        work = partial(_answer_again, cnx, request, topic, there)
    else:
        made = Producer(cnx, request, name, cnx.parts.flow.clock.wall_ms())
        cnx.producers[request.producer_id] = made
        work = partial(_open, cnx, request, topic, made)
    cnx.requests.tasks.start(request.request_id, work)


def _check_tasks(cnx: ServerCnx) -> None:
    if len(cnx.requests.tasks) >= cnx.parts.publish_rules.max_producers_being_made:
        text = "Too many producers are being made for this connection"
        raise RequestError(pb.ServiceNotReady, text)


def _refuse(cnx: ServerCnx, request: pb.CommandProducer, error: RequestError) -> None:
    cnx.send(error_command(request.request_id, error.server_error, error.message))


async def _answer_again(
    cnx: ServerCnx, request: pb.CommandProducer, topic: TopicName, there: Producer
) -> None:
    """Answer a PRODUCER whose id is in use with the name of that producer, if it is open.

    Profile floodgate refuses an id that is in use for another topic.
    """
    try:
        async with _authorized(cnx, request, topic):
            _check_open(cnx, topic, there)
    except RequestError as error:
        _refuse(cnx, request, error)
    else:
        there.answer_again(request.request_id)


def _check_open(cnx: ServerCnx, topic: TopicName, there: Producer) -> None:
    if there.topic is None or there.state not in _SENDS:
        text = "Producer is already present on the connection"
        raise RequestError(pb.ServiceNotReady, text)
    if cnx.parts.refuses_ids_in_use and there.topic.name != topic:
        raise RequestError(pb.NotAllowedError, _in_use(there))


def _in_use(there: Producer) -> str:
    topic = "" if there.topic is None else excerpt(there.topic.full_name)
    return f"producer id {there.producer_id} is used for {topic}: close that, or use another id"


async def _open(
    cnx: ServerCnx, request: pb.CommandProducer, topic: TopicName, made: Producer
) -> None:
    try:
        async with _authorized(cnx, request, topic):
            await _opened(cnx, request, made, topic)
    except RequestError as error:
        _fail(made, error)
    except StoreError as error:
        _fail(made, RequestError(pb.MetadataError, str(error)))
    except MessageStoreError as error:
        _fail(made, not_stored(error))
    except UnansweredRequestError as error:
        cnx.parts.permits.unanswered.left(request.topic, cnx.peer, str(error))
    except BaseException:
        made.end()
        raise


def _fail(made: Producer, error: RequestError) -> None:
    if made.state is ProducerState.OPENING:
        made.fail(error)


@asynccontextmanager
async def _authorized(
    cnx: ServerCnx, request: pb.CommandProducer, topic: TopicName
) -> AsyncIterator[None]:
    """Check that the client may open the producer, before the ``with`` block opens it.

    Raises:
        RequestError: The client is not authorized.
    """
    authorization, first = cnx.parts.authorization, request.initial_subscription_name
    if authorization is None:
        yield
        return
    async with authorization.opening(cnx.session, topic, Asked.PRODUCE):
        if first:
            await authorization.check(cnx.session, topic, Asked.BEGIN, first)
        yield


async def _opened(
    cnx: ServerCnx, request: pb.CommandProducer, made: Producer, name: TopicName
) -> None:
    topic = await cnx.parts.loaded_topics.get(name)
    topic.producers.check_room(topic.policies.max_producers)
    if isinstance(topic, PersistentTopic):
        topic.check_room()
    if topic.policies.encryption_required and not made.encrypted:
        raise RequestError(pb.MetadataError, f"Encryption is required in {topic.full_name}")
    schema = request.schema if request.HasField("schema") else None
    made.schema_version = await cnx.parts.schemas.for_producer(name, schema, topic.policies)
    if isinstance(topic, PersistentTopic):
        made.last_sequence_id = topic.deduplication.last_sequence_id(made.name)
        await _begin(topic, request.initial_subscription_name)
    await _displace_dead(cnx, topic, made)
    _join(cnx, topic, made)


async def _begin(topic: PersistentTopic, subscription: str) -> None:
    """Create the initial subscription that a producer requests, unless it exists.

    It begins with the topic's first message.
    """
    if not subscription or subscription in topic.subscriptions:
        return
    if not topic.policies.auto_subscription_creation:
        text = (
            "Could not create the initial subscription due to the auto subscription creation is "
            "not allowed."
        )
        raise RequestError(pb.NotAllowedError, text)
    topic.subscriptions.create(subscription, earliest=True)
    await topic.ledger.flushed()


async def _displace_dead(cnx: ServerCnx, topic: Topic, made: Producer) -> None:
    """Ping the client whose producer has the requested name; no answer ends its producer."""
    there = topic.producers.named(made.name)
    if there is None or there.cnx is cnx or made.access_mode != pb.Shared:
        return
    topic.producers.check_sharing()  # Refused without a ping (recorded).
    if not await there.cnx.answers_ping():
        there.end()


def _join(cnx: ServerCnx, topic: Topic, made: Producer) -> None:
    if made.state is not ProducerState.OPENING:
        return  # The client has closed the producer.
    if topic.terminated:
        raise terminated()
    if topic.closing:
        raise fenced()
    made.topic = topic
    cnx.closed_by_broker.discard(made.producer_id)
    topic.producers.add(made)


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
    if found is not None and found.state in _SENDS:
        _publish(cnx, found, sent, data)
    elif sent.producer_id not in cnx.closed_by_broker:
        raise RemoteProtocolError(f"a SEND of the producer {sent.producer_id}, which is not open")


def _publish(cnx: ServerCnx, sender: Producer, sent: pb.CommandSend, data: bytes) -> None:
    topic, checked = sender.topic, _checked(cnx, sender, sent, data)
    assert topic is not None
    highest = signed(sent.highest_sequence_id)
    if highest < signed(sent.sequence_id) or not sent.HasField("highest_sequence_id"):
        highest = -1
    if isinstance(checked, SendRefusal):
        # For a batch, the error carries the last sequence id (recorded).
        sender.refused(sent.sequence_id if highest < 0 else highest, *checked)
        return
    whole = True
    if sent.is_chunk:
        sender.statistics.chunks += 1
        whole = checked.chunk_id == checked.num_chunks_from_msg - 1
    topic.publish(sender, sent.sequence_id, highest, data, digest_of(checked), whole=whole)


def _checked(
    cnx: ServerCnx, sender: Producer, sent: pb.CommandSend, data: bytes
) -> pb.MessageMetadata | SendRefusal:
    """Return the metadata of a message, or the error that refuses the message."""
    topic, rules = sender.topic, cnx.parts.publish_rules
    assert topic is not None
    is_open = sender.state is ProducerState.OPEN
    refusal = refusal_of_frame(sent, data, is_open=is_open) or refusal_of_metadata(data, rules)
    if refusal is not None:
        return refusal
    metadata = rules.metadata_of(data)
    refusal = refusal_of(sent, data, metadata, topic.policies, rules, cnx.parts.flow.clock)
    if refusal is None and rules.compares_claims:
        refusal = refusal_of_claims(data, metadata, topic.policies, sender.name)
    return metadata if refusal is None else refusal
