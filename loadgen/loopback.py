"""Detection of loopback addresses, so that a load never hits a cluster by accident."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from loadgen.errors import UsageError

CONFIRMATION_FLAG = "--yes-this-is-my-cluster"


def is_loopback(address: str) -> bool:
    """Return True if all hosts of a URL, or one host alone, are on the loopback.

    A name counts only if all its addresses are loopback addresses. It does not count if it cannot
    be resolved, or if some of its addresses are others.

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
    """Return the hosts in a URL or in an address without a scheme.

    A Pulsar service URL may have several hosts, separated by commas.
    """
    netloc = urlsplit(address if "//" in address else f"//{address}").netloc
    return [host for part in netloc.split(",") if (host := _host(part.rpartition("@")[2]))]


def _host(part: str) -> str:
    """Return the host in ``host:port``, or an IPv6 address without brackets, which has no port."""
    bare = part.count(":") > 1 and not part.startswith("[")
    return part if bare else urlsplit(f"//{part}").hostname or ""


def _host_is_loopback(host: str) -> bool:
    """Return True if all addresses of a host are on the loopback, including IPv4-mapped ones."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    texts = (str(entry[4][0]).partition("%")[0] for entry in found)
    addresses = [ipaddress.ip_address(each) for each in texts]
    return bool(found) and all(
        (getattr(each, "ipv4_mapped", None) or each).is_loopback for each in addresses
    )
