"""TLS settings of a server's ports, and of connections to brokers."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from typing import NamedTuple

OFFERED_OF_TLS13 = frozenset(
    {"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"}
)
"""OpenSSL's default suites of TLS 1.3."""

_IANA = re.compile(r"(?:TLS|SSL)_(\w+)_WITH_(\w+)", re.ASCII)
_ONE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)
_EXCHANGES = {"RSA": "", "DH-anon": "ADH", "ECDH-anon": "AECDH"}
_SIZED = re.compile(r"\b(AES|CAMELLIA|ARIA)-(\d+)")


class CipherChoice(NamedTuple):
    """The cipher suites allowed for a TLS connection.

    Java's ``TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`` is OpenSSL's
    ``ECDHE-RSA-AES128-GCM-SHA256``. The suites of TLS 1.3 have a single name, and Python cannot
    choose among them: all or none are offered.

    Attributes:
        openssl: The suites of TLS 1.2 as OpenSSL's list; empty for OpenSSL's default.
        tls12: Whether any suite of TLS 1.2 is allowed.
        tls13: Whether the suites of TLS 1.3 are allowed.
    """

    openssl: str = ""
    tls12: bool = True
    tls13: bool = True


def openssl_name(name: str) -> str:
    """Return OpenSSL's name of a TLS 1.2 cipher suite, which may be given by its Java name."""
    iana = _IANA.fullmatch(name)
    if iana is None:
        return name
    exchange, cipher = (part.replace("_", "-") for part in iana.groups())
    exchange = _EXCHANGES.get(exchange, exchange)
    cipher = cipher.replace("3DES-EDE-CBC", "DES-CBC3").replace("-CBC-", "-")
    cipher = cipher.replace("CHACHA20-POLY1305-SHA256", "CHACHA20-POLY1305")
    cipher = _SIZED.sub(r"\1\2", cipher).replace("CCM-8", "CCM8")
    return f"{exchange}-{cipher}" if exchange else cipher


def chosen(names: tuple[str, ...]) -> CipherChoice:
    """Return the CipherChoice of the named cipher suites; without names, OpenSSL's default.

    Raises:
        ValueError: OpenSSL has no suite of a name; the message is the name.
    """
    if not names:
        return CipherChoice()
    older = {name: openssl_name(name) for name in names if name not in OFFERED_OF_TLS13}
    for name, own in older.items():
        if not _is_known(own):
            raise ValueError(name)
    return CipherChoice(":".join(older.values()), bool(older), len(older) < len(names))


def _is_known(name: str) -> bool:
    """Return True if OpenSSL supports the TLS 1.2 cipher suite with this name.

    A list of suites does not tell: OpenSSL skips unsupported suites in it.
    """
    if not _ONE_NAME.fullmatch(name) or name.startswith("TLS_"):
        return False
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(name)
    except ssl.SSLError:
        return False
    return True


NEWEST_PROTOCOLS = ("TLSv1.2", "TLSv1.3")
"""The supported protocols, oldest first."""
ANY_CIPHERS = CipherChoice()


@dataclass(frozen=True, kw_only=True)
class TlsFiles:
    """The PEM files for the TLS of a port, or of connections to brokers.

    Attributes:
        prefix: The beginning of the files' configuration keys: ``tls`` or ``brokerClient``.
        certificate: File of the certificate and intermediate certificates; empty for none.
        key: File of the certificate's private key, without a passphrase.
        trust: File of the certificates that sign trusted peers' certificates; empty for none.
    """

    prefix: str = "tls"
    certificate: str = ""
    key: str = ""
    trust: str = ""

    @property
    def certificate_key(self) -> str:
        """The configuration key of the certificate's file."""
        return f"{self.prefix}CertificateFilePath"

    @property
    def key_key(self) -> str:
        """The configuration key of the private key's file."""
        return f"{self.prefix}KeyFilePath"

    @property
    def trust_key(self) -> str:
        """The configuration key of the file of trusted certificates."""
        return f"{self.prefix}TrustCertsFilePath"

    def named(self) -> dict[str, str]:
        """Return the paths of the configured files, by configuration key."""
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
    """The TLS settings of a port."""

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
    """The TLS settings of connections to brokers."""

    allows_insecure: bool = False
    """tlsAllowInsecureConnection: a broker's certificate may have any issuer."""
    verifies_host_name: bool = False
    """tlsHostnameVerificationEnabled: the certificate must name the requested host."""
