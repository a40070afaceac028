"""Headers of a forwarded HTTP request and its answer, and targets of brokers' redirects.

Hop-by-hop headers are left out. The proxy follows redirects: clients need not reach a broker.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from multidict import CIMultiDict
from yarl import URL

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
"""Roles that a header would alter, possibly to another role."""
VIA = "http/1.1 floodgate-proxy"


def without_hop_by_hop(headers: Mapping[str, str]) -> CIMultiDict[str]:
    """Return the headers without hop-by-hop headers, which concern only one connection.

    HTTP defines these headers, or the header ``Connection`` names them.
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
    """Return the headers of a request to a broker, with headers that identify the client.

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
            raise RestError(401, f"the role {role!r:.100} has characters that headers cannot have")
        kept[ORIGINAL_HEADER] = role
    if host:
        kept.add("X-Forwarded-Host", host)
    return kept


def without_body(headers: CIMultiDict[str]) -> CIMultiDict[str]:
    """Return the headers without those that describe a request's body."""
    kept = headers.copy()
    for name in _OF_A_BODY:
        kept.popall(name, None)
    return kept


MAX_REDIRECTS = 8
"""Most redirects followed for a request (upstream: Jetty's HttpClient, the same)."""
_KEEPS_METHOD = (307, 308)
_TURNS_TO_GET = (301, 302, 303)


class RedirectError(Exception):
    """A broker's redirect cannot be followed."""


def is_redirect(status: int, headers: Mapping[str, str]) -> bool:
    """Return True if an HTTP answer redirects to another URL."""
    return status in (*_KEEPS_METHOD, *_TURNS_TO_GET) and "Location" in headers


def redirected_method(status: int, method: str) -> str:
    """Return the HTTP method with which to follow a redirect."""
    unchanged = status in _KEEPS_METHOD or method in ("GET", "HEAD")
    return method if unchanged or (method == "PUT" and status != 303) else "GET"


def redirected_url(asked: URL, location: str) -> URL:
    """Return the URL to which a redirect leads, resolving a relative URL.

    Raises:
        RedirectError: The target is malformed or unsupported.
    """
    try:
        url = asked.join(URL(location, encoded=True))
        host = url.host
    except ValueError:
        raise RedirectError("a Location that is no URL") from None
    # Never downgrade from TLS: the request may contain a credential.
    if url.scheme != asked.scheme or not host or url.user is not None:
        raise RedirectError(f"a Location that is not {asked.scheme}://host:port/...")
    return url
