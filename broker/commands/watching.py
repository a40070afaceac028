"""WATCH_TOPIC_LIST and WATCH_TOPIC_LIST_CLOSE: a watch of the topics of a namespace."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.authorization.questions import Asked
from broker.commands.namespaces import NAMESPACE_ERRORS
from proto.commands import with_body
from server.connection.permitted_requests import Request
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from broker.cnx import ServerCnx
    from broker.watches.service import Check
    from proto.names import NamespaceName

PERSISTENT = pb.CommandGetTopicsOfNamespace.PERSISTENT


def watch(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Start a WATCH_TOPIC_LIST."""
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
        noted = parts.watches.ask(asked, namespace, cnx, _check(cnx, namespace))
    except RequestError as error:
        with permit:
            cnx.requests.refuse(request, error)
    else:
        cnx.requests.run(request, permit, partial(parts.watches.answer, noted))


def _check(cnx: ServerCnx, namespace: NamespaceName) -> Check | None:
    """Return the authorization check to run before the watch; None if already decided."""
    authorization = cnx.parts.authorization
    if authorization is None or authorization.lists_surely(cnx.session, namespace):
        return None
    return partial(authorization.check, cnx.session, namespace, Asked.WATCH)


def close(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """End a watch; always succeeds."""
    asked = with_body(command, "watchTopicListClose").watchTopicListClose
    cnx.parts.watches.close(asked.watcher_id, cnx)
    success = pb.CommandSuccess(request_id=asked.request_id)
    cnx.send(pb.BaseCommand(type=pb.BaseCommand.SUCCESS, success=success))
