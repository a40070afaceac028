"""CONNECT: the handshake of a client."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.cnx import ServerCnxState
from proto.commands import with_body
from proto.version import SERVER_VERSION
from server.authentication.handshake import credentials_in, session_of, when_checked
from server.authentication.providers import AuthenticationError
from server.authentication.session import CredentialRefresh, fail_authentication, refuse_connection
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from broker.cnx import ServerCnx
    from server.authentication.handshake import ConnectRules

logger = logging.getLogger(__name__)

PROTOCOL_VERSION = 21
"""Newest protocol version of this broker."""


def connect(cnx: ServerCnx, command: pb.BaseCommand) -> None:
    """Answer CONNECT with the lower protocol version and the broker's feature flags."""
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
    """Authenticate the client; refuse it and return False on failure."""
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
