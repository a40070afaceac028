"""The broker's configuration, parsed from Pulsar's configuration keys.

``BrokerConfig.from_properties`` is pure, except for reading a store's URL from a file; the file of
keys and the command line are read elsewhere. Defaults are upstream's (in ``broker_keys.json``),
unless a row says otherwise.
"""

from __future__ import annotations

from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Self

from broker.configuration.plugin_keys import (
    DEFAULT_CLASS_NAME,
    PropertyBounds,
    resources_class_name,
)
from broker.configuration.publishing_keys import (
    DispatchSettings,
    PublishingConfig,
    default_policies,
)
from broker.configuration.store_keys import (
    MAX_KEY,
    SHOWN_KEYS,
    MessageStoreKeys,
    metadata_store_url,
)
from broker.patterns.filter import PatternRules
from server.configuration.addresses import plain_port
from server.configuration.authentication import (
    PREFIX_KEY,
    STORE_KEYS,
    AuthenticationSettings,
    authentication_settings,
)
from server.configuration.authorization import AuthorizationSettings, authorization_settings
from server.configuration.common import Profile, ServerConfig
from server.configuration.known_keys import CheckedKeys, KnownKeys
from server.configuration.settings import Group, Key, Read, Settings, megabytes, milliseconds
from server.configuration.tls_keys import port_tls
from server.limits.connections import ConnectionBounds
from server.module_names import module_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.policies.effective import EffectivePolicies
    from server.tls.settings import ServerTlsSettings


class MetricKeys(Settings):
    """Settings that choose the topics, consumers and producers with metrics of their own."""

    topics: bool = Key("exposeTopicLevelMetricsInPrometheus")
    """Metrics by topic and subscription instead of by namespace."""
    consumers: bool = Key("exposeConsumerLevelMetricsInPrometheus")
    producers: bool = Key("exposeProducerLevelMetricsInPrometheus")
    most_subjects: int = Key("floodgateMaxMetricSubjects")
    """The largest number of topics, subscriptions, consumers and producers with separate metrics;
    further ones count for their namespace."""


class WatchSettings(Settings):
    """The limit on the memory of topic-list watches; 0 is unlimited.

    Upstream has no limit.
    """

    max_bytes: int = Key("floodgateTopicWatchMaxBytes", floodgate=256 << 20, pulsar=0)
    """The largest memory of all watches together, in bytes."""


MISSING_PARTS: Mapping[str, str] = {
    "transactionCoordinatorEnabled": "there are no transactions here, they are refused",
    "functionsWorkerEnabled": "there are no functions, sources and sinks here, they are refused",
    "enablePackagesManagement": "there are no packages here, they are refused",
    "webSocketServiceEnabled": "WebSockets are not served here",
    "managedLedgerOffloadDriver": "nothing is offloaded here",
    "entryFilterNames": "there are no entry filters here, every entry is delivered",
    "brokerInterceptors": "Java's classes are not loaded here, nothing is intercepted",
    "brokerEntryMetadataInterceptors": "entries have no metadata of the broker here",
    "messagingProtocols": "no protocol but Pulsar's own is served here",
    "additionalServlets": "Java's classes are not loaded here, no servlet is added",
}
"""Keys of parts that this broker lacks, and a sentence about each part."""


def warn_of_missing_parts(checked: CheckedKeys) -> None:
    """Warn of each configuration key that switches on a feature missing in this broker."""
    for key, sentence in MISSING_PARTS.items():
        value = checked.value(key)
        if value:
            names = ",".join(value) if isinstance(value, tuple) else str(value)
            shown = names.lower() if value is True else names[:100]
            checked.warn(f"{key}={shown}: {sentence}")


_PORT_KEY = "brokerServicePort"


