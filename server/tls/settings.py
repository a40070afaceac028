"""The settings of TLS as models: of ports that accept, and of connections to brokers."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from server.tls.ciphers import CipherChoice

NEWEST_PROTOCOLS = ("TLSv1.2", "TLSv1.3")
"""The protocols that there are here, the oldest first; no others are spoken."""


class TlsFiles(BaseModel):
    """The PEM files of one side, and how Pulsar's keys for them begin.

    Attributes:
        prefix: ``tls`` or ``brokerClient``.
        certificate: Its certificate, and those that sign it; empty for none.
        key: The certificate's private key, without a passphrase.
        trust: Certificates of those who may sign the other side's; empty for none of its own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

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
        """Return the files there are, by their configuration keys."""
        files = {
            self.certificate_key: self.certificate,
            self.key_key: self.key,
            self.trust_key: self.trust,
        }
        return {key: path for key, path in files.items() if path}


class _TlsSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    files: TlsFiles
    protocols: tuple[str, ...] = NEWEST_PROTOCOLS
    """Of NEWEST_PROTOCOLS those that are spoken, the oldest first; never empty."""
    ciphers: CipherChoice = CipherChoice()
    refresh_seconds: int = 300
    """tlsCertRefreshCheckDurationSec: how often files are looked at; 0: for each connection."""


class ServerTlsSettings(_TlsSettings):
    """The TLS of a port."""

    requires_client_certificate: bool = False
    """tlsRequireTrustedClientCertOnConnect."""
    asks_for_client_certificate: bool = False
    """A client may show a certificate; one that nobody trusts ends the handshake.

    It does not where tlsAllowInsecureConnection is set: none is asked for then, and none proves
    anything. Differs: upstream takes any certificate then, and believes the name in it.
    """
    handshake_seconds: float = 10.0
    """floodgateTlsHandshakeTimeoutMs."""


class ClientTlsSettings(_TlsSettings):
    """The TLS of connections to brokers."""

    allows_insecure: bool = False
    """tlsAllowInsecureConnection: whoever signed a broker's certificate."""
    verifies_host_name: bool = False
    """tlsHostnameVerificationEnabled: the certificate names the host that was asked for."""
