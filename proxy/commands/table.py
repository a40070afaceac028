"""The table of the proxy's commands; a pipe decodes no commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from proxy.cnx import ProxyConnectionState
from proxy.commands import metadata, session
from server.authentication.session import auth_response
from server.connection.command_table import CommandTable, Handler, Row
from server.connection.served_connection import ping, pong

if TYPE_CHECKING:
    from proxy.cnx import ProxyConnection

Type = pb.BaseCommand
INIT = (ProxyConnectionState.INIT,)
LOOKUPS = (ProxyConnectionState.PROXY_LOOKUP_REQUESTS,)
BOTH = INIT + LOOKUPS

ROWS = (
    Row(Type.CONNECT, session.connect, INIT),
    Row(Type.AUTH_RESPONSE, auth_response, LOOKUPS),
    Row(Type.PING, ping, BOTH),
    Row(Type.PONG, pong, BOTH),
    Row(Type.LOOKUP, metadata.lookup, LOOKUPS),
    Row(Type.PARTITIONED_METADATA, metadata.partitioned_metadata, LOOKUPS),
    Row(Type.GET_SCHEMA, metadata.get_schema, LOOKUPS),
    Row(Type.GET_TOPICS_OF_NAMESPACE, metadata.get_topics, LOOKUPS),
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
