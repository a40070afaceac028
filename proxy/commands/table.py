"""Table of the commands that the proxy accepts on lookup connections (pipes decode none)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from proto.commands import with_body
from proto.names import InvalidNameError, NamespaceName
from proxy.cnx import ProxyConnectionState
from proxy.commands import session
from proxy.listing.requesters import Requester
from server.authentication.session import auth_response
from server.connection.command_table import CommandTable, Handler, Row
from server.connection.permitted_requests import Request
from server.connection.request_errors import RequestError
from server.connection.served_connection import ping, pong

if TYPE_CHECKING:
    from limiter.flow.lookup_semaphore import LookupPermit
    from proxy.cnx import ProxyConnection


def lookup(cnx: ProxyConnection, command: pb.BaseCommand) -> None:
    """Forward a client's LOOKUP to a broker."""
    asked, parts = with_body(command, "lookupTopic").lookupTopic, cnx.parts
    request = Request(asked.request_id, parts.error_forms.lookup)
    if cnx.requests.start(request, partial(_lookup, cnx, asked)):
        parts.counters.lookup_requests += 1
    else:
        parts.counters.rejected_lookup_requests += 1


async def _lookup(cnx: ProxyConnection, asked: pb.CommandLookupTopic) -> None:
    response = await cnx.parts.lookup_handler.lookup(asked, cnx.brokers)
    cnx.send(pb.BaseCommand(type=pb.BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=response))


def partitioned_metadata(cnx: ProxyConnection, command: pb.BaseCommand) -> None:
    """Forward a client's PARTITIONED_METADATA to a broker."""
    asked, parts = with_body(command, "partitionMetadata").partitionMetadata, cnx.parts
    parts.lookup_handler.check_topic(asked.topic)
    request = Request(asked.request_id, parts.error_forms.partitions)
    if cnx.requests.start(request, partial(_partitions, cnx, asked)):
        parts.counters.partitions_metadata_requests += 1
    else:
        parts.counters.rejected_partitions_metadata_requests += 1


async def _partitions(cnx: ProxyConnection, asked: pb.CommandPartitionedTopicMetadata) -> None:
    response = await cnx.parts.lookup_handler.partitions(asked, cnx.brokers)
    kind = pb.BaseCommand.PARTITIONED_METADATA_RESPONSE
    cnx.send(pb.BaseCommand(type=kind, partitionMetadataResponse=response))


def get_schema(cnx: ProxyConnection, command: pb.BaseCommand) -> None:
    """Forward a client's GET_SCHEMA to a broker.

    The size of the response is unknown until it arrives.
    """
    asked = with_body(command, "getSchema").getSchema
    cnx.parts.counters.get_schema_requests += 1
    request = Request(asked.request_id, cnx.parts.error_forms.schema)
    cnx.requests.start(request, partial(_schema, cnx, asked), expected_bytes=None)


async def _schema(cnx: ProxyConnection, asked: pb.CommandGetSchema) -> None:
    response = await cnx.parts.lookup_handler.schema(asked, cnx.brokers)
    kind = pb.BaseCommand.GET_SCHEMA_RESPONSE
    cnx.send(pb.BaseCommand(type=kind, getSchemaResponse=response))


def get_topics(cnx: ProxyConnection, command: pb.BaseCommand) -> None:
    """Answer a client's GET_TOPICS_OF_NAMESPACE by a broker request that equal requests share."""
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


Type = pb.BaseCommand
INIT = (ProxyConnectionState.INIT,)
LOOKUPS = (ProxyConnectionState.PROXY_LOOKUP_REQUESTS,)
BOTH = INIT + LOOKUPS

ROWS: tuple[Row[Handler], ...] = (
    Row(Type.CONNECT, session.connect, INIT),
    Row(Type.AUTH_RESPONSE, auth_response, LOOKUPS),
    Row(Type.PING, ping, BOTH),
    Row(Type.PONG, pong, BOTH),
    Row(Type.LOOKUP, lookup, LOOKUPS),
    Row(Type.PARTITIONED_METADATA, partitioned_metadata, LOOKUPS),
    Row(Type.GET_SCHEMA, get_schema, LOOKUPS),
    Row(Type.GET_TOPICS_OF_NAMESPACE, get_topics, LOOKUPS),
)


def _counted(handler: Handler) -> Handler:
    def handle(cnx: ProxyConnection, command: pb.BaseCommand) -> None:
        cnx.parts.counters.binary_ops += 1
        handler(cnx, command)

    return handle


COMMANDS = CommandTable(
    [row._replace(handler=_counted(row.handler)) for row in ROWS],
    handshake=(*INIT, ProxyConnectionState.PROXY_CONNECTING_TO_BROKER),
)
