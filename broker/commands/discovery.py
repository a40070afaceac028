"""Handlers of topic discovery: listings, watches, lookups, numbers of partitions.

GET_TOPICS_OF_NAMESPACE, WATCH_TOPIC_LIST, LOOKUP, PARTITIONED_METADATA.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.authorization.questions import Asked
from broker.errors import TOO_MANY_LOOKUPS
from broker.topics.lookup import topic_named
from proto.commands import (
    error_command,
    lookup_failed,
    partitions_failed,
    success_command,
    with_body,
)
from proto.errors import RemoteProtocolError
from proto.names import InvalidNameError, NamespaceName
from server.connection.permitted_requests import Request
from server.connection.request_errors import ErrorForm, RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from broker.cnx import ServerCnx
    from broker.watches.service import Check
    from proto.names import TopicName

NAMESPACE_ERRORS = ErrorForm(error_command, TOO_MANY_LOOKUPS)
"""The forms of errors for requests that name a namespace."""


def named_or_refused(name: str) -> NamespaceName:
    """Parse a request's namespace, and refuse the request if the name is malformed.

    Raises:
        RequestError: The name is malformed.
    """
    try:
        return NamespaceName.parse(name)
    except InvalidNameError as error:
        text = f"{error}; expected tenant/namespace"
        raise RequestError(pb.InvalidTopicName, text) from None


def named_or_closed(name: str) -> NamespaceName:
    """Parse a request's namespace, ignoring trailing slashes as a real broker does.

    Raises:
        RemoteProtocolError: The name is malformed; the connection closes.
    """
    try:
        return NamespaceName.parse_with_slashes(name)
    except InvalidNameError as error:
        raise RemoteProtocolError(str(error)) from None


def get_topics(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Answer a listing request at once if possible, otherwise start a task for it."""
    asked = with_body(command, "getTopicsOfNamespace").getTopicsOfNamespace
    handler = cnx.parts.topics_handler
    try:
        namespace = cnx.parts.namespace_named(asked.namespace)
        allowed = _may_surely_list(cnx, namespace)
        if allowed and _answered_at_once(cnx, asked, namespace):
            return
        properties = handler.properties_of(asked)
    except RequestError as error:
        cnx.requests.refuse(Request(asked.request_id, NAMESPACE_ERRORS), error)
        return
    cnx.requests.start(
        Request(asked.request_id, NAMESPACE_ERRORS, str(namespace)),
        partial(_serve, cnx, asked, namespace, properties, allowed=allowed),
        handler.expected_bytes(namespace, asked.mode, properties),
    )


def _may_surely_list(cnx: ServerCnx, namespace: NamespaceName) -> bool:
    authorization = cnx.parts.authorization
    return authorization is None or authorization.lists_surely(cnx.session, namespace)


async def _serve(
    cnx: ServerCnx,
    asked: pb.CommandGetTopicsOfNamespace,
    namespace: NamespaceName,
    properties: Mapping[str, str],
    *,
    allowed: bool,
) -> None:
    if not allowed and cnx.parts.authorization is not None:
        await cnx.parts.authorization.check(cnx.session, namespace, Asked.LIST)
    await cnx.parts.topics_handler.serve(asked, namespace, cnx, properties)


def _answered_at_once(
    cnx: ServerCnx, asked: pb.CommandGetTopicsOfNamespace, namespace: NamespaceName
) -> bool:
    """If possible, answer a listing request without waiting; return True if it is answered.

    Of the requests in each chunk received from the socket, one is answered this way. Further
    requests become tasks, for fairness between connections.
    """
    alone = cnx.listed_in_chunk != cnx.chunks_received and cnx.requests.idle
    answered = cnx.parts.topics_handler.answer_at_once(asked, namespace, cnx, alone=alone)
    if answered:
        cnx.listed_in_chunk = cnx.chunks_received
    return answered


PERSISTENT = pb.CommandGetTopicsOfNamespace.PERSISTENT


