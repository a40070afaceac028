"""Mutual TLS: the common name of a client's certificate is its role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.authentication.errors import AuthenticationError
from server.authentication.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from server.authentication.providers import Certificate


class CertificateProvider:
    """Takes the name of a certificate that TLS has checked.

    Attributes:
        method: ``tls``.

    Source: upstream AuthenticationProviderTls.
    """

    method = "tls"

    def authenticate(self, data: bytes, certificate: Certificate | None) -> Principal:
        """See AuthenticationProvider; the data of CONNECT says nothing."""
        if not certificate:
            raise AuthenticationError("Failed to get TLS certificates from client")
        for part in certificate.get("subject", ()):
            for name, value in part:
                if name == "commonName" and value:
                    return Principal(value, self.method)
        raise AuthenticationError("Client unable to authenticate with TLS certificate")

    def http_data(self, headers: Mapping[str, str]) -> bytes:
        """See AuthenticationProvider: a certificate is with the connection."""
        return b""
