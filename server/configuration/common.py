"""Configuration shared by broker and proxy.

Each concern is a frozen model. Megabytes and milliseconds are converted here, once; all other
modules use bytes and seconds.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Self

from pydantic import BaseModel, ConfigDict, Field, InstanceOf

from limiter.admission.caps import AdmissionCaps
from limiter.admission.policy import Admission
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.errors import LimitScope
from limiter.memory.dual_limiter import LimitType, MemoryLimit
from limiter.memory.size_estimate import SizeEstimate
from server.configuration.addresses import LOOPBACK, advertised_address, bind_address
from server.configuration.authentication import AuthenticationSettings
from server.configuration.authorization import AuthorizationSettings
from server.configuration.flow import FlowConfig
from server.configuration.known_keys import Notice
from server.configuration.limits import LimitConfig
from server.configuration.loaded_class import UnusableClassError, is_class_path, loaded_class
from server.configuration.tls_keys import port_tls
from server.limits.connections import ConnectionBounds
from server.tls.settings import ServerTlsSettings

if TYPE_CHECKING:
    from server.configuration.known_keys import CheckedKeys

MEGABYTE_BYTES = 1024 * 1024

LIMIT_KEYS = {
    LimitType.HEAP_MEMORY: "maxTopicListInFlightHeapMemSizeMB",
    LimitType.DIRECT_MEMORY: "maxTopicListInFlightDirectMemSizeMB",
}
CAP_KEYS = {
    LimitScope.CONNECTION: "floodgateTopicListMaxBytesPerConnection",
    LimitScope.NAMESPACE: "floodgateTopicListMaxBytesPerNamespace",
    LimitScope.TENANT: "floodgateTopicListMaxBytesPerTenant",
}
POLICY_KEY = "floodgateAdmissionPolicy"
OVERDRAFT_KEY = "floodgateTopicListOverdraftMaxBytes"


class Profile(Enum):
    """The behaviour of a process: Pulsar's as released, or Floodgate's."""

    PULSAR = "pulsar"
    FLOODGATE = "floodgate"


class ResponseBuffers(Enum):
    """Buffers of responses: requests for the same topic list share its encoded bytes, or not."""

    PRIVATE = "private"
    SHARED = "shared"


class TopicListLimits(BaseModel):
    """Memory limits of in-flight topic lists.

    Units: bytes and seconds. A maximum of 0 or less means no limit and no accounting, a queue size
    of 0 or less an unbounded queue, as upstream.

    Source: PIP-442, ServiceConfiguration's six maxTopicListInFlight* keys; same defaults.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    heap_max_bytes: int = 100 * MEGABYTE_BYTES
    heap_queue_size: int = 10_000
    heap_timeout_seconds: float = 25.0
    direct_max_bytes: int = 100 * MEGABYTE_BYTES
    direct_queue_size: int = 10_000
    direct_timeout_seconds: float = 25.0

    @property
    def heap(self) -> MemoryLimit:
        """The budget of LimitType.HEAP_MEMORY."""
        return MemoryLimit(self.heap_max_bytes, self.heap_queue_size, self.heap_timeout_seconds)

    @property
    def direct(self) -> MemoryLimit:
        """The budget of LimitType.DIRECT_MEMORY."""
        return MemoryLimit(
            self.direct_max_bytes, self.direct_queue_size, self.direct_timeout_seconds
        )

    @classmethod
    def from_keys(cls, checked: CheckedKeys) -> Self:
        """Read the six keys."""
        heap = "maxTopicListInFlightHeapMemSize"
        direct = "maxTopicListInFlightDirectMemSize"
        return cls(
            heap_max_bytes=checked.integer(f"{heap}MB") * MEGABYTE_BYTES,
            heap_queue_size=checked.integer(f"{heap}PermitsAcquireQueueSize"),
            heap_timeout_seconds=checked.seconds(f"{heap}PermitsAcquireTimeoutMillis"),
            direct_max_bytes=checked.integer(f"{direct}MB") * MEGABYTE_BYTES,
            direct_queue_size=checked.integer(f"{direct}PermitsAcquireQueueSize"),
            direct_timeout_seconds=checked.seconds(f"{direct}PermitsAcquireTimeoutMillis"),
        )