def watch(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Register the watch of a WATCH_TOPIC_LIST, and start a task that answers with the topics."""
    asked = with_body(command, "watchTopicList").watchTopicList
    request, parts = Request(asked.request_id, NAMESPACE_ERRORS), cnx.parts
    try:
        namespace = parts.namespace_named(asked.namespace)
    except RequestError as error:
        cnx.requests.refuse(request, error)
        return
    expected_bytes = parts.topics_handler.expected_bytes(namespace, PERSISTENT)
    permit = cnx.requests.permit(request, expected_bytes)
    if permit is None:
        return
    cnx.turn_ended = True  # Compiling the watch's pattern may take long.
    try:
        # In the current turn, so that an immediately following close finds the watch.
        noted = parts.watches.ask(asked, namespace, cnx, _watch_check(cnx, namespace))
    except RequestError as error:
        with permit:
            cnx.requests.refuse(request, error)
    else:
        cnx.requests.run(request, permit, partial(parts.watches.answer, noted))


def _watch_check(cnx: ServerCnx, namespace: NamespaceName) -> Check | None:
    """Return the authorization check to run before the watch starts, or None if not needed."""
    authorization = cnx.parts.authorization
    if authorization is None or authorization.lists_surely(cnx.session, namespace):
        return None
    return partial(authorization.check, cnx.session, namespace, Asked.WATCH)


def close_watch(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Close a watch; an unknown watch counts as closed."""
    asked = with_body(command, "watchTopicListClose").watchTopicListClose
    cnx.parts.watches.close(asked.watcher_id, cnx)
    cnx.send(success_command(asked.request_id))


LOOKUP_ERRORS = ErrorForm(lookup_failed, TOO_MANY_LOOKUPS)
PARTITIONS_ERRORS = ErrorForm(partitions_failed, TOO_MANY_LOOKUPS)


def lookup(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Start a task that answers a LOOKUP with the broker of a topic."""
    asked = with_body(command, "lookupTopic").lookupTopic
    request = Request(asked.request_id, LOOKUP_ERRORS)
    _begin(cnx, request, asked.topic, partial(_lookup, cnx, asked))


def _begin(
    cnx: ServerCnx,
    request: Request,
    name: str,
    work: Callable[[TopicName], Coroutine[object, object, None]],
) -> None:
    """Start a request about a topic; a malformed name is refused even if no permit is free."""
    try:
        topic = topic_named(name)
    except RequestError as error:
        cnx.requests.refuse(request, error)
    else:
        cnx.requests.begin(request, partial(work, topic))


async def _lookup(cnx: ServerCnx, asked: pb.CommandLookupTopic, topic: TopicName) -> None:
    await check(cnx, topic, Asked.LOOKUP)
    response = await cnx.parts.lookup_handler.lookup(asked)
    cnx.send(pb.BaseCommand(type=pb.BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=response))


def partitioned_metadata(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Start a task that answers with the number of a topic's partitions."""
    asked = with_body(command, "partitionMetadata").partitionMetadata
    request = Request(asked.request_id, PARTITIONS_ERRORS, asked.topic)
    _begin(cnx, request, asked.topic, partial(_partitions, cnx, asked))


async def _partitions(
    cnx: ServerCnx, asked: pb.CommandPartitionedTopicMetadata, topic: TopicName
) -> None:
    await check(cnx, topic, Asked.PARTITIONS)
    response = await cnx.parts.lookup_handler.partitions(asked)
    kind = pb.BaseCommand.PARTITIONED_METADATA_RESPONSE
    cnx.send(pb.BaseCommand(type=kind, partitionMetadataResponse=response))


async def check(cnx: ServerCnx, topic: TopicName, asked: Asked) -> None:
    """Check that a client may send a command about a topic.

    Raises:
        RequestError: The client may not, or the store of permissions failed.
    """
    if cnx.parts.authorization is not None:
        await cnx.parts.authorization.check(cnx.session, topic, asked)
