"""Addresses and paths of the admin REST; light, because --help imports it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode, urlsplit

from client.admin.errors import AdminUrlError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from proto.names import NamespaceName, TopicName

DEFAULT_ADMIN_URL = "http://localhost:8080"
REQUEST_TIMEOUT_SECONDS = 300.0
"""Seconds that a request waits for the next byte (upstream: pulsar-admin's --request-timeout)."""

_WEB = ("http", "https")
_BINARY = ("pulsar", "pulsar+ssl")


def checked_url(url: str) -> str:
    """Return a web address without its last slash.

    Raises:
        AdminUrlError: It is none; says what one looks like.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
        (host or "").encode("idna")  # as it is done when the name is looked up
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
    """Return an address as it may be shown: without a name and password in it."""
    before, separator, after = url.partition("://")
    return f"{before}{separator}{after.rpartition('@')[2]}"


def _expected(url: str) -> str:
    return f"{shown_url(url)!r} is no web address: give one such as http://localhost:8080"


def path(*segments: object) -> str:
    """Return a path of segments, each percent-encoded: a topic's name may hold a slash."""
    return "".join(f"/{quote(str(segment), safe='')}" for segment in segments)


def namespace_path(kind: str, namespace: NamespaceName) -> str:
    """Return ``/admin/v2/{kind}/{tenant}/{namespace}``."""
    return path("admin", "v2", kind, namespace.tenant, namespace.local_name)


def topic_path(topic: TopicName) -> str:
    """Return ``/admin/v2/{domain}/{tenant}/{namespace}/{topic}``."""
    return f"{namespace_path(topic.domain, topic.namespace)}{path(topic.local_name)}"


def query(**parameters: str | bool | None) -> str:
    """Return ``?name=value&...`` of the values that are given; empty without any.

    A flag is sent only when it is set, and what is None or empty is not sent.
    """
    given = {
        name: "true" if value is True else str(value) for name, value in parameters.items() if value
    }
    return f"?{urlencode(given, quote_via=quote, safe='')}" if given else ""


def properties_text(properties: Mapping[str, str]) -> str:
    """Return ``k1=v1,k2=v2``, as a listing's query takes it.

    Separators within a key or a value are percent-encoded once more, so that they stay part of it.
    """
    return ",".join(f"{_token(key)}={_token(value)}" for key, value in properties.items())


def _token(text: str) -> str:
    return text.replace("%", "%25").replace(",", "%2C").replace("=", "%3D")
