"""TLS contexts with trusted server certificates and the client's own certificate."""

from __future__ import annotations

import ssl

import certifi

from client.authentication.authentication import Authentication
from client.exceptions import InvalidConfiguration


class AuthenticationTLS(Authentication):
    """A client certificate, which authenticates the client to the server (mutual TLS).

    Args:
        certificate_path: File of the certificate and its chain (PEM).
        private_key_path: File of the private key (PEM, without a passphrase).

    Attributes:
        certificate_path: As given.
        private_key_path: As given.
    """

    def __init__(self, certificate_path: str, private_key_path: str) -> None:
        for name, path in (
            ("certificate_path", certificate_path),
            ("private_key_path", private_key_path),
        ):
            if not isinstance(path, str):
                raise InvalidConfiguration(f"{name} is a str, not {type(path).__name__}")
        self.certificate_path = certificate_path
        self.private_key_path = private_key_path

    @property
    def method_name(self) -> str:
        """The name that Pulsar's servers use for this authentication method."""
        return "tls"

    def auth_data(self) -> bytes:
        """Return no bytes, because the TLS handshake transmits the certificate."""
        return b""


def tls_context(
    trust_certs_file_path: str | None,
    certificate: tuple[str, str] | None,
    *,
    allow_insecure: bool,
    validate_hostname: bool,
) -> ssl.SSLContext:
    """Return the TLS context for connections to ``pulsar+ssl://`` servers.

    Args:
        trust_certs_file_path: File of trusted CA certificates; None for those of the package
            certifi.
        certificate: Files of the client's own certificate and private key, or None.
        allow_insecure: Whether to accept any certificate.
        validate_hostname: Whether the server's certificate must be valid for the requested host.

    Raises:
        InvalidConfiguration: A file is unreadable, or holds no certificate or key.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = validate_hostname and not allow_insecure
    context.verify_mode = ssl.CERT_NONE if allow_insecure else ssl.CERT_REQUIRED
    trusted = trust_certs_file_path or certifi.where()
    try:
        context.load_verify_locations(trusted)
    except (OSError, ValueError) as error:
        raise InvalidConfiguration(
            f"tls_trust_certs_file_path {trusted!r:.200} cannot be used: {error}"
        ) from error
    if certificate is not None:
        try:
            # Never ask the terminal for a passphrase.
            context.load_cert_chain(*certificate, password=lambda: "")
        except (OSError, ValueError) as error:
            raise InvalidConfiguration(
                f"the certificate {certificate[0]!r:.200} with the key {certificate[1]!r:.200} "
                f"cannot be used: {error}"
            ) from error
    return context
