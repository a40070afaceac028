"""The proxy's configuration, read from Pulsar's keys into an immutable object.

``ProxyConfig.from_properties`` is pure: file and command line are read elsewhere. Defaults are
upstream's (in ``proxy_keys.json``, with the broker's six limiter keys), unless a row says
otherwise.
"""

from __future__ import annotations

import re
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import urlsplit

from client.connection.service_url import parse_service_url
from proxy.credential_keys import BrokerCredentials, read_credentials, with_own_certificate
from server.configuration.addresses import host_port, plain_port
from server.configuration.authentication import AuthenticationSettings, authentication_settings
from server.configuration.authorization import AuthorizationSettings, authorization_settings
from server.configuration.common import ServerConfig
from server.configuration.known_keys import REVERSE_PROXY_PREFIX, CheckedKeys, KnownKeys
from server.configuration.settings import Key, Read, milliseconds
from server.configuration.tls_keys import broker_tls, port_tls
from server.limits.connections import ConnectionBounds
from server.module_names import module_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from server.tls.settings import ClientTlsSettings, ServerTlsSettings

_PORT_KEY = "servicePort"
_SCHEME, _DEFAULT_PORT = "pulsar://", 6650
_TLS_SCHEME, _DEFAULT_TLS_PORT = "pulsar+ssl://", 6651


_REVERSE_PATH = re.compile(r"(/[\w.~-]+)+", re.ASCII)


class ReverseProxy(NamedTuple):
    """A path of the proxy's web port whose requests are forwarded to a separate server.

    Upstream: HttpReverseProxyConfig.

    Attributes:
        path: Forwarded with all paths below; removed from forwarded requests.
        proxy_to: The server as ``http://host:port`` or ``https``, optionally with a path.
        forwards_credentials: Whether the server receives ``Authorization`` (ours).
    """

    path: str
    proxy_to: str
    forwards_credentials: bool = False


class PortRange(NamedTuple):
    """A range of port numbers from ``first`` to ``last``, both included."""

    first: int
    last: int


def _broker_tls(checked: CheckedKeys) -> ClientTlsSettings | None:
    tls, credentials = broker_tls(checked), read_credentials(checked)
    if tls is None or credentials is None:
        return tls
    return with_own_certificate(checked, tls, credentials)


