"""The table of handlers for the broker's commands, and the handler of CONNECT."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.cnx import ServerCnxState
from broker.commands import (
    consuming,
    discovery,
    producing,
    schemas,
    subscribing,
    transactions,
)
from proto.commands import with_body
from proto.version import PROTOCOL_VERSION, SERVER_VERSION
from server.authentication.handshake import credentials_in, session_of, when_checked
from server.authentication.providers import AuthenticationError
from server.authentication.session import (
    CredentialRefresh,
    auth_response,
    fail_authentication,
    refuse_connection,
)
from server.connection.command_table import CommandTable, FrameRow, Row
from server.connection.request_errors import RequestError
from server.connection.served_connection import ping, pong

if TYPE_CHECKING:
    from broker.cnx import ServerCnx
    from server.authentication.handshake import ConnectRules

logger = logging.getLogger(__name__)


def connect(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Authenticate a client, and answer CONNECT with protocol version and feature flags."""
    request = with_body(command, "connect").connect
    rules = cnx.parts.authentication
    if rules is None:
        _connect(cnx, request)
        return
    when_checked(cnx, rules.service, credentials_in(request), partial(_connect, cnx, request))


def _connect(cnx: ServerCnx, request: pb.CommandConnect) -> None:
    if cnx.parts.authentication is not None and not _authenticate(
        cnx, request, cnx.parts.authentication
    ):
        cnx.parts.counters.create_fail += 1
        return
    cnx.client_version = request.client_version
    cnx.protocol_version = request.protocol_version
    if request.HasField("proxy_version") and _is_believed(cnx):
        # The proxy serves many clients and ensures fairness between them.
        cnx.stands_for_many()
        cnx.parts.memory.exempt_from_quota(cnx)
    cnx.state = ServerCnxState.CONNECTED
    cnx.parts.counters.create_success += 1
    config = cnx.parts.config
    connected = pb.CommandConnected(
        server_version=SERVER_VERSION,
        protocol_version=min(request.protocol_version, PROTOCOL_VERSION),
        max_message_size=config.max_message_size,
    )
    watchers = config.announces_topic_watchers
    flags = connected.feature_flags
    flags.supports_topic_watchers = watchers
    flags.supports_get_partitioned_metadata_without_auto_creation = True
    flags.supports_repl_dedup_by_lid_and_eid = True
    flags.supports_topic_watcher_reconcile = watchers
    cnx.send(pb.BaseCommand(type=pb.BaseCommand.CONNECTED, connected=connected))


def _is_believed(cnx: ServerCnx) -> bool:
    rules = cnx.parts.authentication
    return rules is None or cnx.session is None or rules.proxies.believes(cnx.session)


def _authenticate(cnx: ServerCnx, request: pb.CommandConnect, rules: ConnectRules) -> bool:
    try:
        session = session_of(request, cnx.peer_certificate(), rules.service, rules.proxies)
    except AuthenticationError as error:
        fail_authentication(cnx, error.reason)
        return False
    except RequestError as error:
        logger.warning("closing %s: %s", cnx.peer, error.message)
        refuse_connection(cnx, error.server_error, error.message)
        return False
    spoken = min(request.protocol_version, PROTOCOL_VERSION)
    refreshes = request.feature_flags.supports_auth_refresh
    cnx.session = session
    cnx.refresh = CredentialRefresh(
        cnx,
        session,
        rules.service,
        rules.refresh_seconds,
        rules.service.clock,
        protocol_version=spoken if refreshes else None,
    )
    return True


Type = pb.BaseCommand
START, CONNECTED = (ServerCnxState.START,), (ServerCnxState.CONNECTED,)
BOTH = START + CONNECTED

COMMANDS = CommandTable(
    (
        # A second CONNECT closes, as recorded.
        Row(Type.CONNECT, connect, START),
        Row(Type.AUTH_RESPONSE, auth_response, CONNECTED),
        Row(Type.PING, ping, BOTH),
        Row(Type.PONG, pong, BOTH),
        Row(Type.LOOKUP, discovery.lookup, CONNECTED),
        Row(Type.PARTITIONED_METADATA, discovery.partitioned_metadata, CONNECTED),
        Row(Type.GET_TOPICS_OF_NAMESPACE, discovery.get_topics, CONNECTED),
        Row(Type.WATCH_TOPIC_LIST, discovery.watch, CONNECTED),
        Row(Type.WATCH_TOPIC_LIST_CLOSE, discovery.close_watch, CONNECTED),
        Row(Type.PRODUCER, producing.producer, CONNECTED),
        Row(Type.CLOSE_PRODUCER, producing.close_producer, CONNECTED),
        Row(Type.SUBSCRIBE, subscribing.subscribe, CONNECTED),
        Row(Type.FLOW, consuming.flow, CONNECTED),
        Row(Type.ACK, consuming.ack, CONNECTED),
        Row(Type.REDELIVER_UNACKNOWLEDGED_MESSAGES, consuming.redeliver, CONNECTED),
        Row(Type.CLOSE_CONSUMER, consuming.close_consumer, CONNECTED),
        Row(Type.UNSUBSCRIBE, consuming.unsubscribe, CONNECTED),
        Row(Type.SEEK, consuming.seek, CONNECTED),
        Row(Type.GET_LAST_MESSAGE_ID, consuming.last_message_id, CONNECTED),
        Row(Type.CONSUMER_STATS, consuming.consumer_stats, CONNECTED),
        Row(Type.GET_SCHEMA, schemas.get_schema, CONNECTED),
        Row(Type.GET_OR_CREATE_SCHEMA, schemas.get_or_create_schema, CONNECTED),
        Row(Type.NEW_TXN, transactions.refuse, CONNECTED),
        Row(Type.ADD_PARTITION_TO_TXN, transactions.refuse, CONNECTED),
        Row(Type.ADD_SUBSCRIPTION_TO_TXN, transactions.refuse, CONNECTED),
        Row(Type.END_TXN, transactions.refuse, CONNECTED),
        Row(Type.END_TXN_ON_PARTITION, transactions.end_on_partition, CONNECTED),
        Row(Type.END_TXN_ON_SUBSCRIPTION, transactions.end_on_subscription, CONNECTED),
        Row(Type.TC_CLIENT_CONNECT_REQUEST, transactions.refuse, CONNECTED),
    ),
    handshake=START,
    frame_rows=(FrameRow(Type.SEND, producing.send, CONNECTED),),
)
