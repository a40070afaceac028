"""The brokers that a client may be piped to."""

from __future__ import annotations

import ipaddress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from client.errors import ConnectError
from client.pool import server_address

if TYPE_CHECKING:
    from proxy.brokers import Address
    from proxy.config import ProxyConfig


class BrokerTargets:
    """The allow-list: the configured broker, and loopback addresses on the allowed ports.

    Source: upstream BrokerProxyValidator (brokerProxyAllowedHostNames, ...IPAddresses,
    ...TargetPorts).
    Differs: upstream's default allows every address; here a host that is neither the
    configured broker's nor a loopback address is refused in this version.
    """

    def __init__(self, config: ProxyConfig) -> None:
        self._configured = server_address(config.broker_service_url)
        self._ports = config.broker_proxy_allowed_target_ports
        self._host_names = config.broker_proxy_allowed_host_names
        self._networks = config.broker_proxy_allowed_ip_addresses

    def allowed(self, target: str) -> Address | None:
        """Return the address of a ``host:port`` that clients may be piped to, else None."""
        try:
            address = server_address(f"pulsar://{target}")
        except ConnectError:
            return None
        if address == self._configured:
            return address
        host, port = address
        if not any(ports.first <= port <= ports.last for ports in self._ports):
            return None
        loopback = loopback_address(host)
        if loopback is None or not self._listed(host, loopback):
            return None
        return address

    def _listed(self, host: str, loopback: str) -> bool:
        named = any(fnmatchcase(host, pattern) for pattern in self._host_names)
        return named and any(_in_network(loopback, network) for network in self._networks)


def loopback_address(host: str) -> str | None:
    """Return the loopback address that a host is, without asking the network; else None."""
    if host == "localhost":
        return "127.0.0.1"
    try:
        return host if ipaddress.ip_address(host).is_loopback else None
    except ValueError:
        return None


def _in_network(address: str, network: str) -> bool:
    if network == "*":
        return True
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(network, strict=False)
    except (OSError, ValueError):
        return False
