"""Addresses: where a server listens, which one clients are told, and how they are written."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from server.configuration.known_keys import CheckedKeys

LOOPBACK = "127.0.0.1"
# An address that means "every address of this machine", and its loopback twin.
_LOOPBACK_OF_WILDCARD = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


class ServerUrls(NamedTuple):
    """The addresses that clients are told; each is empty where there is no such port.

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
        """The address for clients; by TLS only where there is no other port."""
        return self.service or self.service_tls

    @property
    def any_web(self) -> str:
        """The address of the web port; by TLS only where there is no other."""
        return self.web or self.web_tls

    @property
    def web_address(self) -> str:
        """``host:port`` of the web port, by which upstream names a broker."""
        return self.any_web.partition("://")[2]

    def told(self) -> list[str]:
        """Return all there are: two of them, then those for TLS beside them."""
        return list(dict.fromkeys(filter(None, (self.any_service, self.any_web, *self))))


NO_URLS = ServerUrls()


def host_port(host: str, port: int) -> str:
    """Write an address as in a URL; an IPv6 address gets its brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def bind_address(checked: CheckedKeys) -> str:
    """Return the address to listen on: bindAddress, or the loopback's where it is not given.

    Others are let in only by an operator who says so, and reads one warning while authentication
    is off. Differs: upstream's default is 0.0.0.0.
    """
    given = checked.text("bindAddress")
    if given is None or not checked.is_set("bindAddress"):
        return LOOPBACK
    if given.startswith("[") and given.endswith("]"):
        given = given[1:-1]  # IPv6, written as in a URL
    if not is_loopback(given) and not checked.flag("authenticationEnabled"):
        checked.warn(
            f"bindAddress={given}: authentication is off, so whoever reaches this address "
            f"may list, make and delete topics; bindAddress={LOOPBACK} keeps others out"
        )
    return given


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches a host."""
    return host == "localhost" or (is_address(host) and ip_address(host).is_loopback)


def is_address(host: str) -> bool:
    """Tell whether a host is written as an IP address, without brackets, and not as a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def advertised_address(checked: CheckedKeys, bind_address: str) -> str:
    """Return the host that clients are told: advertisedAddress, or where the server listens.

    A server that listens on every address tells the loopback's, which always works from this
    machine and from no other; a notice says so.
    """
    given = checked.text("advertisedAddress")
    if given:
        return given
    loopback = _LOOPBACK_OF_WILDCARD.get(bind_address)
    if loopback is None:
        return bind_address
    checked.inform(
        f"advertisedAddress is not set: clients are told {loopback}, which only this machine "
        "can reach; set it for clients elsewhere"
    )
    return loopback
