"""Handlers of consumers' commands: FLOW, ACK, redelivery, SEEK, statistics."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.commands.transactions import refused_ack
from broker.messages.errors import MessageStoreError, not_stored
from broker.messages.metadata import parse_metadata
from broker.messages.position import EARLIEST, from_wire, to_wire
from broker.messages.subscriptions.subscription import INDIVIDUALLY
from proto.commands import (
    NO_REQUEST,
    check_keys,
    error_command,
    success_command,
    with_body,
)
from proto.errors import RemoteProtocolError
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from broker.cnx import ServerCnx
    from broker.messages.entry import Entry
    from broker.messages.position import Position
    from broker.messages.stores.managed_ledger import ManagedLedger
    from broker.messages.subscriptions.consumer import Consumer

Type = pb.BaseCommand
_MOST_PERMITS = (1 << 31) - 1
_NOT_FOUND = "Consumer not found"
IDS_A_TURN = 1_000
"""The largest number of ids of a command processed in one event-loop turn: official clients send
1,000, and 2,000 at most."""
IDS_A_STEP = 250
MOST_SOUGHT = 100
"""The largest number of consumers remembered per connection after their own SEEK; above it, the
oldest is forgotten."""


def succeed(cnx: ServerCnx, request_id: int) -> None:
    """Answer a request with SUCCESS."""
    cnx.send(success_command(request_id))


def refuse(cnx: ServerCnx, request_id: int, error: RequestError) -> None:
    """Answer a request with ERROR."""
    cnx.send(error_command(request_id, error.server_error, error.message))


# -- permits, acknowledgement, redelivery -----------------------------------------------------


def flow(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Add the permits of a FLOW to a consumer; ignore an unknown consumer.

    Raises:
        RemoteProtocolError: The number is 0 or too large; the connection closes (recorded).
    """
    asked = with_body(command, "flow").flow
    consumer = cnx.consumers.get(asked.consumer_id)
    if consumer is None:
        return
    if not 0 < asked.messagePermits <= _MOST_PERMITS:
        raise RemoteProtocolError(f"FLOW with {asked.messagePermits} permits")
    consumer.subscription.flow(consumer, asked.messagePermits)


