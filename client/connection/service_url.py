"""Service URLs (``pulsar://host:port``), with credentials and trusted certificates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from client.exceptions import ConnectError, InvalidConfiguration, InvalidUrl

if TYPE_CHECKING:
    from client.authentication.authentication import Authentication

DEFAULT_PORT = 6650
DEFAULT_TLS_PORT = 6651
_PLAIN, _TLS = "pulsar", "pulsar+ssl"


class ServiceUrl(NamedTuple):
    """A parsed service URL: the servers' addresses, and whether they use TLS.

    Attributes:
        addresses: Hosts and ports of the servers, at least one. Any of them answers the first
            lookup.
        tls: Whether the servers use TLS.
    """

    addresses: tuple[tuple[str, int], ...]
    tls: bool


def server_address(url: str, *, tls: bool = False) -> tuple[str, int]:
    """Parse ``pulsar://host[:port]`` into the host and port of a server.

    Args:
        url: The server's URL.
        tls: Whether the URL must be ``pulsar+ssl://host[:port]``.

    Raises:
        ConnectError: The URL has another scheme, no host, an invalid port, or further parts.
    """
    scheme, port = (_TLS, DEFAULT_TLS_PORT) if tls else (_PLAIN, DEFAULT_PORT)
    address = _address(url, scheme, port)
    if address is None:
        raise _refusal(url, f"{scheme}://host:{port}")
    return address


def parse_service_url(url: str) -> ServiceUrl:
    """Parse a service URL of one or more hosts.

    The form is ``pulsar://host[:port][,host[:port]...]``, or the same with ``pulsar+ssl``.

    Raises:
        ConnectError: The URL is invalid.
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
    """Return the error for an invalid service URL, with any password masked."""
    shown, secrets = re.subn(r"^([^/@]*://)?.*@", r"\1***@", url, flags=re.DOTALL)
    words = f"{shown!r:.200} is not a service URL; it should look like {like}"
    return ConnectError(f"{words}; credentials are not part of it" if secrets else words)


def _address(url: str, scheme: str, default_port: int) -> tuple[str, int] | None:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:  # unbalanced brackets, an invalid port
        return None
    more = "@" in parts.netloc or parts.path.strip("/") or parts.query or parts.fragment
    if parts.scheme != scheme or more or not host:
        return None
    return host, default_port if port is None else port


@dataclass(frozen=True, slots=True)
class ServiceInfo:
    """The service URL of a cluster, with credentials and trusted certificates.

    Attributes:
        service_url: ``pulsar://host:port`` or ``pulsar+ssl://host:port``; several hosts are
            separated by commas.
        authentication: Credentials that the client sends, or None.
        tls_trust_certs_file_path: File of trusted CA certificates.

    Raises:
        InvalidUrl: The service URL is invalid.
        InvalidConfiguration: The service URL is not a text.
    """

    service_url: str
    authentication: Authentication | None = None
    tls_trust_certs_file_path: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.service_url, str):
            raise InvalidConfiguration(
                f"service_url is a str such as pulsar://host:6650, not {self.service_url!r:.50}"
            )
        try:
            parse_service_url(self.service_url)
        except ConnectError as error:
            raise InvalidUrl(str(error)) from None

    @property
    def use_tls(self) -> bool:
        """True if the service URL requires TLS (``pulsar+ssl``)."""
        return parse_service_url(self.service_url).tls