class ProxyConfig(ServerConfig):
    """The configuration of a proxy; base class ServerConfig has the keys shared with the broker."""

    service_port: int | None = Read(partial(plain_port, key=_PORT_KEY))
    """servicePort; 0 is any free port, None is allowed only with a TLS port."""
    service_port_tls: int | None = Key(f"{_PORT_KEY}Tls")
    tls: ServerTlsSettings | None = Read(partial(port_tls, port_key=f"{_PORT_KEY}Tls", web=False))
    authentication: AuthenticationSettings | None = Read(
        partial(authentication_settings, proxy=True)
    )
    authorization: AuthorizationSettings | None = Read(partial(authorization_settings, proxy=True))
    broker_tls: ClientTlsSettings | None = Read(_broker_tls)
    """tlsEnabledWithBroker and keys beginning with brokerClient; None for no TLS."""
    broker_credentials: BrokerCredentials | None = Read(read_credentials)
    """brokerClientAuthenticationPlugin and ...Parameters; None for no credentials."""
    broker_service_url: str = Read(lambda checked: _broker_service_url(checked))
    """brokerServiceURL, as ``pulsar://host:port``; required.

    With tlsEnabledWithBroker brokerServiceURLTLS, as ``pulsar+ssl://host:port``. Differs: more
    brokers may follow, as in a client's service URL, ``pulsar://one:6650,two:6650``; any reachable
    broker answers lookups.
    """
    max_concurrent_lookup_requests: int = Key("maxConcurrentLookupRequests")
    """Most concurrent lookups, metadata requests and listings."""
    max_concurrent_inbound_connections: int = Key("maxConcurrentInboundConnections")
    """Most concurrent client connections; 0 or less: no limit."""
    max_concurrent_inbound_connections_per_ip: int = Key("maxConcurrentInboundConnectionsPerIp")
    """Most concurrent client connections of one address; 0 or less: no limit."""
    broker_proxy_allowed_host_names: tuple[str, ...] = Read(
        lambda checked: checked.names("brokerProxyAllowedHostNames")
    )
    """brokerProxyAllowedHostNames: host patterns with ``*`` of allowed tunnel targets."""
    broker_proxy_allowed_ip_addresses: tuple[str, ...] = Read(
        lambda checked: checked.names("brokerProxyAllowedIPAddresses")
    )
    """brokerProxyAllowedIPAddresses: addresses and networks of allowed tunnel targets."""
    broker_proxy_allowed_target_ports: tuple[PortRange, ...] = Read(
        lambda checked: _target_ports(checked)
    )
    """brokerProxyAllowedTargetPorts: ports of allowed tunnel targets."""
    broker_proxy_connect_timeout_seconds: float = Key("brokerProxyConnectTimeoutMs", milliseconds)
    drain_seconds: float = Key("floodgateProxyShutdownTimeoutMs", milliseconds)
    """Time limit of a drain; upstream has no such key."""
    pipe_drain_seconds: float = Key("floodgatePipeDrainMs", milliseconds)
    """Time for clients to continue through their pipes during a drain."""
    broker_web_service_url: str = Read(lambda checked: _broker_web_service_url(checked))
    """brokerWebServiceURL, as ``http://host:port``; empty disables forwarding of admin requests.

    With tlsEnabledWithBroker brokerWebServiceURLTLS, as ``https://host:port``.
    """
    http_proxy_timeout_seconds: float = Key("httpProxyTimeout", milliseconds)
    """Time limit of a forwarded request."""
    http_input_max_replay_buffer_size: int = Key("httpInputMaxReplayBufferSize")
    """Bytes of a forwarded request's body kept for a broker's redirect."""
    max_concurrent_http_requests: int = Key("maxConcurrentHttpRequests")
    """Most concurrently forwarded requests; upstream queues further requests."""
    http_reverse_proxies: tuple[ReverseProxy, ...] = Read(lambda checked: _reverse_proxies(checked))
    """httpReverseProxy.NAME.path and httpReverseProxy.NAME.proxyTo, in pairs."""

    @property
    def connection_bounds(self) -> ConnectionBounds:
        """Limits on concurrent client connections, in total and for each IP address."""
        return ConnectionBounds(
            self.max_concurrent_inbound_connections,
            self.max_concurrent_inbound_connections_per_ip,
        )

    @property
    def broker_addresses(self) -> tuple[tuple[str, int], ...]:
        """Host and port of each broker that brokerServiceURL names."""
        return parse_service_url(self.broker_service_url).addresses

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Build the configuration from the keys and values of proxy.conf.

        Raises:
            ConfigError: The configuration has problems; all are reported, one sentence each.
        """
        return cls.made(known_keys(), properties)


@cache
def known_keys() -> KnownKeys:
    """Return a proxy's configuration keys: Pulsar's, the six limiter keys, and Floodgate's own."""
    packaged = resources.files(module_name("proxy")).joinpath("proxy_keys.json")
    return KnownKeys.from_json(packaged.read_text(encoding="utf-8"))


def _broker_service_url(checked: CheckedKeys) -> str:
    tls = checked.flag("tlsEnabledWithBroker")
    key, scheme = ("brokerServiceURLTLS", _TLS_SCHEME) if tls else ("brokerServiceURL", _SCHEME)
    url = checked.text(key)
    if url is None:
        checked.refuse(
            f"{key} is missing: name the broker, for example {key}={scheme}127.0.0.1:"
            f"{_DEFAULT_TLS_PORT if tls else _DEFAULT_PORT}"
        )
        return ""
    one, *others = url.split(",")
    found = [
        _address(checked, key, scheme, address)
        for address in (one, *(scheme + other for other in others))
    ]
    return ",".join([found[0], *(address.removeprefix(scheme) for address in found[1:])])


