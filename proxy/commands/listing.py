"""GET_TOPICS_OF_NAMESPACE: joins the flight with the same broker request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from proto.commands import with_body
from proto.names import InvalidNameError, NamespaceName
from proxy.listing.requesters import Requester
from server.connection.permitted_requests import Request
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from limiter.flow.lookup_semaphore import LookupPermit
    from proxy.cnx import ProxyConnection


def get_topics(cnx: ProxyConnection, command: pb.BaseCommand) -> None:
    """Queue a GET_TOPICS_OF_NAMESPACE for the flight with the same broker request."""
    asked, parts = with_body(command, "getTopicsOfNamespace").getTopicsOfNamespace, cnx.parts
    request = Request(asked.request_id, parts.error_forms.topics)
    permit = _permit(cnx, request, asked)
    if permit is None:
        parts.counters.rejected_get_topics_of_namespace_requests += 1
        return
    parts.counters.get_topics_of_namespace_requests += 1

    def failed(_: int, error: RequestError) -> None:
        cnx.requests.refuse(request, error)

    requester = Requester(cnx, asked.request_id, permit, failed)
    parts.flights.join(requester, asked, cnx.brokers, parts.address)


def _permit(
    cnx: ProxyConnection, request: Request, asked: pb.CommandGetTopicsOfNamespace
) -> LookupPermit | None:
    if cnx.parts.rules.checks_namespaces:
        # A broker closes the shared connection for some malformed names.
        try:
            NamespaceName.parse(asked.namespace)
        except InvalidNameError as error:
            text = f"{error}; expected tenant/namespace"
            cnx.requests.refuse(request, RequestError(pb.InvalidTopicName, text))
            return None
    expected_bytes = cnx.parts.flights.expected_bytes(asked)
    return cnx.requests.permit(request, expected_bytes)
