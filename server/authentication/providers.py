"""The interface of a provider: it knows one kind of credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from server.authentication.principal import Principal

Certificate: TypeAlias = "Mapping[str, Any]"
"""A peer's certificate, as ``ssl.SSLObject.getpeercert()`` returns it."""


class AuthenticationProvider(Protocol):
    """Tells who has shown certain credentials.

    Attributes:
        method: Pulsar's name of the method, as CONNECT has it: ``token``, ``tls``, ``basic``.

    Source: upstream AuthenticationProvider.
    """

    method: str

    def authenticate(self, data: bytes, certificate: Certificate | None) -> Principal:
        """Return whose credentials these are; at once, without waiting for anybody.

        Args:
            data: The credentials of CONNECT or AUTH_RESPONSE.
            certificate: The peer's, if it showed one that is trusted.

        Raises:
            AuthenticationError: They prove nothing.
        """

    def http_data(self, headers: Mapping[str, str]) -> bytes:
        """Return the credentials of an HTTP request, for ``authenticate``.

        Raises:
            AuthenticationError: There are none of this method.
        """
