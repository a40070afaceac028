"""Settings that broker and proxy share, each declared with its key; units: bytes, seconds."""

from __future__ import annotations

from dataclasses import field, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Self

from limiter.admission.caps import AdmissionCaps
from limiter.admission.policy import Admission
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.errors import LimitScope
from limiter.memory.dual_limiter import LimitType, MemoryLimit
from limiter.memory.size_estimate import SizeEstimate
from server.configuration import addresses
from server.configuration.addresses import plain_port
from server.configuration.authentication import AuthenticationSettings, with_token_prefix
from server.configuration.flow import FlowConfig
from server.configuration.known_keys import REFUSED_WHEN_TRUE, refuse_true
from server.configuration.loaded_class import UnusableClassError, is_class_path, loaded_class
from server.configuration.settings import Group, Key, Read, Settings, megabytes, milliseconds
from server.configuration.tls_keys import port_tls
from server.errors import ConfigError
from server.limits.connections import ConnectionBounds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from server.configuration.authorization import AuthorizationSettings
    from server.configuration.known_keys import CheckedKeys, KnownKeys, Notice
    from server.tls.settings import ServerTlsSettings


def _http_rate(checked: CheckedKeys) -> float:
    key, on = "httpRequestsMaxPerSecond", checked.flag("httpRequestsLimitEnabled")
    rate = checked.value(key)
    if not on or not isinstance(rate, (int, float)):
        return 0.0
    if rate <= 0:
        checked.refuse(
            f"{key}={rate}: no request would pass; set more, or httpRequestsLimitEnabled=false"
        )
    return rate


class LimitConfig(Settings):
    """Limits on clients: on all together and on each, in bytes and seconds.

    0 or less means unlimited.

    Profile ``pulsar`` has upstream's limits alone.
    """

    handshake_seconds: float = Key(
        "floodgateHandshakeTimeoutMs", milliseconds, floodgate=10_000, pulsar=0
    )
    """Time limit until CONNECT, a TLS handshake included."""
    requests_a_second: int = Key("floodgateMaxRequestsPerSecondPerConnection")
    unfinished_frame_bytes: int = Key(
        "floodgateMaxUnfinishedFramesMB", megabytes, floodgate=256, pulsar=0
    )
    """Most bytes of incomplete frames, of all connections together."""
    http_a_second: float = Read(_http_rate)
    """httpRequestsMaxPerSecond, if httpRequestsLimitEnabled."""
    http_at_once: int = Key("maxConcurrentHttpRequests")
    http_connections: int = Key("maxHttpServerConnections")
    http_body_bytes: int = Key("httpMaxRequestSize", elsewhere=-1)
    """Most bytes of a body: a body without a length is then refused, as upstream; a proxy has no
    such key."""
    http_header_bytes: int = Key("httpMaxRequestHeaderSize")
    """Most bytes of the request line and of each header; 1 or more."""
    http_seconds: float = Key(
        "floodgateHttpRequestTimeoutMs", milliseconds, floodgate=30_000, pulsar=0
    )
    """Time limit until a request is complete."""
    http_idle_seconds: float = Key("httpServerIdleTimeout", milliseconds, elsewhere=30_000)
    """Time limit of a connection without a request; a proxy has no such key."""


_HEAP, _DIRECT = "maxTopicListInFlightHeapMemSize", "maxTopicListInFlightDirectMemSize"
LIMIT_KEYS = {
    LimitType.HEAP_MEMORY: f"{_HEAP}MB",
    LimitType.DIRECT_MEMORY: f"{_DIRECT}MB",
}
CAP_KEYS = {
    LimitScope.CONNECTION: "floodgateTopicListMaxBytesPerConnection",
    LimitScope.NAMESPACE: "floodgateTopicListMaxBytesPerNamespace",
    LimitScope.TENANT: "floodgateTopicListMaxBytesPerTenant",
}
POLICY_KEY = "floodgateAdmissionPolicy"
OVERDRAFT_KEY = "floodgateTopicListOverdraftMaxBytes"


class Profile(Enum):
    """The choice between Floodgate's own defaults and those of released Pulsar."""

    PULSAR = "pulsar"
    FLOODGATE = "floodgate"