def _address(checked: CheckedKeys, key: str, scheme: str, url: str) -> str:
    """Return a broker's address as ``scheme://host:port``; report a malformed one as a problem.

    Without a port, the default port is added.
    """
    default_port = _DEFAULT_TLS_PORT if scheme == _TLS_SCHEME else _DEFAULT_PORT
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if scheme == _SCHEME and parts.scheme == "pulsar+ssl":
        checked.refuse(
            f"{key}={url!r}: an address for TLS; set tlsEnabledWithBroker=true and name it by "
            "brokerServiceURLTLS"
        )
    elif f"{parts.scheme}://" != scheme or not host or not _only_an_address(url, scheme):
        checked.refuse(f"{key}={url!r}: expected one address, {scheme}host:port")
    else:
        return f"{scheme}{host_port(host, default_port if port is None else port)}"
    return ""


def _broker_web_service_url(checked: CheckedKeys) -> str:
    tls = checked.flag("tlsEnabledWithBroker")
    key, scheme = ("brokerWebServiceURLTLS", "https") if tls else ("brokerWebServiceURL", "http")
    url = (checked.text(key) or "").removesuffix("/")
    if tls and not url and checked.text("brokerWebServiceURL"):
        checked.refuse(
            "brokerWebServiceURL is set with tlsEnabledWithBroker=true: name the broker's https "
            "port by brokerWebServiceURLTLS, or remove the key"
        )
    if url and not (_is_http(url, scheme) and urlsplit(url).path == ""):
        checked.refuse(f"{key}={url!r}: expected one address, {scheme}://host:port")
        return ""
    return url


def _is_http(url: str, scheme: str = "http") -> bool:
    """Return True if a URL names a server by ``scheme`` and host, with or without a path."""
    try:
        parts = urlsplit(url)
        return parts.scheme == scheme and bool(parts.hostname) and _is_plain(url, parts.port)
    except ValueError:
        return False


def _is_plain(url: str, port: int | None) -> bool:
    return port != 0 and not any(character in url for character in ",@?# \t\r\n")


def _reverse_proxies(checked: CheckedKeys) -> tuple[ReverseProxy, ...]:
    """Return the configured reverse proxies; report incomplete or malformed ones as problems."""
    named: dict[str, dict[str, str]] = {}
    for key, value in checked.properties.items():
        if key.startswith(REVERSE_PROXY_PREFIX):
            name, _, field = key.removeprefix(REVERSE_PROXY_PREFIX).partition(".")
            named.setdefault(name, {})[field] = value.strip()
    found = []
    for name, fields in named.items():
        path, proxy_to = fields.get("path", ""), fields.get("proxyTo", "").removesuffix("/")
        shown = fields.pop("forwardAuthorization", "false").lower()
        if (
            set(fields) == {"path", "proxyTo"}
            and shown in ("true", "false")
            and _REVERSE_PATH.fullmatch(path)
            and (_is_http(proxy_to) or _is_http(proxy_to, "https"))
        ):
            found.append(ReverseProxy(path, proxy_to, shown == "true"))
        else:
            key = f"{REVERSE_PROXY_PREFIX}{name}"
            checked.refuse(
                f"{key}: expected {key}.path=/path and {key}.proxyTo=http://host:port (or https), "
                f"and maybe {key}.forwardAuthorization=true"
            )
    return tuple(found)


def _only_an_address(url: str, scheme: str) -> bool:
    """Return True if a URL has only host and port, as the proxy would ignore further parts."""
    rest = url[len(scheme) :].removesuffix("/")
    return bool(rest) and not any(character in rest for character in "/,@?# \t\r\n")


def _target_ports(checked: CheckedKeys) -> tuple[PortRange, ...]:
    key = "brokerProxyAllowedTargetPorts"
    ranges = [_port_range(text) for text in checked.names(key)]
    if None in ranges:
        checked.refuse(
            f"{key}={checked.text(key)!r}: expected ports and ranges separated by commas, "
            "for example 6650,6700-6799, or *"
        )
    return tuple(one for one in ranges if one is not None)


def _port_range(text: str) -> PortRange | None:
    if text == "*":
        return PortRange(1, 65535)
    first, dash, last = text.partition("-")
    last = last if dash else first
    if not (first.isascii() and first.isdigit() and last.isascii() and last.isdigit()):
        return None
    if len(first) > 5 or len(last) > 5 or not 0 < int(first) <= int(last) <= 65535:
        return None
    return PortRange(int(first), int(last))
