"""Mutual TLS: the common name of a client's certificate as its role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.authentication.errors import AuthenticationError
from server.authentication.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from server.authentication.providers import Certificate


class CertificateProvider:
    """Takes the role from a certificate verified by TLS.

    Attributes:
        method: ``tls``.
        name: See AuthenticationProvider.

    Source: upstream AuthenticationProviderTls.
    """

    method = "tls"
    name = "AuthenticationProviderTls"

    def authenticate(self, data: bytes, certificate: Certificate | None) -> Principal:
        """See AuthenticationProvider; the data of CONNECT is ignored."""
        if not certificate:
            raise AuthenticationError("Failed to get TLS certificates from client", "INVALID_CERTS")
        for part in certificate.get("subject", ()):
            for name, value in part:
                if name == "commonName" and value:
                    return Principal(value, self.method)
        raise AuthenticationError(
            "Client unable to authenticate with TLS certificate", "INVALID_CN"
        )

    def http_data(self, headers: Mapping[str, str]) -> bytes:
        """See AuthenticationProvider: the certificate comes with the connection."""
        return b""