class ResponseBuffers(Enum):
    """The choice whether concurrent requests for a topic list share its encoded bytes."""

    PRIVATE = "private"
    SHARED = "shared"


class TopicListLimits(Settings):
    """Limits on the memory of topic lists, from each request until its response is sent.

    Units: bytes and seconds. A maximum of 0 or less means no limit and no accounting, a queue size
    of 0 or less an unbounded queue, as upstream.

    Source: PIP-442; as shipped these keys are static.
    """

    heap_max_bytes: int = Key(f"{_HEAP}MB", megabytes, dynamic=True)
    heap_queue_size: int = Key(f"{_HEAP}PermitsAcquireQueueSize", dynamic=True)
    heap_timeout_seconds: float = Key(
        f"{_HEAP}PermitsAcquireTimeoutMillis", milliseconds, dynamic=True
    )
    direct_max_bytes: int = Key(f"{_DIRECT}MB", megabytes, dynamic=True)
    direct_queue_size: int = Key(f"{_DIRECT}PermitsAcquireQueueSize", dynamic=True)
    direct_timeout_seconds: float = Key(
        f"{_DIRECT}PermitsAcquireTimeoutMillis", milliseconds, dynamic=True
    )

    @property
    def heap(self) -> MemoryLimit:
        """The limit on heap memory (LimitType.HEAP_MEMORY)."""
        return MemoryLimit(self.heap_max_bytes, self.heap_queue_size, self.heap_timeout_seconds)

    @property
    def direct(self) -> MemoryLimit:
        """The limit on direct memory (LimitType.DIRECT_MEMORY)."""
        return MemoryLimit(
            self.direct_max_bytes, self.direct_queue_size, self.direct_timeout_seconds
        )


