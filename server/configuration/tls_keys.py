"""Pulsar's TLS keys as settings, for a server's ports and for connections to brokers.

Key stores (JKS, PKCS12) and custom factories are refused if TLS is enabled: ignoring them would
leave a server with other certificates than its operator believes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.tls.settings import (
    NEWEST_PROTOCOLS,
    OFFERED_OF_TLS13,
    CipherChoice,
    ClientTlsSettings,
    ServerTlsSettings,
    TlsFiles,
    chosen,
)

if TYPE_CHECKING:
    from server.configuration.known_keys import CheckedKeys

HANDSHAKE_KEY = "floodgateTlsHandshakeTimeoutMs"
REFRESH_KEY = "tlsCertRefreshCheckDurationSec"
_FACTORY = "org.apache.pulsar.common.util.DefaultPulsarSslFactory"
_TO_PEM = (
    "key stores (JKS, PKCS12) are not read; write certificate and key to PEM files (keytool "
    "-importkeystore -deststoretype PKCS12, then openssl pkcs12), name them by "
    "{0}CertificateFilePath, {0}KeyFilePath and {0}TrustCertsFilePath, and set the key to false"
)


def port_tls(checked: CheckedKeys, port_key: str, *, web: bool) -> ServerTlsSettings | None:
    """Return the TLS settings of a port; None if the port is disabled.

    Args:
        checked: The keys; errors become problems.
        port_key: The port's key.
        web: True for the web port, which has its own protocols and ciphers.
    """
    if checked.value(port_key) is None:
        return None
    _refuse_java(checked, "tls", "tlsEnabledWithKeyStore", "sslFactoryPlugin")
    files = _files(checked, "tls")
    if not (files.certificate and files.key):
        checked.refuse(
            f"{port_key} is set: {files.certificate_key} and {files.key_key} must name the "
            "certificate and its private key (PEM), or remove the port"
        )
    requires = checked.flag("tlsRequireTrustedClientCertOnConnect")
    if requires and not files.trust:
        checked.refuse(
            "tlsRequireTrustedClientCertOnConnect=true: tlsTrustCertsFilePath must name the "
            "certificates that sign clients' certificates (PEM)"
        )
    prefix = "webServiceTls" if web else "tls"
    protocols, ciphers = _spoken(checked, prefix)
    return ServerTlsSettings(
        files=files,
        protocols=protocols,
        ciphers=ciphers,
        refresh_seconds=checked.integer(REFRESH_KEY),
        requires_client_certificate=requires,
        asks_for_client_certificate=bool(files.trust)
        and not checked.flag("tlsAllowInsecureConnection"),
        handshake_seconds=checked.integer(HANDSHAKE_KEY) / 1000,
    )


def broker_tls(checked: CheckedKeys) -> ClientTlsSettings | None:
    """Return the TLS settings for connections to brokers; None if tlsEnabledWithBroker is off."""
    if not checked.flag("tlsEnabledWithBroker"):
        return None
    own = "brokerClient"
    _refuse_java(checked, own, "brokerClientTlsEnabledWithKeyStore", "brokerClientSslFactoryPlugin")
    files = _files(checked, own)
    if bool(files.certificate) != bool(files.key):
        given, missing = files.certificate_key, files.key_key
        if files.key:
            given, missing = missing, given
        checked.refuse(f"{given} is set: {missing} must name the other file of the pair (PEM)")
    protocols, ciphers = _spoken(checked, f"{own}Tls")
    return ClientTlsSettings(
        files=files,
        protocols=protocols,
        ciphers=ciphers,
        refresh_seconds=checked.integer(REFRESH_KEY),
        allows_insecure=checked.flag("tlsAllowInsecureConnection"),
        verifies_host_name=checked.flag("tlsHostnameVerificationEnabled"),
    )


def _files(checked: CheckedKeys, prefix: str) -> TlsFiles:
    return TlsFiles(
        prefix=prefix,
        certificate=checked.text(f"{prefix}CertificateFilePath") or "",
        key=checked.text(f"{prefix}KeyFilePath") or "",
        trust=checked.text(f"{prefix}TrustCertsFilePath") or "",
    )


def _refuse_java(checked: CheckedKeys, prefix: str, store_key: str, factory_key: str) -> None:
    if checked.flag(store_key):
        checked.refuse(f"{store_key}=true: {_TO_PEM.format(prefix)}")
    if checked.text(factory_key) not in (None, _FACTORY):
        checked.refuse(
            f"{factory_key} is set: a factory of Java's is not run here; name PEM files by "
            f"{prefix}CertificateFilePath and {prefix}KeyFilePath, and remove the key"
        )


def _spoken(checked: CheckedKeys, prefix: str) -> tuple[tuple[str, ...], CipherChoice]:
    """Return the TLS protocols and ciphers that the configuration allows; OpenSSL's by default."""
    protocols_key, ciphers_key = f"{prefix}Protocols", f"{prefix}Ciphers"
    protocols = _protocols(checked, protocols_key)
    ciphers = _ciphers(checked, ciphers_key)
    offered = {"TLSv1.2": ciphers.tls12, "TLSv1.3": ciphers.tls13}
    both = tuple(one for one in protocols if offered[one])
    if not both:
        checked.refuse(
            f"{ciphers_key} names no cipher of {', '.join(protocols)}, which {protocols_key} asks "
            "for; name ciphers of it, or remove one of the keys"
        )
    return both or protocols, ciphers


def _protocols(checked: CheckedKeys, key: str) -> tuple[str, ...]:
    given = checked.names(key)
    for name in given:
        if name not in NEWEST_PROTOCOLS:
            checked.refuse(f"{key}={name!r:.100}: expected {' or '.join(NEWEST_PROTOCOLS)}")
    return tuple(one for one in NEWEST_PROTOCOLS if one in given) or NEWEST_PROTOCOLS


def _ciphers(checked: CheckedKeys, key: str) -> CipherChoice:
    given = checked.names(key)
    try:
        ciphers = chosen(given)
    except ValueError as error:
        checked.refuse(
            f"{key}={str(error)!r:.100}: OpenSSL offers no such cipher; give names as Java or "
            "OpenSSL spells them, for example TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 or "
            "ECDHE-RSA-AES256-GCM-SHA384"
        )
        return CipherChoice()
    of_tls13 = OFFERED_OF_TLS13.intersection(given)
    if of_tls13 and of_tls13 != OFFERED_OF_TLS13:
        others = ", ".join(sorted(OFFERED_OF_TLS13 - of_tls13))
        checked.warn(
            f"{key}: OpenSSL offers all ciphers of TLS 1.3 or none, so that {others} may be "
            "used too"
        )
    return ciphers
