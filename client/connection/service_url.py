"""Service URLs: where a cluster is reached."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from client.exceptions import ConnectError

DEFAULT_PORT = 6650
DEFAULT_TLS_PORT = 6651
_PLAIN, _TLS = "pulsar", "pulsar+ssl"


class ServiceUrl(NamedTuple):
    """A service URL, taken apart.

    Attributes:
        addresses: Hosts and ports, one at least; any of them answers a first question.
        tls: Whether they speak TLS.
    """

    addresses: tuple[tuple[str, int], ...]
    tls: bool


def server_address(url: str, *, tls: bool = False) -> tuple[str, int]:
    """Return host and port of a server, ``pulsar://host[:port]``.

    Args:
        url: Where it is.
        tls: It must be ``pulsar+ssl://host[:port]``.

    Raises:
        ConnectError: Another scheme, no host, a port that is no number, or more than these.
    """
    scheme, port = (_TLS, DEFAULT_TLS_PORT) if tls else (_PLAIN, DEFAULT_PORT)
    address = _address(url, scheme, port)
    if address is None:
        raise _refusal(url, f"{scheme}://host:{port}")
    return address


def parse_service_url(url: str) -> ServiceUrl:
    """Return the addresses of ``pulsar://host[:port][,host[:port]...]`` or ``pulsar+ssl://...``.

    Raises:
        ConnectError: It is none.
    """
    scheme, _, rest = url.partition("://")
    tls = scheme == _TLS
    port = DEFAULT_TLS_PORT if tls else DEFAULT_PORT
    found = [_address(f"{scheme}://{one}", scheme, port) for one in rest.rstrip("/").split(",")]
    addresses = tuple(one for one in found if one is not None)
    if scheme not in (_PLAIN, _TLS) or len(addresses) < len(found):
        raise _refusal(
            url, "pulsar://host:6650 or pulsar+ssl://host:6651, several hosts with commas between"
        )
    return ServiceUrl(addresses, tls)


def _refusal(url: str, like: str) -> ConnectError:
    """Return the error of a URL; it does not repeat what may be a password."""
    shown, secrets = re.subn(r"^([^/@]*://)?.*@", r"\1***@", url, flags=re.DOTALL)
    words = f"{shown!r:.200} is not a service URL; it should look like {like}"
    return ConnectError(f"{words}; credentials are not part of it" if secrets else words)


def _address(url: str, scheme: str, default_port: int) -> tuple[str, int] | None:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:  # brackets that do not match, a port that is no number
        return None
    more = "@" in parts.netloc or parts.path.strip("/") or parts.query or parts.fragment
    if parts.scheme != scheme or more or not host:
        return None
    return host, default_port if port is None else port
