"""A connection's authenticated peers, and the renewal of their expired credentials."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import proto.PulsarApi_pb2 as pb
from limiter.clock import Timer
from proto.commands import NO_REQUEST, error_command, with_body
from proto.errors import RemoteProtocolError
from server.authentication.providers import AuthenticationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock
    from server.authentication.providers import Certificate, Principal
    from server.authentication.service import AuthenticationService

logger = logging.getLogger(__name__)

FAILED = "Failed to authenticate"
"""The text of a real broker and proxy, whatever the reason."""
REFRESH_DATA = b"PulsarAuthRefresh"
"""The data of a challenge that requests fresh credentials (upstream: REFRESH_AUTH_DATA)."""


@dataclass(slots=True)
class ClientSession:
    """The authenticated peer of a connection and, if it is a proxy, the client behind it.

    Attributes:
        principal: The peer itself: a client, or a proxy.
        original: The client behind a proxy; None without a proxy.
        original_is_proved: The client's own credentials were checked here; otherwise the proxy
            vouches for its role.
        proxy_version: The peer announced itself as a proxy.
    """

    principal: Principal
    original: Principal | None = None
    original_is_proved: bool = False
    proxy_version: bool = False

    @property
    def checked_roles(self) -> tuple[str, ...]:
        """The roles that must all be authorized: the peer's, and that of a client behind it."""
        if self.original is None:
            return (self.principal.role,)
        return (self.principal.role, self.original.role)

    @property
    def watched(self) -> Principal:
        """The peer whose expiry counts: a client authenticated here, else the connected peer."""
        if self.original is not None and self.original_is_proved:
            return self.original
        return self.principal

    def renew(self, fresh: Principal) -> bool:
        """Replace expired credentials by fresh ones; return False if their role differs."""
        before = self.watched.role
        if before and fresh.role != before:
            return False
        fresh = replace(fresh, role=before)
        if self.original_is_proved:
            self.original = fresh
        else:
            self.principal = fresh
        return True


class Challenged(Protocol):
    """An interface with the members of a connection that CredentialRefresh needs."""

    peer: str

    def send(self, command: pb.BaseCommand) -> None:
        """Queue a command for the peer."""

    def take_no_more(self) -> None:
        """Ignore all further frames from the peer."""

    def close(self) -> None:
        """Close the connection after all queued bytes have been sent."""


class Refreshed(Challenged, Protocol):
    """An interface of a connection whose peer may send fresh credentials.

    Attributes:
        refresh: Checks fresh credentials; None if authentication is off.
    """

    refresh: CredentialRefresh | None

    def peer_certificate(self) -> Certificate | None:
        """Return the peer's TLS certificate; None if the peer sent no trusted certificate."""


def auth_response(cnx: Refreshed, command: pb.BaseCommand) -> None:
    """Handle a peer's AUTH_RESPONSE, which contains fresh credentials.

    If authentication is off, the connection is closed with an error, as recorded of a real broker.
    """
    response = with_body(command, "authResponse").authResponse
    given = response.response
    if not (given.HasField("auth_data") and given.HasField("auth_method_name")):
        raise RemoteProtocolError("AUTH_RESPONSE without credentials")
    if cnx.refresh is None:
        fail_authentication(cnx, "AUTH_RESPONSE without authentication")
    else:
        cnx.refresh.answered(response, cnx.peer_certificate())


def fail_authentication(cnx: Challenged, reason: str) -> None:
    """Log why authentication failed, send the peer an error, and close the connection."""
    logger.warning("closing %s: %s: %s", cnx.peer, FAILED, reason)
    refuse_connection(cnx, pb.AuthenticationError, FAILED)


def refuse_connection(cnx: Challenged, code: pb.ServerError.ValueType, words: str) -> None:
    """Answer CONNECT or AUTH_RESPONSE with an error, and close the connection."""
    cnx.take_no_more()
    cnx.send(error_command(NO_REQUEST, code, words))
    cnx.close()