class ServerConfig(BaseModel):
    """The configuration of a server process.

    A field's ``validation_alias`` is its key in the file; fields without an alias are converted
    from the keys named in their docstrings. Units are in the names: bytes and seconds.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="forbid")

    cluster_name: str = "standalone"
    """clusterName. Differs: upstream's broker does not start without it."""
    bind_address: str = LOOPBACK
    """bindAddress: the address to listen on. Differs: upstream's default is 0.0.0.0."""
    advertised_address: str = LOOPBACK
    """advertisedAddress: the host advertised to clients.

    Differs: upstream uses this machine's host name, which need not be resolvable. Here it is the
    bind address, or the loopback's if the bind address means every address.
    """
    web_service_port: int | None = Field(default=8080, ge=0, le=65535)
    """webServicePort; 0 is any free port, None only if a TLS port is set."""
    web_service_port_tls: int | None = Field(default=None, ge=0, le=65535)
    """webServicePortTls; 0 is any free port, None for no TLS."""
    web_tls: ServerTlsSettings | None = None
    """tls...FilePath and webServiceTls... keys; None for no TLS."""
    service_port_tls: int | None = Field(default=None, ge=0, le=65535)
    """brokerServicePortTls of a broker, servicePortTls of a proxy; 0 is any free port."""
    tls: ServerTlsSettings | None = None
    """tls... keys, and floodgateTlsHandshakeTimeoutMs; None for no TLS."""
    max_message_size: int = Field(default=5_242_880, ge=1, validation_alias="maxMessageSize")
    """Most bytes of a message; a frame may have 10,240 more."""
    topic_list_limits: TopicListLimits = TopicListLimits()
    """The six maxTopicListInFlight* keys."""
    flow: FlowConfig = FlowConfig()
    """pulsarChannel*, keepAliveIntervalSeconds and Floodgate's own: see FlowConfig.

    Differs: upstream's proxy has no such keys but the last, and Netty's own marks.
    """
    status_file_path: str | None = Field(default=None, validation_alias="statusFilePath")
    """A file whose presence is reported by /status.html."""
    limits: LimitConfig = LimitConfig()
    """httpRequestsLimitEnabled and other HTTP keys, and Floodgate's own: see LimitConfig."""
    profile: Profile = Profile.FLOODGATE
    """floodgateProfile: the default of the next three, which have their own keys, and of ``flow``.
    """
    admission: InstanceOf[AdmissionRules] = AdmissionRules(AdmissionPolicy.FAIR)
    """floodgateAdmissionPolicy; profile pulsar: fifo. Unless the policy is fifo also
    floodgateTopicListMaxBytesPerConnection, ...PerNamespace, ...PerTenant and
    floodgateTopicListOverdraftMaxBytes, each for heap and for direct memory alike."""
    size_estimate: SizeEstimate = SizeEstimate.EXACT
    """floodgateSizeEstimate; profile pulsar: last."""
    response_buffers: ResponseBuffers = ResponseBuffers.SHARED
    """floodgateResponseBuffers; profile pulsar: private."""
    limiter_ledger: bool = Field(default=True, validation_alias="floodgateLimiterLedger")
    """floodgateLimiterLedger: record every acquire and release of memory; memory unreleased
    after the drain is an error."""
    allowed_hosts: frozenset[str] = frozenset()
    """floodgateAllowedHosts: host names under which HTTP is served besides this server's own.

    A name beginning with a dot matches all names below it; ``*`` matches every name.
    """
    faults_enabled: bool = Field(default=False, validation_alias="floodgateFaultsEnabled")
    """floodgateFaultsEnabled: faults can be set by request, and a broker can be reset to empty."""
    socket_send_buffer_bytes: int = Field(
        default=0, ge=0, validation_alias="floodgateSocketSendBufferBytes"
    )
    """SO_SNDBUF of accepted connections; 0 keeps the kernel's default."""
    authentication: InstanceOf[AuthenticationSettings] | None = None
    """authentication* and token*, basicAuthConf, anonymousUserRole, strictAuthMethod,
    authenticateMetricsEndpoint, and the keys of broker or proxy; None: no authentication."""
    authorization: InstanceOf[AuthorizationSettings] | None = None
    """authorization*, superUserRoles, proxyRoles; None: all peers may do everything."""
    notices: tuple[Notice, ...] = ()
    """Sentences to log at the start."""

    @property
    def own_keys(self) -> dict[str, str]:
        """The keys of this kind of server in its info, with effective values."""
        return {}

    @property
    def connection_bounds(self) -> ConnectionBounds:
        """Most simultaneous connections of clients."""
        return ConnectionBounds()


def shared_values(checked: CheckedKeys, port_key: str) -> dict[str, object]:
    """Return the values of ServerConfig's fields without an alias, by field name.

    Args:
        checked: The keys.
        port_key: The key of the plain binary port, different for broker and proxy.
    """
    listen_on = bind_address(checked)
    _, service_port_tls = checked.ports(port_key, f"{port_key}Tls")
    web_service_port, web_service_port_tls = checked.ports("webServicePort", "webServicePortTls")
    return {
        "cluster_name": checked.text("clusterName") or "standalone",
        "bind_address": listen_on,
        "advertised_address": advertised_address(checked, listen_on),
        "allowed_hosts": frozenset(name.lower() for name in checked.names("floodgateAllowedHosts")),
        "web_service_port": web_service_port,
        "web_service_port_tls": web_service_port_tls,
        "web_tls": port_tls(checked, "webServicePortTls", web=True),
        "service_port_tls": service_port_tls,
        "tls": port_tls(checked, f"{port_key}Tls", web=False),
        "topic_list_limits": TopicListLimits.from_keys(checked),
        **_floodgate_choices(checked),
    }


def _floodgate_choices(checked: CheckedKeys) -> dict[str, object]:
    profile = Profile(checked.text("floodgateProfile"))
    pulsar_compatible = profile is Profile.PULSAR
    estimate = checked.text("floodgateSizeEstimate") or ("last" if pulsar_compatible else "exact")
    buffers = checked.text("floodgateResponseBuffers") or (
        "private" if pulsar_compatible else "shared"
    )
    policy = checked.text(POLICY_KEY) or ("fifo" if pulsar_compatible else "fair")
    return {
        "profile": profile,
        "size_estimate": SizeEstimate(estimate),
        "response_buffers": ResponseBuffers(buffers),
        "admission": _admission_rules(checked, _policy(checked, policy)),
        "flow": FlowConfig.from_keys(checked, pulsar_compatible=pulsar_compatible),
        "limits": LimitConfig.from_keys(checked, pulsar_compatible=pulsar_compatible),
    }


def _policy(checked: CheckedKeys, name: str) -> AdmissionPolicy | type[Admission]:
    """Return a built-in policy, or an imported class; an unusable class becomes a problem."""
    if not is_class_path(name):
        return AdmissionPolicy(name)
    try:
        return loaded_class(name, Admission)
    except UnusableClassError as error:
        checked.refuse(f"{POLICY_KEY}={name}: {error}")
        return AdmissionPolicy.FIFO


def _admission_rules(
    checked: CheckedKeys, policy: AdmissionPolicy | type[Admission]
) -> AdmissionRules:
    """Read the limits of fair and of custom policies; fifo has none."""
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
