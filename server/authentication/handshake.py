"""Authentication of a CONNECT: the peer's credentials, and a proxy's right to act for a client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import proto.PulsarApi_pb2 as pb
from limiter.flow.causes import PauseCause
from proto.commands import NO_REQUEST
from server.authentication.providers import NO_METHOD, Principal
from server.authentication.session import ClientSession
from server.connection.request_errors import RequestError
from server.limits.connections import address_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from limiter.flow.read_gate import ReadGate
    from proto.transport.frame_intake import FrameIntake
    from server.authentication.providers import Certificate
    from server.authentication.service import AuthenticationService
    from server.connection.permitted_requests import PermittedRequests

INVALID_ROLES = "Invalid roles."
NO_PROXY_ROLE = "Must not set proxyVersion without connecting as a ProxyRole."
WEBSOCKET_PRINCIPAL = "__websocket_dummy_original_principle"
"""The original principal named by a WebSocket proxy for an unknown client."""
_OLD_METHODS = {pb.AuthMethodYcaV1: "ycav1", pb.AuthMethodAthens: "athens"}


@dataclass(frozen=True, slots=True)
class ProxyRules:
    """The rules by which a broker trusts a proxy to act for its clients.

    Attributes:
        roles: The roles of proxies (proxyRoles).
        enforced: Peers with these roles must name a client, and no others may; True with
            authorization.
        checks_original: A proxy must pass on the client's own credentials
            (authenticateOriginalAuthData).
    """

    roles: frozenset[str] = frozenset()
    enforced: bool = False
    checks_original: bool = False

    def believes(self, session: ClientSession) -> bool:
        """Return True if the peer has a proxy role, or if no proxy roles are configured."""
        return not self.roles or session.principal.role in self.roles


@dataclass(frozen=True, slots=True)
class ConnectRules:
    """The rules by which a broker authenticates the peers of its connections.

    Attributes:
        service: Checks credentials.
        proxies: The rules for proxies.
        refresh_seconds: Seconds between checks for expiry (authenticationRefreshCheckSeconds).
    """

    service: AuthenticationService
    proxies: ProxyRules = ProxyRules()
    refresh_seconds: float = 60.0


def shown_method(connect: pb.CommandConnect) -> str:
    """Return the authentication method named in a CONNECT; old clients send a number instead."""
    if connect.HasField("auth_method_name"):
        return connect.auth_method_name
    return _OLD_METHODS.get(connect.auth_method, NO_METHOD)


def credentials_in(connect: pb.CommandConnect) -> Iterator[tuple[str, bytes]]:
    """Yield method and credentials from a CONNECT: the peer's, then those of a client behind it."""
    yield shown_method(connect), connect.auth_data
    if connect.original_auth_data:
        yield _original_credentials(connect)


def _original_credentials(connect: pb.CommandConnect) -> tuple[str, bytes]:
    data = connect.original_auth_data.encode("utf-8", "surrogatepass")
    return connect.original_auth_method or NO_METHOD, data


def session_of(
    connect: pb.CommandConnect,
    certificate: Certificate | None,
    service: AuthenticationService,
    rules: ProxyRules,
) -> ClientSession:
    """Authenticate the sender of a CONNECT to a broker, and return its session.

    Raises:
        AuthenticationError: The credentials are not accepted.
        RequestError: The peer names a client without being a proxy, or is a proxy without one.

    Source: upstream ServerCnx.handleConnect and completeConnect.
    """
    method = shown_method(connect)
    principal = service.authenticate(method, connect.auth_data, certificate)
    session = ClientSession(principal, proxy_version=connect.HasField("proxy_version"))
    # An anonymous peer's original principal is ignored.
    if principal.method != NO_METHOD and connect.HasField("original_principal"):
        _take_original(session, connect, certificate, service, rules)
    if rules.enforced:
        check_proxy_role(session, rules)
    return session


def _take_original(
    session: ClientSession,
    connect: pb.CommandConnect,
    certificate: Certificate | None,
    service: AuthenticationService,
    rules: ProxyRules,
) -> None:
    named = connect.original_principal
    if not rules.checks_original or named == WEBSOCKET_PRINCIPAL:
        if named.strip():
            session.original = Principal(named, connect.original_auth_method or NO_METHOD)
        return
    method, data = _original_credentials(connect)
    original = service.authenticate(method, data, certificate)
    if original.method == NO_METHOD:
        session.principal = original  # as upstream: anonymous behind an anonymous proxy
    session.original, session.original_is_proved = original, original.method != NO_METHOD


def check_proxy_role(session: ClientSession, rules: ProxyRules) -> None:
    """Refuse a proxy that names no client or another proxy, and a client posing as a proxy.

    Raises:
        RequestError: AuthorizationError, with a real broker's text.

    Source: upstream AuthorizationService.isValidOriginalPrincipal.
    """
    original = session.original.role if session.original is not None else ""
    is_proxy = session.principal.role in rules.roles
    invalid = (not original or original in rules.roles) if is_proxy else bool(original)
    if invalid:
        raise RequestError(pb.AuthorizationError, INVALID_ROLES)
    if session.proxy_version and not is_proxy:
        raise RequestError(pb.AuthorizationError, NO_PROXY_ROLE)


class Checked(Protocol):
    """Interface for a connection that pauses reading while the peer's credentials are checked."""

    peer: str
    closed: bool
    gate: ReadGate
    intake: FrameIntake
    requests: PermittedRequests


def when_checked(
    cnx: Checked,
    service: AuthenticationService,
    shown: Iterable[tuple[str, bytes]],
    go_on: Callable[[], object],
) -> None:
    """Call ``go_on`` once a CONNECT's credentials are checked, at once if no hash is needed.

    Args:
        cnx: The connection of the CONNECT.
        service: Checks credentials.
        shown: Pairs of method and credentials in the CONNECT.
        go_on: Authenticates the CONNECT, which takes no time once the checks are done.
    """
    slow = [one for one in shown if service.takes_time(*one)]
    if not slow:
        go_on()
        return

    async def check() -> None:
        for method, data in slow:
            await service.prepare(method, data, address_of(cnx.peer))
        if not cnx.closed:
            cnx.intake.held = False
            go_on()
            cnx.gate.open_for(PauseCause.CHECKING_CREDENTIALS)

    cnx.intake.held = True  # Frames after CONNECT require its admission.
    cnx.gate.close_for(PauseCause.CHECKING_CREDENTIALS)
    cnx.requests.tasks.start(NO_REQUEST, check)