class BrokerConfig(ServerConfig):
    """The configuration of a broker, including the settings common to all servers."""

    broker_service_port: int | None = Read(partial(plain_port, key=_PORT_KEY))
    """brokerServicePort; 0 is any free port, None requires a TLS port."""
    service_port_tls: int | None = Key(f"{_PORT_KEY}Tls")
    tls: ServerTlsSettings | None = Read(partial(port_tls, port_key=f"{_PORT_KEY}Tls", web=False))
    authentication: AuthenticationSettings | None = Read(
        partial(authentication_settings, proxy=False)
    )
    authorization: AuthorizationSettings | None = Read(partial(authorization_settings, proxy=False))
    broker_max_connections: int = Key("brokerMaxConnections")
    """The largest number of simultaneous client connections; 0 or less is no limit."""
    broker_max_connections_per_ip: int = Key("brokerMaxConnectionsPerIp")
    """The largest number of simultaneous client connections of an IP address; 0 or less is no
    limit."""
    max_concurrent_lookup_requests: int = Key("maxConcurrentLookupRequest")
    """The largest number of lookups, metadata requests and listings in flight."""
    max_concurrent_topic_loads: int = Key("maxConcurrentTopicLoadRequest")
    """The largest number of topics loaded concurrently; further topics wait."""
    patterns: PatternRules = Group(PatternRules)
    enable_broker_topic_list_watcher: bool = Key("enableBrokerTopicListWatcher")
    pulsar_resources_extended_class_name: str = Read(resources_class_name)
    """pulsarResourcesExtendedClassName: module:Class of the plug-in that lists by properties."""
    resources_timeout_seconds: float = Key("floodgateResourcesTimeoutMs", milliseconds)
    """The time limit of a call to the listing plug-in."""
    listing_properties: PropertyBounds = Group(PropertyBounds)
    default_num_partitions: int = Key("defaultNumPartitions")
    max_num_partitions_per_partitioned_topic: int = Key("maxNumPartitionsPerPartitionedTopic")
    """The largest number of partitions; 0 or less is no limit, also for the next three fields."""
    max_topics_per_namespace: int = Key("maxTopicsPerNamespace")
    max_namespaces_per_tenant: int = Key("maxNamespacesPerTenant")
    max_tenants: int = Key("maxTenants")
    default_number_of_namespace_bundles: int = Key("defaultNumberOfNamespaceBundles")
    force_delete_namespace_allowed: bool = Key("forceDeleteNamespaceAllowed")
    force_delete_tenant_allowed: bool = Key("forceDeleteTenantAllowed")
    metadata_store_url: str = Read(metadata_store_url)
    """floodgateMetadataStoreUrl, otherwise metadataStoreUrl if Floodgate supports its store.

    ``memory:local`` is the default and ends with the process; ``sqlite:///path`` survives
    restarts; ``postgresql://...`` may be shared by several brokers.
    """
    broker_shutdown_timeout_seconds: float = Key("brokerShutdownTimeoutMs", milliseconds)
    """The time limit of a drain at the broker's shutdown."""
    metadata_store_session_timeout_seconds: float = Key(
        "metadataStoreSessionTimeoutMillis", milliseconds
    )
    """How long brokers on a shared store wait before they take over the topics of a broker whose
    lease has expired."""
    snapshot_cache_max_bytes: int = Key("floodgateSnapshotCacheMB", megabytes)
    watches: WatchSettings = Group(WatchSettings)
    listing_cache_max_bytes: int = Key("floodgateListingCacheMB", megabytes)
    """The size of the cache for results and columns of topic patterns; 0 disables the cache."""
    failover_delay_ms: int = Key("activeConsumerFailoverDelayTimeMillis")
    """Delay before a Failover subscription's new active consumer is notified."""
    dispatch: DispatchSettings = Group(DispatchSettings)
    acks_of_batch_indexes: bool = Key("acknowledgmentAtBatchIndexLevelEnabled")
    """True if single messages of a batch can be acknowledged."""
    uses_consistent_hashing: bool = Key("subscriptionKeySharedUseConsistentHashing")
    ring_points: int = Key("subscriptionKeySharedConsistentHashingReplicaPoints")
    """Points of a Key_Shared consumer on the consistent-hash ring."""
    strict_delivery_time: bool = Key("isDelayedDeliveryDeliverAtTimeStrict")
    """True if delayed messages are never delivered early."""
    max_consumer_metadata: int = Key("maxConsumerMetadataSize")
    """The largest number of characters in a consumer's metadata."""
    liveness_check_ms: int = Key("connectionLivenessCheckTimeoutMillis")
    """How long a client may take to answer a ping when another client requests its producer or
    consumer."""
    message_store: MessageStoreKeys = Group(MessageStoreKeys)
    import_directory: Path | None = Key(
        "floodgateImportDirectory", lambda path: Path(path) if path else None
    )
    """The only folder from which topics may be imported at run time; None forbids it."""
    policies: EffectivePolicies = Read(default_policies)
    """The policies of topics for which neither topic nor namespace sets any."""
    publishing: PublishingConfig = Group(PublishingConfig)
    metrics: MetricKeys = Group(MetricKeys)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Build the configuration from the keys of broker.conf.

        Raises:
            ConfigError: The keys have problems; the error has a sentence about each problem.
        """
        return cls.made(known_keys(), properties)

    @classmethod
    def of(cls, checked: CheckedKeys, **others: object) -> Self:
        """Build the configuration from checked keys; warn of features missing in this broker.

        ``Settings.of`` describes the arguments.
        """
        warn_of_missing_parts(checked)
        _refuse_tls_without_port(checked)
        return super().of(checked, **others)

    @property
    def settled(self) -> dict[str, str]:
        """The configured keys, with values that were read from files or measured at the start."""
        others = {PREFIX_KEY, *STORE_KEYS}
        kept = {key: text for key, text in self.keys.properties.items() if key not in others}
        most = str(self.message_store.max_bytes // megabytes(1))
        return {**kept, "floodgateMetadataStoreUrl": self.metadata_store_url, MAX_KEY: most}

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The keys shown in the broker's information, besides the keys common to all servers."""
        return (*SHOWN_KEYS, "maxMessagePublishBufferSizeInMB")

    @property
    def connection_bounds(self) -> ConnectionBounds:
        """The limits on client connections, in total and for each IP address."""
        return ConnectionBounds(self.broker_max_connections, self.broker_max_connections_per_ip)

    @property
    def announces_topic_watchers(self) -> bool:
        """True if the broker offers watches of topic lists to clients.

        Watches ignore properties, so a filtering plug-in disables watches. As shipped, the operator
        has to disable watches (PIP-452, "Out of Scope").
        """
        fits = self.pulsar_resources_extended_class_name == DEFAULT_CLASS_NAME
        return self.enable_broker_topic_list_watcher and (fits or self.profile is Profile.PULSAR)


@cache
def known_keys() -> KnownKeys:
    """Return the keys of Pulsar 4.2's broker and Floodgate's own."""
    packaged = resources.files(module_name("broker")).joinpath("broker_keys.json")
    return KnownKeys.from_json(packaged.read_text(encoding="utf-8"))


def _refuse_tls_without_port(checked: CheckedKeys) -> None:
    """Refuse ``tlsEnabled=true``, a key of older versions, if no TLS port is configured."""
    ports = (f"{_PORT_KEY}Tls", "webServicePortTls")
    if checked.flag("tlsEnabled") and all(checked.value(key) is None for key in ports):
        checked.refuse(f"tlsEnabled=true: no port speaks TLS; set {' or '.join(ports)} instead")
