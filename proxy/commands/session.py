"""The handler of CONNECT, which opens a client's lookup connection or its pipe to a broker."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from limiter.flow.causes import PauseCause
from proto.commands import NO_REQUEST, error_command, with_body
from proto.errors import RemoteProtocolError
from proto.version import PROTOCOL_VERSION, SERVER_VERSION
from proxy.cnx import ProxyConnectionState
from proxy.credentials import ForwardedCredentials, OriginalClient
from proxy.pipe.direct_handler import UnavailableTargetError, set_known_flags
from server.authentication.handshake import shown_method, when_checked
from server.authentication.providers import AuthenticationError
from server.authentication.session import ClientSession, CredentialRefresh, fail_authentication
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from proxy.cnx import ClientAuthentication, ProxyConnection

OLDEST_PROTOCOL_VERSION = 10
"""Older clients cannot be proxied: upstream closes their connections."""
BEHIND_A_PROXY = "Must not provide proxyVersion"
"""A real proxy accepts no other proxy as its client."""


def connect(cnx: ProxyConnection, command: pb.BaseCommand) -> None:
    """Handle a client's CONNECT: accept lookups, or open a pipe to the broker that it names."""
    request = with_body(command, "connect").connect
    cnx.client_version = request.client_version
    if request.protocol_version < OLDEST_PROTOCOL_VERSION:
        raise RemoteProtocolError(
            f"protocol version {request.protocol_version} is older than the proxy can serve"
        )
    if request.HasField("proxy_version") and cnx.parts.rules.refuses_proxies:
        cnx.send(error_command(NO_REQUEST, pb.NotAllowedError, BEHIND_A_PROXY))
        cnx.close()
        return
    by = cnx.parts.authentication
    if by is None:
        _connect(cnx, request)
        return
    shown = [(shown_method(request), request.auth_data)]
    when_checked(cnx, by.service, shown, partial(_connect, cnx, request))


def _connect(cnx: ProxyConnection, request: pb.CommandConnect) -> None:
    authentication = cnx.parts.authentication
    if authentication is not None and not _authenticate(cnx, request, authentication):
        cnx.parts.connection_counters.create_fail += 1
        return
    if request.HasField("proxy_to_broker_url"):
        cnx.state = ProxyConnectionState.PROXY_CONNECTING_TO_BROKER
        cnx.becomes_pipe()
        cnx.gate.close_for(PauseCause.CONNECTING_TO_BROKER)
        cnx.requests.tasks.start(NO_REQUEST, partial(_open_pipe, cnx, request))
    else:
        _answer_lookups(cnx, request)


def _authenticate(
    cnx: ProxyConnection, request: pb.CommandConnect, by: ClientAuthentication
) -> bool:
    method = shown_method(request)
    try:
        principal = by.service.authenticate(method, request.auth_data, cnx.peer_certificate())
    except AuthenticationError as error:
        fail_authentication(cnx, error.reason)
        return False
    cnx.session = ClientSession(principal)
    if by.forwards_credentials:
        shown = ForwardedCredentials(method, request.auth_data)
        cnx.original = OriginalClient(principal.role, shown)
    else:
        cnx.original = OriginalClient(principal.role)
    return True


def _for_the_client(
    cnx: ProxyConnection, request: pb.CommandConnect, by: ClientAuthentication
) -> None:
    """Connect to brokers in the client's name, and watch for its credentials to expire."""
    if cnx.session is None or cnx.original is None:
        return
    cnx.brokers = by.connections_for(cnx.original)
    spoken = min(request.protocol_version, PROTOCOL_VERSION)
    refreshes = request.feature_flags.supports_auth_refresh
    refresh = _watch_credentials(cnx, cnx.session, by, spoken if refreshes else None)
    forwarded = cnx.original.credentials
    if forwarded is not None:
        forwarded.asks_client = refresh.ask_if_expired
        refresh.renewed = forwarded.renewed


def _watch_credentials(
    cnx: ProxyConnection, session: ClientSession, by: ClientAuthentication, spoken: int | None
) -> CredentialRefresh:
    clock = cnx.parts.flow.clock
    cnx.refresh = CredentialRefresh(
        cnx, session, by.service, by.refresh_seconds, clock, protocol_version=spoken
    )
    return cnx.refresh


def _answer_lookups(cnx: ProxyConnection, request: pb.CommandConnect) -> None:
    parts = cnx.parts
    if parts.authentication is not None:
        _for_the_client(cnx, request, parts.authentication)
    # An authenticated client counts as a single client: brokers learn of no client behind it.
    if request.HasField("proxy_version") and cnx.session is None:
        cnx.stands_for_many()
        parts.flights.exempt_from_quota(cnx)
    cnx.state = ProxyConnectionState.PROXY_LOOKUP_REQUESTS
    parts.connection_counters.create_success += 1
    connected = pb.CommandConnected(
        server_version=SERVER_VERSION,
        protocol_version=min(request.protocol_version, PROTOCOL_VERSION),
        max_message_size=parts.rules.announced_message_bytes,
    )
    set_known_flags(connected.feature_flags, topic_watchers=False)
    cnx.send(pb.BaseCommand(type=pb.BaseCommand.CONNECTED, connected=connected))


async def _open_pipe(cnx: ProxyConnection, request: pb.CommandConnect) -> None:
    """Turn the connection into a pipe to the broker that the client names, or close it."""
    counters, rules = cnx.parts.connection_counters, cnx.parts.rules
    try:
        await cnx.parts.direct_handler.open(cnx, request, cnx.original)
    except RequestError as error:
        counters.create_fail += 1
        if rules.tells_unavailable_targets or not isinstance(error, UnavailableTargetError):
            cnx.send(error_command(NO_REQUEST, error.server_error, error.message))
        cnx.close()
    except Exception:
        asyncio.get_running_loop().call_soon(cnx.close)  # After the answer to the internal error.
        raise
    else:
        counters.create_success += 1
        cnx.state = ProxyConnectionState.PROXY_CONNECTION_TO_BROKER
        if rules.ends_expired_pipes:
            _end_with_credentials(cnx)
        cnx.gate.open_for(PauseCause.CONNECTING_TO_BROKER)


def _end_with_credentials(cnx: ProxyConnection) -> None:
    """Close the pipe when its client's credentials expire, so that the client reconnects.

    A broker that received the client's credentials requests fresh ones through the pipe instead.
    """
    by = cnx.parts.authentication
    if by is not None and cnx.session is not None and not by.forwards_credentials:
        _watch_credentials(cnx, cnx.session, by, spoken=None)
