"""Headers of a forwarded request and its answer, without hop-by-hop headers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from multidict import CIMultiDict

from server.authentication.requests import ORIGINAL_HEADER
from server.json_answers import RestError

if TYPE_CHECKING:
    from collections.abc import Mapping

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_OF_THIS_HOP = frozenset({"host", "expect"})
_OF_A_BODY = ("Content-Length", "Content-Type", "Content-Encoding")
_CHANGED = re.compile(r"\A\s|\s\Z|[\x00-\x1f\x7f\ud800-\udfff]")
"""Roles changed by transport in a header: the changed text could be another role."""
VIA = "http/1.1 floodgate-proxy"


def without_hop_by_hop(headers: Mapping[str, str]) -> CIMultiDict[str]:
    """Return the end-to-end headers.

    Hop-by-hop headers are defined by HTTP, or named in ``Connection``.
    """
    named = {
        name.strip().lower()
        for key, value in headers.items()
        if key.lower() == "connection"
        for name in value.split(",")
    }
    return CIMultiDict(
        (key, value)
        for key, value in headers.items()
        if key.lower() not in HOP_BY_HOP and key.lower() not in named
    )


def request_headers(
    headers: Mapping[str, str], client: str | None, scheme: str = "http", role: str | None = None
) -> CIMultiDict[str]:
    """Return the headers for a broker, with headers identifying the client.

    Args:
        headers: The client's headers.
        client: The client's address.
        scheme: The client's scheme.
        role: The client's role, if authenticated by the proxy. The client's own claim never counts:
            a broker may trust the proxy, by its TLS certificate, to name the client.

    Raises:
        RestError: No header can hold the role.

    Source: upstream's proxy is Jetty's ProxyServlet, which adds the same headers.
    """
    kept = without_hop_by_hop(headers)
    for name in _OF_THIS_HOP:
        kept.popall(name, None)
    host = headers.get("Host")
    kept.add("Via", VIA)
    kept.add("X-Forwarded-For", client or "unknown")
    kept.add("X-Forwarded-Proto", scheme)
    kept.popall(ORIGINAL_HEADER, None)
    if role is not None:
        if _CHANGED.search(role):
            raise RestError(401, f"the role {role!r:.100} cannot be told to a broker by HTTP")
        kept[ORIGINAL_HEADER] = role
    if host:
        kept.add("X-Forwarded-Host", host)
    return kept


def without_body(headers: CIMultiDict[str]) -> CIMultiDict[str]:
    """Return the headers of a request without its body."""
    kept = headers.copy()
    for name in _OF_A_BODY:
        kept.popall(name, None)
    return kept
