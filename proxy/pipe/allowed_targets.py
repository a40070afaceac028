"""The check which brokers clients may name as the target of a pipe."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from yarl import URL

from client.connection.service_url import server_address
from client.exceptions import ConnectError

if TYPE_CHECKING:
    from proxy.brokers import Address
    from proxy.config import ProxyConfig

_ALL = ("*",)


class BrokerTargets:
    """The brokers that a pipe may lead to: configured ones, loopback addresses, named hosts.

    brokerProxyAllowedHostNames and brokerProxyAllowedIPAddresses name hosts, unless both are ``*``;
    both must allow the host, and brokerProxyAllowedTargetPorts the port. Only the proxy must be
    able to resolve names, and does so only for a list of addresses.

    Source: upstream BrokerProxyValidator. Differs: upstream's default allows every address; here
    two lists of ``*`` allow the configured broker and loopback addresses.
    """

    def __init__(self, config: ProxyConfig) -> None:
        self._configured = config.broker_addresses
        self._ports = config.broker_proxy_allowed_target_ports
        self._host_names = config.broker_proxy_allowed_host_names
        self._networks = config.broker_proxy_allowed_ip_addresses
        self._web_port = URL(config.broker_web_service_url).port

    async def allowed(self, target: str) -> Address | None:
        """Return the address to connect to for ``host:port`` if it is allowed, otherwise None."""
        try:
            address = server_address(f"pulsar://{target}")
        except ConnectError:
            return None
        if address in self._configured:
            return address
        host, port = address
        if not self._names_port(port):
            return None
        found = await self._allowed_host(host)
        return None if found is None else (found, port)

    async def allows_redirect(self, host: str, port: int | None) -> bool:
        """Return True if a broker's HTTP redirect leads to an allowed host and web port.

        Allowed ports are the port of brokerWebServiceURL and brokerProxyAllowedTargetPorts.
        """
        if port is None or (port != self._web_port and not self._names_port(port)):
            return False
        configured = any(host == one for one, _ in self._configured)
        return configured or await self._allowed_host(host) is not None

    def _names_port(self, port: int) -> bool:
        return any(ports.first <= port <= ports.last for ports in self._ports)

    async def _allowed_host(self, host: str) -> str | None:
        """Return a host, or an allowed one of its IP addresses; None if none is allowed."""
        loopback = loopback_address(host)
        if loopback is None and self._host_names == self._networks == _ALL:
            return None
        if not any(fnmatchcase(host, pattern) for pattern in self._host_names):
            return None
        if self._networks == _ALL:
            return host
        if loopback is not None:
            return host if self._in_networks(loopback) else None
        return next((one for one in await _addresses(host) if self._in_networks(one)), None)

    def _in_networks(self, address: str) -> bool:
        return any(_in_network(address, network) for network in self._networks)


def loopback_address(host: str) -> str | None:
    """Return a loopback host's address, without a DNS lookup; None for any other host."""
    if host == "localhost":
        return "127.0.0.1"
    try:
        return host if ipaddress.ip_address(host).is_loopback else None
    except ValueError:
        return None


async def _addresses(host: str) -> list[str]:
    """Return the IP addresses of a host; empty if its name cannot be resolved."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [str(address[0]) for *_, address in found]


def _in_network(address: str, network: str) -> bool:
    if network == "*":
        return True
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(network, strict=False)
    except (OSError, ValueError):
        return False
