"""The interface of authentication providers; each provider checks one kind of credentials."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping


class AuthenticationError(Exception):
    """The credentials do not prove the peer's identity.

    The reason is for the log. The peer receives only "Failed to authenticate", as from a real
    broker, so that guessing reveals nothing.

    Attributes:
        reason: A sentence, without any part of a credential.
        code: Upstream's error code in metrics; empty if no credentials were checked.
    """

    def __init__(self, reason: str, code: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


class ExpiredError(AuthenticationError):
    """The peer's credentials have expired."""


NO_METHOD = "none"
"""The method of a peer without credentials."""


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated peer: its role, how it was authenticated, and until when.

    Attributes:
        role: The role used for authorization.
        method: The authentication method; ``none`` for the anonymous role.
        expires_at_ms: When the credentials expire, in milliseconds since 1970; None for never.
        roles: All roles in the token; the role alone if there are no others.
    """

    role: str
    method: str
    expires_at_ms: int | None = None
    roles: frozenset[str] = field(default=frozenset())

    def __post_init__(self) -> None:
        if not self.roles:
            object.__setattr__(self, "roles", frozenset({self.role}))

    def expired(self, now_ms: int) -> bool:
        """Return True if the peer's credentials expired before ``now_ms``."""
        return self.expires_at_ms is not None and self.expires_at_ms < now_ms


Certificate: TypeAlias = "Mapping[str, Any]"
"""A peer's certificate, as ``ssl.SSLObject.getpeercert()`` returns it."""


class AuthenticationProvider(Protocol):
    """Authenticates peers by one kind of credentials.

    Attributes:
        method: Pulsar's name of the method, as in CONNECT: ``token``, ``tls``, ``basic``.
        name: The name of the corresponding class in Pulsar, for metrics.

    Source: upstream AuthenticationProvider.
    """

    method: str
    name: str

    def authenticate(self, data: bytes, certificate: Certificate | None) -> Principal:
        """Check credentials without waiting for I/O, and return the authenticated peer.

        Args:
            data: The credentials of CONNECT or AUTH_RESPONSE.
            certificate: The peer's trusted certificate, if any.

        Raises:
            AuthenticationError: The credentials are not accepted.
        """

    def http_data(self, headers: Mapping[str, str]) -> bytes:
        """Return the credentials in an HTTP request's headers, as ``authenticate`` takes them.

        Raises:
            AuthenticationError: The request has no credentials of this method.
        """
