"""Redirects of brokers, followed by the proxy: clients need not reach a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yarl import URL

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_REDIRECTS = 8
"""Most redirects followed for a request (upstream: Jetty's HttpClient, the same)."""
_KEEPS_METHOD = (307, 308)
_TURNS_TO_GET = (301, 302, 303)


class RedirectError(Exception):
    """A broker's redirect cannot be followed."""


def is_redirect(status: int, headers: Mapping[str, str]) -> bool:
    """Tell whether an answer redirects."""
    return status in (*_KEEPS_METHOD, *_TURNS_TO_GET) and "Location" in headers


def redirected_method(status: int, method: str) -> str:
    """Return the method for the redirected request."""
    unchanged = status in _KEEPS_METHOD or method in ("GET", "HEAD")
    return method if unchanged or (method == "PUT" and status != 303) else "GET"


def redirected_url(asked: URL, location: str) -> URL:
    """Return the redirect's target, resolving relative URLs.

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
