"""Checks of the URLs of stores, and their display without passwords."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

MEMORY_SCHEME = "memory:"
SQLITE_SCHEME = "sqlite:///"
POSTGRESQL_SCHEMES = ("postgresql://", "postgres://")
OUR_STORES = ("memory:", "sqlite:", "postgresql:", "postgres:")
"""Prefixes of a store's URL, well formed or not."""
EXPECTED_STORES = "memory:local, sqlite:///path or postgresql://user@host:port/database"
# Up to the last @: an unescaped password must not be shown either.
_USER_INFO = re.compile(r"\A(\w+:/*[^:/@?#]*):.*@")
_PASSWORD = re.compile(r"([?&]\w*password=)[^&#]*", re.IGNORECASE)


def without_password(url: str, mask: str = "***") -> str:
    """Return a store URL with its password masked, for logs and errors."""
    return _PASSWORD.sub(rf"\1{mask}", _USER_INFO.sub(rf"\1:{mask}@", url))


def usable_store_url(url: str) -> bool:
    """Return True if a store URL is well formed; its database may still be unreachable."""
    if url.startswith(POSTGRESQL_SCHEMES):
        return _well_formed(url)
    return any(
        url.startswith(scheme) and len(url) > len(scheme)
        for scheme in (MEMORY_SCHEME, SQLITE_SCHEME)
    )


def _well_formed(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    return bool(parts.netloc or parts.query)