class CredentialRefresh:
    """Requests fresh credentials from a connection's peer once the old ones have expired.

    Credentials without an expiry need no timer.

    Args:
        cnx: The connection.
        session: The session of its peer.
        service: Checks fresh credentials.
        seconds: Seconds between checks for expiry (authenticationRefreshCheckSeconds).
        clock: The source of time.
        protocol_version: Sent in a challenge; None for a peer that cannot answer, as it did not
            announce supports_auth_refresh.

    Attributes:
        renewed: Called with accepted fresh credentials.

    Source: upstream ServerCnx.refreshAuthenticationCredentials.
    """

    def __init__(
        self,
        cnx: Challenged,
        session: ClientSession,
        service: AuthenticationService,
        seconds: float,
        clock: Clock,
        *,
        protocol_version: int | None,
    ) -> None:
        self._cnx = cnx
        self._session = session
        self._service = service
        self._seconds = seconds
        self._clock = clock
        self._protocol_version = protocol_version
        self._asked = False
        self.renewed: Callable[[bytes], object] = lambda _: None
        self._timer = Timer(clock)
        self._next = clock.now()
        self._arm()

    def stop(self) -> None:
        """Stop checking periodically whether the credentials expired; may be called repeatedly."""
        self._timer.stop()

    def answered(self, response: pb.CommandAuthResponse, certificate: Certificate | None) -> None:
        """Check the peer's fresh credentials; close the connection if they are refused."""
        self._asked = False
        watched = self._session.watched
        try:
            fresh = self._service.refreshed(watched, response.response.auth_data, certificate)
        except AuthenticationError as error:
            self.stop()
            fail_authentication(self._cnx, error.reason)
            return
        if not self._session.renew(fresh):
            self._close("the principal cannot change while credentials are refreshed")
            return
        self.renewed(response.response.auth_data)
        if self._session.watched.expires_at_ms is None:
            self.stop()
        elif not self._timer.armed:
            self._arm()

    def ask_if_expired(self) -> bool:
        """Request fresh credentials from the peer if its present credentials have expired.

        A peer that cannot send any is disconnected.

        Returns:
            True while fresh credentials are awaited.
        """
        if not self._session.watched.expired(self._clock.wall_ms()):
            return False
        if self._protocol_version is None:
            self._close("its credentials expired, and it cannot refresh them")
        elif not self._asked:
            self._ask(self._protocol_version)
        return True

    def _arm(self) -> None:
        if self._session.watched.expires_at_ms is None:
            return
        now = self._clock.now()
        # At a fixed rate from the start, as upstream.
        self._next += self._seconds * max(1, int((now - self._next) / self._seconds) + 1)
        self._timer.at(self._next, self._look)

    def _look(self) -> None:
        session = self._session
        if session.watched.expired(self._clock.wall_ms()):
            if session.original is not None and not session.original_is_proved:
                self._close("its proxy's credentials expired, and it does not forward a client's")
                return
            if self._protocol_version is None:
                self._close("its credentials expired, and it cannot refresh them")
                return
            if self._asked:
                self._close("its credentials expired, and it sent no fresh ones in time")
                return
            self._ask(self._protocol_version)
        self._arm()

    def _ask(self, protocol_version: int) -> None:
        self._asked = True
        logger.info("asking %s for fresh credentials", self._cnx.peer)
        challenge = pb.CommandAuthChallenge(protocol_version=protocol_version)
        challenge.challenge.auth_method_name = self._session.principal.method
        challenge.challenge.auth_data = REFRESH_DATA
        self._cnx.send(pb.BaseCommand(type=pb.BaseCommand.AUTH_CHALLENGE, authChallenge=challenge))

    def _close(self, reason: str) -> None:
        self.stop()
        logger.warning("closing %s: %s", self._cnx.peer, reason)
        self._cnx.take_no_more()
        self._cnx.close()
