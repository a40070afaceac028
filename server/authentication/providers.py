"""Interface of a provider of authentication, for one kind of credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from server.authentication.principal import Principal

Certificate: TypeAlias = "Mapping[str, Any]"
"""A peer's certificate, as ``ssl.SSLObject.getpeercert()`` returns it."""


class AuthenticationProvider(Protocol):
    """Authenticates peers by one kind of credentials.

    Attributes:
        method: Pulsar's name of the method, as in CONNECT: ``token``, ``tls``, ``basic``.
        name: Its class upstream, for metrics.

    Source: upstream AuthenticationProvider.
    """

    method: str
    name: str

    def authenticate(self, data: bytes, certificate: Certificate | None) -> Principal:
        """Return the principal of credentials, without waiting.

        Args:
            data: The credentials of CONNECT or AUTH_RESPONSE.
            certificate: The peer's trusted certificate, if any.

        Raises:
            AuthenticationError: The credentials are not accepted.
        """

    def http_data(self, headers: Mapping[str, str]) -> bytes:
        """Return the credentials of an HTTP request, for ``authenticate``.

        Raises:
            AuthenticationError: The request has none of this method.
        """
