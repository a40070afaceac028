"""Headers of a forwarded request and of its answer: those that end at each hop are left out."""

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
"""Roles that a header would not bring to a broker as they are: another's could come of them."""
VIA = "http/1.1 floodgate-proxy"


def without_hop_by_hop(headers: Mapping[str, str]) -> CIMultiDict[str]:
    """Return the headers that concern more than one connection.

    Left out are those that HTTP names, and those that ``Connection`` does.
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
    """Return the headers that a broker is sent, with those that say for whom it is asked.

    Args:
        headers: The client's.
        client: Its address.
        scheme: By which it asked.
        role: Its role, if the proxy has authenticated it. Its own word never counts: a broker may
            know the proxy, by the certificate of its TLS, and believe what it says of its client.

    Raises:
        RestError: No header can hold its role.

    Source: upstream's proxy is Jetty's ProxyServlet, which adds the same ones.
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
    """Return the headers of a request whose body is not sent any more."""
    kept = headers.copy()
    for name in _OF_A_BODY:
        kept.popall(name, None)
    return kept
