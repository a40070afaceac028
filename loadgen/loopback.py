"""Detection of loopback addresses, so that a load never hits a cluster by accident."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from loadgen.errors import UsageError

CONFIRMATION_FLAG = "--yes-this-is-my-cluster"


def is_loopback(address: str) -> bool:
    """Return whether all hosts of a URL, or a bare host, are on the loopback.

    A name counts only if all of its addresses are loopback addresses: a name that cannot be
    resolved, or resolves to both kinds, does not.

    Args:
        address: A service URL (``pulsar://a:6650,b:6650``), an admin URL, ``host:port`` or a host.
    """
    hosts = hosts_of(address)
    return bool(hosts) and all(_host_is_loopback(host) for host in hosts)


def require_own_cluster(url: str, *, confirmed: bool) -> None:
    """Refuse a URL that is not on the loopback, unless the user confirmed it by an option.

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
    """Return the hosts of a URL or of a bare address.

    A service URL of Pulsar may have several, separated by commas.
    """
    netloc = urlsplit(address if "//" in address else f"//{address}").netloc
    return [host for part in netloc.split(",") if (host := _host(part.rpartition("@")[2]))]


def _host(part: str) -> str:
    """Return the host of ``host:port``, or of a bare IPv6 address, which has no port."""
    bare = part.count(":") > 1 and not part.startswith("[")
    return part if bare else urlsplit(f"//{part}").hostname or ""


def _host_is_loopback(host: str) -> bool:
    """Return whether all addresses of a host are on the loopback, IPv4-mapped ones included."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    texts = (str(entry[4][0]).partition("%")[0] for entry in found)
    addresses = [ipaddress.ip_address(each) for each in texts]
    return bool(found) and all(
        (getattr(each, "ipv4_mapped", None) or each).is_loopback for each in addresses
    )
