"""Host names and ports as they are written, and the address clients are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from server.known_keys import CheckedKeys

# An address that means "every address of this machine", and its loopback twin.
_LOOPBACK_OF_WILDCARD = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


def host_port(host: str, port: int) -> str:
    """Write an address as in a URL; an IPv6 address gets its brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


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
