"""Cipher suites in Java's spelling (IANA's) and in OpenSSL's, and OpenSSL's configuration.

Java's ``TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`` is OpenSSL's ``ECDHE-RSA-AES128-GCM-SHA256``. The
suites of TLS 1.3 have a single name, and Python cannot choose among them: all or none are offered.
"""

from __future__ import annotations

import re
import ssl
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
    """The allowed cipher suites.

    Attributes:
        openssl: The suites of TLS 1.2 as OpenSSL's list; empty for OpenSSL's default.
        tls12: Whether any suite of TLS 1.2 is allowed.
        tls13: Whether the suites of TLS 1.3 are allowed.
    """

    openssl: str = ""
    tls12: bool = True
    tls13: bool = True


def openssl_name(name: str) -> str:
    """Return OpenSSL's name of a suite of TLS 1.2 given by either name."""
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
    """Return the choice of the suites with these names; without names: OpenSSL's default.

    Raises:
        ValueError: OpenSSL has no such suite; the message is its name.
    """
    if not names:
        return CipherChoice()
    older = {name: openssl_name(name) for name in names if name not in OFFERED_OF_TLS13}
    for name, own in older.items():
        if not _is_known(own):
            raise ValueError(name)
    return CipherChoice(":".join(older.values()), bool(older), len(older) < len(names))


def _is_known(name: str) -> bool:
    """Return True if OpenSSL supports a suite of TLS 1.2; in lists it skips unsupported suites."""
    if not _ONE_NAME.fullmatch(name) or name.startswith("TLS_"):
        return False
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(name)
    except ssl.SSLError:
        return False
    return True
