"""Admin requests that read messages by position, id or time, and that analyze backlogs.

Source: upstream PersistentTopicsBase.internalPeekNthMessageAsync, internalExamineMessageAsync,
internalGetMessageById, internalAnalyzeSubscriptionBacklog and their neighbours.
"""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from aiohttp import web
from google.protobuf.message import Message

import proto.PulsarApi_pb2 as pb
from broker.admin.openapi import schemas
from broker.admin.paths import endpoint
from broker.admin.requests import FailsUpstreamError
from broker.admin.resources.messages.consumer_stats import date
from broker.admin.resources.messages.internal_stats import analyzed
from broker.admin.resources.messages.message_ids import (
    given_target,
    message_id,
    path_number,
    reset_target,
)
from broker.admin.resources.messages.subjects import (
    TopicResource,
    check_persistent,
    check_subscribed,
    created,
    last_id,
    persistent,
    subscription_name,
    subscription_of,
)
from broker.authorization.operations import TopicOperation
from broker.messages.compaction.batches import DecompressionError, decompressed
from broker.messages.metadata import parse_metadata, payload_of
from broker.messages.position import EARLIEST, Position
from proto.errors import RemoteProtocolError
from server.cross_site import check_change
from server.http import RestError
from server.seeing.audit import tell_change

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from broker.messages.entry import Entry
    from broker.messages.stores.managed_ledger import ManagedLedger

_UNFIT = dict.fromkeys((*range(32), 127))
"""Characters that an HTTP header may not contain, and that are left out."""
_ESCAPED = {ord(one): f"\\u{ord(one):04x}" for one in "<>&='"}
"""Characters that upstream's Gson escapes."""


def message_response(entry: Entry, max_bytes: int) -> web.Response:
    """Return an HTTP response with the payload of an entry: a message, or a whole batch.

    The headers show the message's metadata.

    Args:
        entry: The stored entry.
        max_bytes: The largest accepted size of a decompressed payload, in bytes.

    Raises:
        FailsUpstreamError: The entry is unreadable, or cannot be decompressed.
    """
    try:
        metadata = parse_metadata(entry.data)
        body = payload_of(entry.data)
        if not metadata.encryption_keys:
            body = decompressed(metadata, body, max_bytes)
    except (RemoteProtocolError, DecompressionError) as error:
        raise FailsUpstreamError(422, str(error)) from None
    response = web.Response(body=body, headers={"Content-Type": "application/json"})
    for name, text in _fields(entry, metadata):
        response.headers.add(f"X-Pulsar-{name}", text.translate(_UNFIT))
    return response


def _fields(entry: Entry, metadata: pb.MessageMetadata) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each header (upstream: generateResponseWithEntry)."""
    properties = {pair.key: pair.value for pair in metadata.properties}
    yield "Message-ID", str(entry.position)
    yield "PROPERTY", json.dumps(properties, separators=(",", ":")).translate(_ESCAPED)
    yield "Is-Encrypted", _text(bool(metadata.encryption_keys))
    yield "txn-uncommitted", "false"
    if metadata.HasField("num_messages_in_batch"):
        yield "batch-size", str(len(entry.data) - metadata.ByteSize())
    if metadata.HasField("num_chunks_from_msg"):
        yield "PROPERTY-TOTAL-CHUNKS", str(metadata.num_chunks_from_msg)
        yield "PROPERTY-CHUNK-ID", str(metadata.chunk_id)
    if metadata.HasField("txnid_most_bits") and metadata.HasField("txnid_least_bits"):
        yield "txn-aborted", "false"
    for field, found in metadata.ListFields():
        if field.name in _NOT_SHOWN:
            continue
        name = _NAMES.get(field.name, field.name.replace("_", "-"))
        for value in found if field.is_repeated else (found,):
            yield name, _FORMATS.get(field.name, _text)(value)


_NOT_SHOWN = frozenset(
    ("properties", "compacted_batch_indexes", "schema_id", "entry_hash_min", "entry_hash_max")
)
_NAMES = {
    "num_messages_in_batch": "num-batch-message",
    "replicate_to": "replicated-to",
    **{
        name: f"Base64-{name.replace('_', '-')}"
        for name in ("encryption_keys", "encryption_param", "ordering_key", "schema_version")
    },
}


def _text(value: object) -> str:
    if isinstance(value, Message):
        value = value.SerializeToString()
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return str(value).lower() if isinstance(value, bool) else str(value)


def _moment(milliseconds: int) -> str:
    """Return a client's timestamp in ms as a date and time, or as a number if out of range."""
    try:
        return date(milliseconds)
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)


_FORMATS: Mapping[str, Callable[[Any], str]] = {
    **dict.fromkeys(("publish_time", "event_time", "deliver_at_time"), _moment),
    "compression": pb.CompressionType.Name,
}
_NONE = "Message not found"


