"""TLS settings as models: for accepting ports, and for connections to brokers."""

from __future__ import annotations

from dataclasses import dataclass

from server.tls.ciphers import CipherChoice

NEWEST_PROTOCOLS = ("TLSv1.2", "TLSv1.3")
"""The supported protocols, oldest first."""
ANY_CIPHERS = CipherChoice()


@dataclass(frozen=True, kw_only=True)
class TlsFiles:
    """PEM files of one side, and the prefix of Pulsar's keys for them.

    Attributes:
        prefix: ``tls`` or ``brokerClient``.
        certificate: Its certificate, with intermediate certificates; empty for none.
        key: The certificate's private key, without a passphrase.
        trust: Trusted certificates for verifying the other side; empty for none of its own.
    """

    prefix: str = "tls"
    certificate: str = ""
    key: str = ""
    trust: str = ""

    @property
    def certificate_key(self) -> str:
        """The configuration key of the certificate."""
        return f"{self.prefix}CertificateFilePath"

    @property
    def key_key(self) -> str:
        """The configuration key of the private key."""
        return f"{self.prefix}KeyFilePath"

    @property
    def trust_key(self) -> str:
        """The configuration key of the trusted certificates."""
        return f"{self.prefix}TrustCertsFilePath"

    def named(self) -> dict[str, str]:
        """Return the configured files, by their configuration keys."""
        files = {
            self.certificate_key: self.certificate,
            self.key_key: self.key,
            self.trust_key: self.trust,
        }
        return {key: path for key, path in files.items() if path}


@dataclass(frozen=True, kw_only=True)
class _TlsSettings:
    files: TlsFiles
    protocols: tuple[str, ...] = NEWEST_PROTOCOLS
    """Allowed protocols of NEWEST_PROTOCOLS, oldest first; never empty."""
    ciphers: CipherChoice = ANY_CIPHERS
    refresh_seconds: int = 300
    """tlsCertRefreshCheckDurationSec: interval of checking files; 0: for each connection."""


@dataclass(frozen=True, kw_only=True)
class ServerTlsSettings(_TlsSettings):
    """The TLS of a port."""

    requires_client_certificate: bool = False
    """tlsRequireTrustedClientCertOnConnect."""
    asks_for_client_certificate: bool = False
    """A client may show a certificate; an untrusted certificate ends the handshake.

    Not with tlsAllowInsecureConnection: then no certificate is requested, and none proves anything.
    Differs: upstream then accepts any certificate, and trusts the name in it.
    """
    handshake_seconds: float = 10.0
    """floodgateTlsHandshakeTimeoutMs."""


@dataclass(frozen=True, kw_only=True)
class ClientTlsSettings(_TlsSettings):
    """The TLS of connections to brokers."""

    allows_insecure: bool = False
    """tlsAllowInsecureConnection: a broker's certificate may have any issuer."""
    verifies_host_name: bool = False
    """tlsHostnameVerificationEnabled: the certificate must name the requested host."""
