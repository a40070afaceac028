"""Loopback addresses, told from others so that a load never hits a cluster by accident."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from loadgen.errors import UsageError

CONFIRMATION_FLAG = "--yes-this-is-my-cluster"


def is_loopback(address: str) -> bool:
    """Return whether every host of a URL, or a bare host, is on the loopback.

    A name counts only if all of its addresses are loopback addresses: a name that cannot be
    resolved, or resolves to both kinds, does not.

    Args:
        address: A service URL (``pulsar://a:6650,b:6650``), an admin URL, ``host:port`` or a host.
    """
    hosts = hosts_of(address)
    return bool(hosts) and all(_host_is_loopback(host) for host in hosts)


def require_own_cluster(url: str, *, confirmed: bool) -> None:
    """Refuse to work against ``url`` unless on the loopback or confirmed by the user.

    Raises:
        UsageError: The address is not loopback and was not confirmed.
    """
    if confirmed or is_loopback(url):
        return
    raise UsageError(
        f"{url} is not an address of this machine's loopback; "
        f"if the cluster is yours to load, add {CONFIRMATION_FLAG}."
    )


def hosts_of(address: str) -> list[str]:
    """Return the hosts of a URL (Pulsar's may name several, by commas) or of a bare address."""
    netloc = urlsplit(address if "//" in address else f"//{address}").netloc
    return [host for part in netloc.split(",") if (host := _host(part.rpartition("@")[2]))]


def _host(part: str) -> str:
    """Return the host of ``host:port``; of IPv6 without brackets: a bare address has no port."""
    bare = part.count(":") > 1 and not part.startswith("[")
    return part if bare else urlsplit(f"//{part}").hostname or ""


def _host_is_loopback(host: str) -> bool:
    """Return whether all addresses of one host are loopback, IPv4 in IPv6 included."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    texts = (str(entry[4][0]).partition("%")[0] for entry in found)
    addresses = [ipaddress.ip_address(each) for each in texts]
    return bool(found) and all(
        (getattr(each, "ipv4_mapped", None) or each).is_loopback for each in addresses
    )
