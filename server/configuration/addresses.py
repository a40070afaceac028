"""Addresses of a server: where it listens, and the host and URLs that it tells clients."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from server.configuration.key_types import NO_PORT

if TYPE_CHECKING:
    from server.configuration.known_keys import CheckedKeys

LOOPBACK = "127.0.0.1"
# Addresses that mean "every address of this machine", with their loopback addresses.
_LOOPBACK_OF_WILDCARD = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


class ServerUrls(NamedTuple):
    """The URLs that a server advertises to clients; the URL of a disabled port is empty.

    Attributes:
        service: ``pulsar://host:port``.
        web: ``http://host:port``.
        service_tls: ``pulsar+ssl://host:port``.
        web_tls: ``https://host:port``.
    """

    service: str = ""
    web: str = ""
    service_tls: str = ""
    web_tls: str = ""

    @property
    def any_service(self) -> str:
        """The URL for Pulsar clients: of the plaintext port or, without one, of the TLS port."""
        return self.service or self.service_tls

    @property
    def any_web(self) -> str:
        """The URL for HTTP clients: of the plaintext port or, without one, of the TLS port."""
        return self.web or self.web_tls

    @property
    def web_address(self) -> str:
        """``host:port`` of the web port, by which upstream identifies a broker."""
        return self.any_web.partition("://")[2]

    def told(self) -> list[str]:
        """Return the server's distinct URLs: preferred service and web URL, then the TLS URLs."""
        return list(dict.fromkeys(filter(None, (self.any_service, self.any_web, *self))))


NO_URLS = ServerUrls()


def host_port(host: str, port: int) -> str:
    """Return ``host:port`` as in a URL, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def bind_address(checked: CheckedKeys) -> str:
    """Return the address to listen on: bindAddress, or 127.0.0.1 if not set.

    Other machines have access only if the operator configures it, with a warning while
    authentication is off. Differs: upstream's default is 0.0.0.0.
    """
    given = checked.text("bindAddress")
    if given is None or not checked.is_set("bindAddress"):
        checked.choose("bindAddress", LOOPBACK)
        return LOOPBACK
    if given.startswith("[") and given.endswith("]"):
        given = given[1:-1]  # IPv6, in URL notation
    if not is_loopback(given) and not checked.flag("authenticationEnabled"):
        checked.warn(
            f"bindAddress={given}: authentication is off, so whoever reaches this address "
            f"may list, make and delete topics; bindAddress={LOOPBACK} keeps others out"
        )
    return given


def is_loopback(host: str) -> bool:
    """Return True if only the same machine can connect to a host."""
    return host == "localhost" or (is_address(host) and ip_address(host).is_loopback)


def is_address(host: str) -> bool:
    """Return True if a host is an IP address (IPv6 without brackets) rather than a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def advertised_address(checked: CheckedKeys) -> str:
    """Return the host that clients are told: advertisedAddress, or else the bind address.

    A server that listens on every address advertises the loopback's, which always works from this
    machine and from no other; a notice reports it.
    """
    given = checked.text("advertisedAddress")
    if given:
        return given
    listen_on = bind_address(checked)
    loopback = _LOOPBACK_OF_WILDCARD.get(listen_on)
    checked.choose("advertisedAddress", loopback or listen_on)
    if loopback is None:
        return listen_on
    checked.inform(
        f"advertisedAddress is not set: clients are told {loopback}, which only this machine "
        "can reach; set it for clients elsewhere"
    )
    return loopback


def plain_port(checked: CheckedKeys, key: str) -> int | None:
    """Return the plaintext (non-TLS) port that setting ``key`` configures; None if disabled.

    It can be disabled only if the corresponding TLS port is set.
    """
    tls_key = f"{key}Tls"
    if checked.value(key) is not None:
        return checked.integer(key)
    if checked.value(tls_key) is None:
        checked.refuse(
            f"{key}={NO_PORT}: this port cannot be switched off without {tls_key}; give a port "
            "number, 0 for any free port"
        )
    return None
