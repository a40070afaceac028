"""Addresses and URL paths of the admin REST API; quick to import, for a fast ``--help``."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode, urlsplit

from client.admin.errors import AdminUrlError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from proto.names import NamespaceName, TopicName

DEFAULT_ADMIN_URL = "http://localhost:8080"
REQUEST_TIMEOUT_SECONDS = 300.0
"""Longest time to wait for the next byte (upstream: pulsar-admin's --request-timeout)."""

_WEB = ("http", "https")
_BINARY = ("pulsar", "pulsar+ssl")


def checked_url(url: str) -> str:
    """Return an http or https URL without its last slash.

    Raises:
        AdminUrlError: The text is not a web address; the error shows an example.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
        (host or "").encode("idna")  # like at name resolution
        url.encode()
    except ValueError:
        raise AdminUrlError(_expected(url)) from None
    if parts.scheme in _BINARY:
        raise AdminUrlError(
            f"{shown_url(url)} is a broker's binary port; the admin REST is on its web port, such "
            f"as http://{host or 'localhost'}:8080"
        )
    if parts.scheme not in _WEB or not host or parts.query or parts.fragment:
        raise AdminUrlError(_expected(url))
    return url.rstrip("/")


def shown_url(url: str) -> str:
    """Return a URL without its user name and password, for output."""
    before, separator, after = url.partition("://")
    return f"{before}{separator}{after.rpartition('@')[2]}"


def _expected(url: str) -> str:
    return f"{shown_url(url)!r} is no web address: give one such as http://localhost:8080"


def path(*segments: object) -> str:
    """Return a URL path of percent-encoded segments.

    Encoding matters because a topic's name may contain a slash.
    """
    return "".join(f"/{quote(str(segment), safe='')}" for segment in segments)


def namespace_path(kind: str, namespace: NamespaceName) -> str:
    """Return the REST path of a namespace, ``/admin/v2/{kind}/{tenant}/{namespace}``."""
    return path("admin", "v2", kind, namespace.tenant, namespace.local_name)


def topic_path(topic: TopicName) -> str:
    """Return a topic's REST path, ``/admin/v2/{domain}/{tenant}/{namespace}/{topic}``."""
    return f"{namespace_path(topic.domain, topic.namespace)}{path(topic.local_name)}"


def query(**parameters: str | bool | None) -> str:
    """Return a query string ``?name=value&...`` without empty parameters; "" if all are empty.

    Only set flags are sent.
    """
    given = {
        name: "true" if value is True else str(value) for name, value in parameters.items() if value
    }
    return f"?{urlencode(given, quote_via=quote, safe='')}" if given else ""


def properties_text(properties: Mapping[str, str]) -> str:
    """Return properties as ``k1=v1,k2=v2`` for the query string of a topic listing.

    Separators within a key or value are percent-encoded twice.
    """
    return ",".join(f"{_token(key)}={_token(value)}" for key, value in properties.items())


def _token(text: str) -> str:
    return text.replace("%", "%25").replace(",", "%2C").replace("=", "%3D")
