"""Credentials that the proxy sends to brokers: its own, and those of its clients."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from client.authentication.authentication import (
    Authentication,
    AuthenticationBasic,
    AuthenticationToken,
)
from client.exceptions import InvalidConfiguration
from server.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Callable

    from proxy.credential_keys import BrokerCredentials

_KEY = "brokerClientAuthenticationParameters"


class ForwardedCredentials:
    """The most recent credentials of a client, which the proxy forwards to brokers.

    Satisfies client.connection.connect_options.PassedOnCredentials. At most as many callbacks wait
    as the client has connections to brokers.

    Attributes:
        asks_client: Requests fresh credentials from the client if expired; False if still valid.

    Source: upstream ProxyConnection.getValidClientAuthData.
    """

    def __init__(self, method_name: str, data: bytes) -> None:
        self._method_name = method_name
        self._data = data
        self._waiting: set[Callable[[bytes], object]] = set()
        self.asks_client: Callable[[], bool] = _asks_nobody

    def __repr__(self) -> str:
        return f"<credentials of {self._method_name:.20}>"

    @property
    def method_name(self) -> str:
        """Name of the client's authentication method."""
        return self._method_name

    def auth_data(self) -> bytes:
        """Return the client's most recent credentials."""
        return self._data

    def give_valid(self, take: Callable[[bytes], object]) -> None:
        """Call ``take`` with valid credentials, after requesting new ones if they expired."""
        if self.asks_client():
            self._waiting.add(take)
        else:
            take(self._data)

    def renewed(self, data: bytes) -> None:
        """Store the client's new credentials, and pass them to all waiting callbacks."""
        self._data = data
        waiting, self._waiting = self._waiting, set()
        for take in waiting:
            take(data)

    def client_left(self) -> None:
        """Drop all waiting callbacks, and request no more credentials from the client."""
        self.asks_client = _asks_nobody
        self._waiting.clear()


def _asks_nobody() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class OriginalClient:
    """Identity of an authenticated client, as the proxy sends it to brokers.

    Attributes:
        role: The client's role.
        credentials: The client's credentials, if forwarded.
    """

    role: str
    credentials: ForwardedCredentials | None = field(default=None, repr=False)


class CertificateShown(Authentication):
    """Credentials of a proxy that authenticates at brokers only by its TLS certificate."""

    def __init__(self) -> None:
        """Create the credentials, which consist of no data."""

    @property
    def method_name(self) -> str:
        """Name of the authentication method in CONNECT, ``tls``."""
        return "tls"

    def auth_data(self) -> bytes:
        """Return no data, since the TLS handshake sends the certificate."""
        return b""


def broker_credentials(settings: BrokerCredentials | None) -> Authentication | None:
    """Return the proxy's own credentials for brokers; None if none are configured.

    Raises:
        StartError: The parameters do not match the kind.
    """
    if settings is None:
        return None
    if settings.kind == "tls":
        return CertificateShown()
    if settings.kind == "token":
        return AuthenticationToken(_token(settings.parameters))
    try:
        found = json.loads(settings.parameters)
        return AuthenticationBasic(found["userId"], found["password"])
    except (ValueError, KeyError, TypeError, InvalidConfiguration):
        raise StartError(
            f"{_KEY}: a user and a password are expected as a JSON object with userId and password"
        ) from None


def _token(parameters: str) -> str:
    """Return the token, or its location, that a parameter contains as a text or in a JSON object.

    A text is ``token:...`` or ``file:///...``.
    """
    if not parameters.lstrip().startswith("{"):
        return parameters
    try:
        return str(json.loads(parameters)["token"])
    except (ValueError, KeyError, TypeError):
        raise StartError(f"{_KEY}: a JSON object with a token is expected") from None