def ack(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Acknowledge a consumer's messages; ignore an ACK for an unknown consumer.

    An ACK outside a transaction is never refused (recorded).

    Raises:
        RemoteProtocolError: The subscription is the compaction's, or the properties repeat a key;
            the connection closes (recorded).
    """
    asked = with_body(command, "ack").ack
    consumer = cnx.consumers.get(asked.consumer_id)
    if consumer is None:
        return
    check_keys(asked.properties)
    if not _is_ignored(consumer, asked) and refused_ack(cnx, asked):
        return
    if consumer.subscription.internal:
        raise RemoteProtocolError(f"an ACK for {consumer.subscription.name}")
    if len(asked.message_id) > IDS_A_TURN and asked.ack_type == pb.CommandAck.Individual:
        cnx.unfinished = True
        acknowledge = partial(consumer.subscription.acknowledge, consumer)
        answer = partial(_answer_ack, cnx, asked)
        work = partial(_in_steps, cnx, asked.message_id, lambda ids, _: acknowledge(ids), answer)
        cnx.requests.tasks.start(asked.request_id, work)
        return
    if asked.ack_type == pb.CommandAck.Individual:
        consumer.subscription.acknowledge(consumer, asked.message_id)
    elif not _is_ignored(consumer, asked):
        consumer.subscription.acknowledge_cumulatively(consumer, asked.message_id[0])
    _answer_ack(cnx, asked)


def _is_ignored(consumer: Consumer, asked: pb.CommandAck) -> bool:
    """Return True for a cumulative ACK of several messages, or of a consumer that shares them."""
    several = len(asked.message_id) != 1 or consumer.options.type in INDIVIDUALLY
    return asked.ack_type == pb.CommandAck.Cumulative and several


async def _in_steps(
    cnx: ServerCnx,
    ids: Sequence[pb.MessageIdData],
    step: Callable[[Sequence[pb.MessageIdData], bool], None],
    then: Callable[[], None] = lambda: None,
) -> None:
    """Process the many message ids of a command in several event-loop turns.

    The connection's next frames wait until the last step.

    Args:
        cnx: The connection.
        ids: The message ids.
        step: Processes some of the ids; its second argument is True if more ids follow.
        then: The function to call after the last step.
    """
    try:
        for end in range(IDS_A_STEP, len(ids) + IDS_A_STEP, IDS_A_STEP):
            await cnx.parts.joins.do(partial(step, ids[end - IDS_A_STEP : end], end < len(ids)))
    finally:
        cnx.unfinished = False
    then()


def _answer_ack(cnx: ServerCnx, asked: pb.CommandAck) -> None:
    if asked.HasField("request_id"):
        answer = pb.CommandAckResponse(consumer_id=asked.consumer_id, request_id=asked.request_id)
        cnx.send(Type(type=Type.ACK_RESPONSE, ackResponse=answer))


def redeliver(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Redeliver a consumer's unacknowledged messages."""
    asked = with_body(command, "redeliverUnacknowledgedMessages").redeliverUnacknowledgedMessages
    consumer = cnx.consumers.get(asked.consumer_id)
    if consumer is None:
        return
    epoch = asked.consumer_epoch if asked.HasField("consumer_epoch") else None
    if len(asked.message_ids) > IDS_A_TURN and consumer.options.type in INDIVIDUALLY:
        cnx.unfinished = True
        give_back = partial(consumer.subscription.redeliver, consumer)
        work = partial(
            _in_steps, cnx, asked.message_ids, lambda ids, more: give_back(ids, None, more=more)
        )
        cnx.requests.tasks.start(NO_REQUEST, work)
    else:
        consumer.subscription.redeliver(consumer, asked.message_ids, epoch)


# -- closing a consumer -----------------------------------------------------------------------


def close_consumer(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Close a consumer; an unknown consumer counts as closed."""
    asked = with_body(command, "close_consumer").close_consumer
    cnx.sought.pop(asked.consumer_id, None)
    consumer = cnx.consumers.pop(asked.consumer_id, None)
    if consumer is not None:
        consumer.subscription.remove_consumer(consumer)
    elif asked.consumer_id in cnx.subscribing:
        cnx.subscribing[asked.consumer_id] = False
    succeed(cnx, asked.request_id)


def unsubscribe(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Disconnect a consumer and delete its subscription."""
    asked = with_body(command, "unsubscribe").unsubscribe
    consumer = cnx.consumers.get(asked.consumer_id)
    if consumer is None:
        refuse(cnx, asked.request_id, RequestError(pb.MetadataError, _NOT_FOUND))
        return
    subscription = consumer.subscription
    try:
        subscription.check_unsubscribe(force=asked.force)
    except RequestError as error:
        refuse(cnx, asked.request_id, error)
        return
    del cnx.consumers[asked.consumer_id]
    subscription.remove_consumer(consumer)
    _succeed_once_kept(cnx, asked.request_id, consumer, subscription.delete)


def _succeed_once_kept(
    cnx: ServerCnx, request_id: int, consumer: Consumer, change: Callable[[], None]
) -> None:
    """Change a subscription, and answer once the change is as durable as a stored message."""
    topic = consumer.subscription.topic
    try:
        change()
    except MessageStoreError as error:
        refuse(cnx, request_id, not_stored(error))
        return
    if topic.name.persistent and consumer.subscription.cursor.durable:
        cnx.requests.tasks.start(request_id, partial(_succeed_later, cnx, request_id, topic.ledger))
    else:
        succeed(cnx, request_id)


async def _succeed_later(cnx: ServerCnx, request_id: int, ledger: ManagedLedger) -> None:
    try:
        await ledger.flushed()
    except MessageStoreError as error:
        refuse(cnx, request_id, not_stored(error))
    else:
        succeed(cnx, request_id)


# -- positions --------------------------------------------------------------------------------


def seek(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Move a subscription's cursor, and close its consumers, which then subscribe again."""
    asked = with_body(command, "seek").seek
    request_id = asked.request_id
    by_id = asked.HasField("message_id")
    if not by_id and not asked.HasField("message_publish_time"):
        text = "Message id and message publish time were not present"
        refuse(cnx, request_id, RequestError(pb.MetadataError, text))
        return
    consumer = _positioned(cnx, asked.consumer_id)
    if consumer is None:
        refuse(cnx, request_id, RequestError(pb.MetadataError, _NOT_FOUND))
    elif by_id:
        first = from_wire(asked.message_id.ledgerId, asked.message_id.entryId)
        _seek_to(cnx, consumer, request_id, first)
    elif consumer.subscription.topic.name.persistent:
        cnx.requests.tasks.start(request_id, partial(_seek_time, cnx, consumer, asked))
    else:  # Without stored messages a SEEK is a no-op and succeeds (recorded).
        _seek_to(cnx, consumer, request_id, EARLIEST)


def _positioned(cnx: ServerCnx, consumer_id: int) -> Consumer | None:
    """Return an open consumer, or a consumer closed by its own SEEK; None if unknown.

    A consumer closed by its SEEK counts until another consumer subscribes.

    A client may have sent the command before noticing the close.
    """
    sought = cnx.sought.get(consumer_id)
    if sought is not None and not sought.subscription.awaited:
        sought = None
    return cnx.consumers.get(consumer_id, sought)


def _seek_to(cnx: ServerCnx, consumer: Consumer, request_id: int, first: Position) -> None:
    if cnx.parts.serves_sought:
        cnx.sought.pop(consumer.consumer_id, None)
        cnx.sought[consumer.consumer_id] = consumer
        if len(cnx.sought) > MOST_SOUGHT:
            del cnx.sought[next(iter(cnx.sought))]
    _succeed_once_kept(cnx, request_id, consumer, partial(consumer.subscription.seek, first))


async def _seek_time(cnx: ServerCnx, consumer: Consumer, asked: pb.CommandSeek) -> None:
    """Move a subscription's cursor to the first stored entry published at or after a time."""
    subscription = consumer.subscription
    try:
        first = await subscription.topic.ledger.published_at(asked.message_publish_time)
    except MessageStoreError as error:
        refuse(cnx, asked.request_id, not_stored(error))
        return
    if _positioned(cnx, asked.consumer_id) is not consumer:
        # The consumer has left meanwhile, possibly with the subscription.
        refuse(cnx, asked.request_id, RequestError(pb.MetadataError, _NOT_FOUND))
        return
    _seek_to(cnx, consumer, asked.request_id, first)


def last_message_id(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Answer with a topic's last message id, and the subscription's mark-delete position."""
    asked = with_body(command, "getLastMessageId").getLastMessageId
    consumer = _positioned(cnx, asked.consumer_id)
    if consumer is None:
        refuse(cnx, asked.request_id, RequestError(pb.MetadataError, _NOT_FOUND))
        return
    topic = consumer.subscription.topic
    if not topic.name.persistent:
        text = "Failed to recover Transaction Buffer."
        refuse(cnx, asked.request_id, RequestError(pb.UnknownError, text))
        return
    if consumer.options.read_compacted and topic.compaction.holds_last():
        fetch, none = topic.compaction.last_entry, 0
    else:
        last = topic.ledger.last_confirmed
        found = topic.ledger.read_each((last,))
        if found is not None:
            _answer_last(cnx, consumer, asked.request_id, found[0] if found else None)
            return
        fetch, none = partial(topic.ledger.entry, last), -1
    work = partial(_fetch_last, cnx, consumer, asked.request_id, fetch, none)
    cnx.requests.tasks.start(asked.request_id, work)


async def _fetch_last(
    cnx: ServerCnx,
    consumer: Consumer,
    request_id: int,
    fetch: Callable[[], Awaitable[Entry | None]],
    none: int,
) -> None:
    try:
        entry = await fetch()
    except MessageStoreError as error:
        refuse(cnx, request_id, not_stored(error))
    else:
        _answer_last(cnx, consumer, request_id, entry, none)


def _answer_last(
    cnx: ServerCnx, consumer: Consumer, request_id: int, entry: Entry | None, none: int = -1
) -> None:
    """Answer with the id of the last message in an entry.

    If there is no entry, the batch index in the answer is ``none`` (recorded).
    """
    topic = consumer.subscription.topic
    try:
        position, batch_index = last_message(entry)
    except RemoteProtocolError as error:
        text = f"Failed to get batch size for entry {error}"
        refuse(cnx, request_id, RequestError(pb.MetadataError, text))
        return
    if entry is None:
        batch_index = none
    mark = consumer.subscription.cursor.mark_delete
    answer = pb.CommandGetLastMessageIdResponse(
        last_message_id=pb.MessageIdData(
            ledgerId=to_wire(position.ledger_id),
            entryId=to_wire(position.entry_id),
            partition=topic.name.partition_index,
            batch_index=batch_index,
        ),
        request_id=request_id,
        consumer_mark_delete_position=pb.MessageIdData(
            ledgerId=to_wire(mark.ledger_id), entryId=to_wire(mark.entry_id)
        ),
    )
    kind = Type.GET_LAST_MESSAGE_ID_RESPONSE
    cnx.send(Type(type=kind, getLastMessageIdResponse=answer))


def last_message(last: Entry | None) -> tuple[Position, int]:
    """Return an entry's position and last batch index; (-1, -1) and -1 without an entry.

    The message may be acknowledged already. The index is -1 for a message without a batch, and for
    a batch claiming no messages (recorded); for a compacted batch it is the index of the last
    remaining message.

    Raises:
        RemoteProtocolError: The metadata cannot be read.
    """
    if last is None:
        return EARLIEST, -1
    metadata = parse_metadata(last.data)
    if not metadata.HasField("num_messages_in_batch"):
        return last.position, -1
    if metadata.compacted_batch_indexes:
        return last.position, metadata.compacted_batch_indexes[-1]
    return last.position, max(0, metadata.num_messages_in_batch) - 1


# -- statistics -------------------------------------------------------------------------------


def consumer_stats(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Answer with the statistics of a consumer.

    Raises:
        RemoteProtocolError: The consumer is unknown; the connection closes (recorded).
    """
    asked = with_body(command, "consumerStats").consumerStats
    consumer = cnx.consumers.get(asked.consumer_id)
    if consumer is None and cnx.subscribing.get(asked.consumer_id):
        failed = pb.CommandConsumerStatsResponse(
            request_id=asked.request_id,
            error_code=pb.ConsumerNotFound,
            error_message=f"Consumer {asked.consumer_id} not found",
        )
        cnx.send(Type(type=Type.CONSUMER_STATS_RESPONSE, consumerStatsResponse=failed))
        return
    if consumer is None:
        raise RemoteProtocolError(f"CONSUMER_STATS for the unknown consumer {asked.consumer_id}")
    answer = pb.CommandConsumerStatsResponse(
        request_id=asked.request_id,
        msgRateOut=consumer.rates.current.messages_out,
        msgThroughputOut=consumer.rates.current.bytes_out,
        msgRateRedeliver=consumer.rates.current.redelivered,
        consumerName=consumer.name,
        availablePermits=to_wire(consumer.permits),
        unackedMessages=to_wire(consumer.unacked),
        blockedConsumerOnUnackedMsgs=consumer.blocked,
        address=f"/{cnx.peer}",
        connectedSince=consumer.connected_text,
        type=pb.CommandSubscribe.SubType.Name(consumer.options.type),
        msgRateExpired=0.0,
        msgBacklog=consumer.subscription.cursor.backlog,
        messageAckRate=consumer.rates.current.acknowledged,
    )
    cnx.send(Type(type=Type.CONSUMER_STATS_RESPONSE, consumerStatsResponse=answer))
