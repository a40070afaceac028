"""GET_TOPICS_OF_NAMESPACE: the topics of a namespace."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker.commands.namespaces import NAMESPACE_ERRORS
from proto.commands import with_body
from server.connection.permitted_requests import Request
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    import proto.PulsarApi_pb2 as pb
    from broker.cnx import ServerCnx
    from proto.names import NamespaceName


def get_topics(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Answer a listing that needs no wait now, and start every other."""
    asked = with_body(command, "getTopicsOfNamespace").getTopicsOfNamespace
    handler = cnx.parts.topics_handler
    try:
        namespace = cnx.parts.namespace_named(asked.namespace)
        if _answered_at_once(cnx, asked, namespace):
            return
        properties = handler.properties_of(asked)
    except RequestError as error:
        cnx.requests.refuse(Request(asked.request_id, NAMESPACE_ERRORS), error)
        return
    cnx.requests.start(
        Request(asked.request_id, NAMESPACE_ERRORS, str(namespace)),
        partial(handler.serve, asked, namespace, cnx, properties),
        handler.expected_bytes(namespace, asked.mode, properties),
    )


def _answered_at_once(
    cnx: ServerCnx, asked: pb.CommandGetTopicsOfNamespace, namespace: NamespaceName
) -> bool:
    """Answer what needs no wait, one listing a chunk.

    Those that come with it wait in tasks, so that other connections have their turn.
    """
    alone = cnx.listed_in_chunk != cnx.chunks_received and cnx.requests.idle
    answered = cnx.parts.topics_handler.answer_at_once(asked, namespace, cnx, alone=alone)
    if answered:
        cnx.listed_in_chunk = cnx.chunks_received
    return answered
