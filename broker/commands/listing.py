"""GET_TOPICS_OF_NAMESPACE: the topics of a namespace."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker.authorization.questions import Asked
from broker.commands.namespaces import NAMESPACE_ERRORS
from proto.commands import with_body
from server.connection.permitted_requests import Request
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import proto.PulsarApi_pb2 as pb
    from broker.cnx import ServerCnx
    from proto.names import NamespaceName


def get_topics(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Answer a listing immediately if possible, otherwise start a request."""
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
    """Answer a listing that needs no wait, one per chunk.

    Further listings of a chunk become tasks, for fairness between connections.
    """
    alone = cnx.listed_in_chunk != cnx.chunks_received and cnx.requests.idle
    answered = cnx.parts.topics_handler.answer_at_once(asked, namespace, cnx, alone=alone)
    if answered:
        cnx.listed_in_chunk = cnx.chunks_received
    return answered