class ServerConfig(Settings):
    """The complete configuration of a server process, broker or proxy."""

    cluster_name: str = Key("clusterName", floodgate="standalone", pulsar="standalone")
    """clusterName. Differs: upstream's broker does not start without it."""
    bind_address: str = Read(addresses.bind_address)
    """bindAddress: the address to listen on. Differs: upstream's default is 0.0.0.0."""
    advertised_address: str = Read(addresses.advertised_address)
    """advertisedAddress: the host advertised to clients.

    Differs: upstream uses this machine's host name, which need not be resolvable. Here it is the
    bind address, or the loopback's if the bind address means every address.
    """
    web_service_port: int | None = Read(partial(plain_port, key="webServicePort"))
    """webServicePort; 0 is any free port, None only if a TLS port is set."""
    web_service_port_tls: int | None = Key("webServicePortTls")
    """0 is any free port, None for no TLS."""
    web_tls: ServerTlsSettings | None = Read(
        partial(port_tls, port_key="webServicePortTls", web=True)
    )
    """tls...FilePath and webServiceTls... keys; None for no TLS."""
    service_port_tls: int | None
    """brokerServicePortTls of a broker, servicePortTls of a proxy; 0 is any free port."""
    tls: ServerTlsSettings | None
    """tls... keys, and floodgateTlsHandshakeTimeoutMs; None for no TLS."""
    max_message_size: int = Key("maxMessageSize")
    """Most bytes of a message; a frame may have 10,240 more."""
    topic_list_limits: TopicListLimits = Group(TopicListLimits)
    flow: FlowConfig = Group(FlowConfig)
    """Flow control. Differs: upstream's proxy has only keepAliveIntervalSeconds, and Netty's
    marks."""
    status_file_path: str | None = Key("statusFilePath")
    """A file whose presence is reported by /status.html."""
    limits: LimitConfig = Group(LimitConfig)
    profile: Profile = Key("floodgateProfile", Profile)
    """Chooses the default of keys that differ by profile."""
    admission: AdmissionRules = Read(lambda checked: _admission_rules(checked))
    """floodgateAdmissionPolicy; profile pulsar: fifo. Unless the policy is fifo also
    floodgateTopicListMaxBytesPerConnection, ...PerNamespace, ...PerTenant and
    floodgateTopicListOverdraftMaxBytes, each for heap and for direct memory alike."""
    size_estimate: SizeEstimate = Key(
        "floodgateSizeEstimate", SizeEstimate, floodgate="exact", pulsar="last"
    )
    response_buffers: ResponseBuffers = Key(
        "floodgateResponseBuffers", ResponseBuffers, floodgate="shared", pulsar="private"
    )
    limiter_ledger: bool = Key("floodgateLimiterLedger")
    """Record every acquire and release of memory; memory unreleased after the drain is an error."""
    allowed_hosts: frozenset[str] = Read(
        lambda checked: frozenset(name.lower() for name in checked.names("floodgateAllowedHosts"))
    )
    """floodgateAllowedHosts: host names under which HTTP is served besides this server's own.

    A name beginning with a dot matches all names below it; ``*`` matches every name.
    """
    faults_enabled: bool = Key("floodgateFaultsEnabled")
    """Faults can be set by request, and a broker can be reset to empty."""
    socket_send_buffer_bytes: int = Key("floodgateSocketSendBufferBytes")
    """SO_SNDBUF of accepted connections; 0 keeps the kernel's default."""
    authentication: AuthenticationSettings | None
    """authentication* and token*, basicAuthConf, anonymousUserRole, strictAuthMethod,
    authenticateMetricsEndpoint, and the keys of broker or proxy; None: no authentication."""
    authorization: AuthorizationSettings | None
    """authorization*, superUserRoles, proxyRoles; None: all peers may do everything."""
    notices: tuple[Notice, ...] = ()
    """Sentences to log at the start."""
    keys: CheckedKeys = field(compare=False, repr=False)
    """The keys as read; ignored in comparisons, so that configurations of equal meaning are
    equal."""

    @classmethod
    def made(cls, known: KnownKeys, properties: Mapping[str, str]) -> Self:
        """Return the configuration that the keys and values of a file describe.

        Raises:
            ConfigError: All problems, a sentence each.
        """
        checked = known.check(with_token_prefix(properties))
        refuse_true(checked, REFUSED_WHEN_TRUE)
        found = cls.of(checked, keys=checked)
        notices = checked.finish()
        if checked.problems:
            raise ConfigError(checked.problems)
        return replace(found, notices=notices)

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The keys that a server shows in its info because it is a broker, or a proxy."""
        return ()

    @property
    def connection_bounds(self) -> ConnectionBounds:
        """The largest allowed numbers of simultaneous client connections."""
        return ConnectionBounds()


def _policy(checked: CheckedKeys, name: str) -> AdmissionPolicy | type[Admission]:
    """Return the admission policy that ``name`` selects: built-in, or an imported class.

    A class that cannot be used becomes a problem of ``checked``.
    """
    if not is_class_path(name):
        return AdmissionPolicy(name)
    try:
        return loaded_class(name, Admission)
    except UnusableClassError as error:
        checked.refuse(f"{POLICY_KEY}={name}: {error}")
        return AdmissionPolicy.FIFO


def _admission_rules(checked: CheckedKeys) -> AdmissionRules:
    """Return the configured admission policy and its limits; policy fifo has no limits."""
    if not checked.is_set(POLICY_KEY):
        checked.choose(POLICY_KEY, "fifo" if checked.pulsar_compatible else "fair")
    policy = _policy(checked, checked.text(POLICY_KEY) or "")
    if policy is AdmissionPolicy.FIFO:
        for key in (*CAP_KEYS.values(), OVERDRAFT_KEY):
            if checked.value(key):
                checked.refuse(
                    f"{key}={checked.value(key)}: only {POLICY_KEY}=fair, or a class, has such a "
                    "limit; set that, or remove the key"
                )
    overdraft = checked.value(OVERDRAFT_KEY)
    return AdmissionRules(
        policy,
        overdraft if isinstance(overdraft, int) else None,
        AdmissionCaps(
            per_connection=checked.integer(CAP_KEYS[LimitScope.CONNECTION]),
            per_namespace=checked.integer(CAP_KEYS[LimitScope.NAMESPACE]),
            per_tenant=checked.integer(CAP_KEYS[LimitScope.TENANT]),
        ),
    )