class ReadingAdmin(TopicResource):
    """Handlers of admin requests that read messages and find message ids."""

    async def _message(self, ledger: ManagedLedger, position: Position) -> web.Response:
        entry = await ledger.entry(position)
        if entry is None:
            raise RestError(404, _NONE)
        return message_response(entry, self._context.config.max_message_size)

    @endpoint(
        "GET {topic}/subscription/{subName}/position/{messagePosition}",
        TopicOperation.PEEK_MESSAGES,
        refused=(422,),
    )
    async def peek(self, request: web.Request) -> web.Response:
        """Return the n-th message of a subscription's backlog; create a missing subscription.

        Upstream creates the subscription, too.

        Raises:
            RestError: 404, the backlog is shorter; 403, the request to create comes from another
                site's page.
        """
        check_persistent(request, "Peek messages")
        place = path_number(request, "messagePosition")
        refusal = "Peek messages on a partitioned topic is not allowed"
        topic = await self._topics.stored(request, refusal)
        if place < 1:
            status = 500 if self._context.rules.fails_as_upstream else 412
            raise RestError(status, f"messagePosition={place} should be 1 or more")
        subscriptions, name = topic.subscriptions, subscription_name(request)
        subscription = subscriptions.get(name)
        if subscription is None:
            check_change(request)
            subscription = created(topic, name)
            tell_change(request)
        position = subscription.cursor.nth_left(place)
        if position is None:
            raise RestError(404, _NONE)
        return await self._message(topic.ledger, position)

    @endpoint(
        "POST {topic}/subscription/{subName}/analyzeBacklog",
        TopicOperation.CONSUME,
        body=schemas.MESSAGE_ID,
        body_required=False,
        done=(200,),
    )
    async def analyze(self, request: web.Request) -> object:
        """Count the entries and messages in a subscription's backlog, up to a limit.

        The count begins at the message id in the body, if any, even before the backlog.
        """
        target = await reset_target(request)
        found = await self._topics.one(
            request,
            "Analyze backlog on a partitioned topic is not allowed, please try do it on specific "
            "topic partition",
        )
        await check_subscribed([found], subscription_name(request))
        topic = persistent(found)
        cursor = subscription_of(topic, subscription_name(request)).cursor
        start = cursor.first_left if target is None else target.position
        return await analyzed(cursor, topic.ledger, start)

    @endpoint(
        "GET {topic}/examinemessage?messagePosition&initialPosition",
        TopicOperation.PEEK_MESSAGES,
        refused=(422,),
    )
    async def examine(self, request: web.Request) -> web.Response:
        """Return the n-th stored message of a topic, counted from the first or from the last."""
        check_persistent(request, "Examine messages")
        topic = await self._topics.stored(
            request,
            "Examine messages on a partitioned topic is not allowed, please try examine message on "
            "specific topic partition",
        )
        ledger = topic.ledger
        total = sum(one.entries for one in ledger.ledgers)
        if not total:
            raise RestError(412, "Could not examine messages due to the total message is zero")
        place = _query_number(request, "messagePosition", 1)
        if request.query.get("initialPosition") != "earliest":
            place = total - place + 1
        return await self._message(ledger, ledger.at(EARLIEST, min(max(place, 1), total)))

    @endpoint("GET {topic}/messageid/{timestamp}", TopicOperation.PEEK_MESSAGES)
    async def id_at_time(self, request: web.Request) -> object:
        """Return the id of the first message published at a time or later."""
        check_persistent(request, "Get message ID by timestamp")
        time_ms = path_number(request, "timestamp")
        topic = await self._topics.stored(
            request,
            "Get message ID by timestamp on a partitioned topic is not allowed, please try do it "
            "on specific topic partition",
        )
        found = await topic.ledger.published_at(time_ms) if time_ms else EARLIEST
        return message_id(found, topic.name.partition_index)

    @endpoint("GET {topic}/getMessageIdByIndex", TopicOperation.PEEK_MESSAGES)
    async def id_by_index(self, request: web.Request) -> None:
        """Refuse to find a message by its index, because brokers here assign no indexes."""
        await self._topics.names(request)
        raise RestError(
            412, "GetMessageIDByIndex is not allowed when broker entry metadata is disabled"
        )

    @endpoint(
        "GET {topic}/ledger/{ledgerId}/entry/{entryId}",
        TopicOperation.PEEK_MESSAGES,
        refused=(422,),
    )
    async def by_id(self, request: web.Request) -> web.Response:
        """Return the message with the given ledger id and entry id."""
        position = Position(path_number(request, "ledgerId"), path_number(request, "entryId"))
        refusal = "GetMessageById is not allowed on partitioned-topic"
        ledger = (await self._topics.stored(request, refusal)).ledger
        known = [one.ledger_id for one in ledger.ledgers]
        if position.ledger_id not in known:
            raise RestError(404, "Message id not found")
        if self._context.rules.fails_as_upstream and not ledger.holds(position):
            last = ledger.last_confirmed
            text = f"LastConfirmedEntry is {last} when reading entry {position.entry_id}"
            raise RestError(500, text)
        return await self._message(ledger, position)

    @endpoint("GET {topic}/lastMessageId", TopicOperation.PEEK_MESSAGES)
    async def last_message_id(self, request: web.Request) -> object:
        """Return the id of a topic's last message; (-1, -1) if it is no longer stored."""
        check_persistent(request, "GetLastMessageId")
        topic = await self._topics.stored(request)
        return message_id(last_id(topic), topic.name.partition_index)

    @endpoint(
        "PUT {topic}/backlogSize",
        TopicOperation.GET_BACKLOG_SIZE,
        body=schemas.MESSAGE_ID,
        done=(200,),
    )
    async def backlog_size(self, request: web.Request) -> object:
        """Return the number of bytes stored after a message id."""
        target = await given_target(request)
        refusal = "calculate backlog size is not allowed for partitioned-topic"
        ledger = (await self._topics.stored(request, refusal)).ledger
        return ledger.size_between(target.position, ledger.last_confirmed)


def _query_number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, str(default))
    if not (text.isascii() and text.removeprefix("-").isdigit()) or len(text) > 19:
        raise RestError(404, f"{name}={text[:40]!r} should be a whole number")
    return int(text)
