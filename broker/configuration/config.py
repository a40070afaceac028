"""The broker's configuration: Pulsar's keys in, a frozen model out.

``BrokerConfig.from_properties`` is pure, except for reading a store's URL from a file; the file of
keys and the command line are read elsewhere. Defaults are upstream's (in ``broker_keys.json``),
unless a field says otherwise.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import Field, InstanceOf

from broker.bundles import MAX_BUNDLES
from broker.configuration.message_store_keys import (
    MessageStoreKeys,
    message_store_keys,
    temporary_store,
)
from broker.configuration.metric_keys import MetricKeys, metric_keys
from broker.configuration.missing_parts import warn_of_missing_parts
from broker.configuration.plugin_keys import (
    DEFAULT_CLASS_NAME,
    PropertyBounds,
    property_bounds,
    resources_class_name,
)
from broker.configuration.policy_keys import default_policies
from broker.configuration.publishing_keys import BUFFER_KEY, PublishingConfig, publishing_config
from broker.configuration.store_keys import DEFAULT_METADATA_STORE_URL, metadata_store_url
from broker.patterns.pattern import RegexImplementation
from broker.policies.effective import DEFAULTS, EffectivePolicies
from broker.stores.store_url import without_password
from server.configuration.authentication import authentication_settings, with_token_prefix
from server.configuration.authorization import authorization_settings
from server.configuration.common import MEGABYTE_BYTES, Profile, ServerConfig, shared_values
from server.configuration.known_keys import (
    REFUSED_WHEN_TRUE,
    CheckedKeys,
    KnownKeys,
    refuse_true,
)
from server.configuration.model import build_model
from server.limits.connections import ConnectionBounds
from server.module_names import module_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class GivenKeys:
    """The given keys with their values as text; never shown, as some are secrets.

    All instances are equal, so that configurations of equal meaning are equal, however written.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = dict(values or {})

    def __repr__(self) -> str:
        return f"<GivenKeys {len(self._values)} keys>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GivenKeys)

    def __hash__(self) -> int:
        return hash(GivenKeys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def get(self, key: str) -> str | None:
        """Return the given value of a key, or None."""
        return self._values.get(key)

    def with_values(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return all keys and values, with some values replaced."""
        return {**self._values, **values}


DEFAULT_WATCH_BYTES = 256 * MEGABYTE_BYTES

_PORT_KEY = "brokerServicePort"


class TopicType(Enum):
    """The kind of an automatically created topic."""

    PARTITIONED = "partitioned"
    NON_PARTITIONED = "non-partitioned"


class BrokerConfig(ServerConfig):
    """The configuration of a broker at its start; extends ServerConfig."""

    broker_service_port: int | None = Field(default=6650, ge=0, le=65535)
    """brokerServicePort; 0 is any free port, None requires a TLS port."""
    broker_max_connections: int = Field(default=0, validation_alias="brokerMaxConnections")
    """Most simultaneous client connections; 0 or less: unlimited."""
    broker_max_connections_per_ip: int = Field(
        default=0, validation_alias="brokerMaxConnectionsPerIp"
    )
    """Most simultaneous client connections of an address; 0 or less: unlimited."""
    max_concurrent_lookup_requests: int = Field(
        default=50_000, ge=0, validation_alias="maxConcurrentLookupRequest"
    )
    """Most lookups, metadata requests and listings in flight."""
    max_concurrent_topic_loads: int = Field(
        default=5_000, ge=1, validation_alias="maxConcurrentTopicLoadRequest"
    )
    """Most topics loaded concurrently; further topics wait."""
    enable_broker_side_subscription_pattern_evaluation: bool = Field(
        default=True, validation_alias="enableBrokerSideSubscriptionPatternEvaluation"
    )
    enable_broker_topic_list_watcher: bool = Field(
        default=True, validation_alias="enableBrokerTopicListWatcher"
    )
    pulsar_resources_extended_class_name: str = DEFAULT_CLASS_NAME
    """pulsarResourcesExtendedClassName: module:Class of the plug-in that lists by properties."""
    resources_timeout_seconds: float = Field(default=30.0, gt=0)
    """floodgateResourcesTimeoutMs: time limit of a plug-in's call."""
    listing_properties: PropertyBounds = PropertyBounds()
    """floodgateMaxListingProperties, floodgateMaxListingPropertiesBytes; profile pulsar:
    unlimited."""
    subscription_pattern_max_length: int = Field(
        default=50, validation_alias="subscriptionPatternMaxLength"
    )
    """Most UTF-16 units of a pattern evaluated by the broker."""
    topics_pattern_regex_implementation: RegexImplementation = Field(
        default=RegexImplementation.RE2J_WITH_JDK_FALLBACK,
        validation_alias="topicsPatternRegexImplementation",
    )
    allow_auto_topic_creation: bool = Field(default=True, validation_alias="allowAutoTopicCreation")
    allow_auto_topic_creation_type: TopicType = Field(
        default=TopicType.NON_PARTITIONED, validation_alias="allowAutoTopicCreationType"
    )
    default_num_partitions: int = Field(default=1, ge=1, validation_alias="defaultNumPartitions")
    max_num_partitions_per_partitioned_topic: int = Field(
        default=0, validation_alias="maxNumPartitionsPerPartitionedTopic"
    )
    """0 or less is unlimited, also for the next three fields."""
    max_topics_per_namespace: int = Field(default=0, validation_alias="maxTopicsPerNamespace")
    max_namespaces_per_tenant: int = Field(default=0, validation_alias="maxNamespacesPerTenant")
    max_tenants: int = Field(default=0, validation_alias="maxTenants")
    default_number_of_namespace_bundles: int = Field(
        default=4, ge=1, le=MAX_BUNDLES, validation_alias="defaultNumberOfNamespaceBundles"
    )
    force_delete_namespace_allowed: bool = Field(
        default=False, validation_alias="forceDeleteNamespaceAllowed"
    )
    force_delete_tenant_allowed: bool = Field(
        default=False, validation_alias="forceDeleteTenantAllowed"
    )
    metadata_store_url: str = DEFAULT_METADATA_STORE_URL
    """floodgateMetadataStoreUrl, otherwise metadataStoreUrl if Floodgate supports its store.

    ``memory:local`` is the default and ends with the process; ``sqlite:///path`` survives
    restarts; ``postgresql://...`` may be shared by several brokers.
    """
    broker_shutdown_timeout_seconds: float = Field(default=60.0, ge=0)
    """brokerShutdownTimeoutMs: time limit of a drain."""
    metadata_store_session_timeout_seconds: float = Field(default=30.0, ge=0.1)
    """metadataStoreSessionTimeoutMillis: how long brokers on a shared store wait for a silent peer
    before they take over its topics."""
    snapshot_cache_max_bytes: int = Field(default=1024 * MEGABYTE_BYTES, ge=0)
    """floodgateSnapshotCacheMB."""
    topic_watch_max_bytes: int = Field(default=DEFAULT_WATCH_BYTES, ge=0)
    """floodgateTopicWatchMaxBytes: most memory of watches; 0 is unlimited.

    Profile pulsar: 0, as upstream's watches are not charged.
    """
    listing_cache_max_bytes: int = Field(default=64 * MEGABYTE_BYTES, ge=0)
    """floodgateListingCacheMB: cache of patterns' results and columns; 0 disables."""
    pattern_timeout_seconds: float = Field(default=1.0, gt=0)
    """floodgatePatternTimeoutMs: for 100,000 topics, by a backtracking engine."""
    failover_delay_ms: int = Field(
        default=1_000, ge=0, validation_alias="activeConsumerFailoverDelayTimeMillis"
    )
    """Delay before a Failover subscription's new active consumer is notified."""
    round_robin_messages: int = Field(
        default=20, ge=1, validation_alias="dispatcherMaxRoundRobinBatchSize"
    )
    """Most messages for a Shared consumer before the next consumer's."""
    acks_of_batch_indexes: bool = Field(
        default=True, validation_alias="acknowledgmentAtBatchIndexLevelEnabled"
    )
    """Messages of a batch are acknowledged singly."""
    look_ahead_per_consumer: int = Field(
        default=2_000,
        ge=1,
        validation_alias="keySharedLookAheadMsgInReplayThresholdPerConsumer",
    )
    look_ahead: int = Field(
        default=20_000,
        ge=1,
        validation_alias="keySharedLookAheadMsgInReplayThresholdPerSubscription",
    )
    """Most entries read past the waiting keys of Key_Shared."""
    uses_consistent_hashing: bool = Field(
        default=True, validation_alias="subscriptionKeySharedUseConsistentHashing"
    )
    ring_points: int = Field(
        default=100,
        ge=1,
        le=1_000,
        validation_alias="subscriptionKeySharedConsistentHashingReplicaPoints",
    )
    """Points of a Key_Shared consumer on the ring of hashes."""
    strict_delivery_time: bool = Field(
        default=False, validation_alias="isDelayedDeliveryDeliverAtTimeStrict"
    )
    """Delayed messages are never early."""
    liveness_check_ms: int = Field(
        default=5_000, ge=0, validation_alias="connectionLivenessCheckTimeoutMillis"
    )
    """Time limit of a client's answer when another client requests its producer or consumer."""
    message_store: MessageStoreKeys = Field(default_factory=temporary_store)
    """floodgateMessageStore and the keys with this prefix."""
    import_directory: Path | None = None
    """floodgateImportDirectory: source of imports at run time."""
    policies: InstanceOf[EffectivePolicies] = DEFAULTS
    """The policies about messages without policies of topic and namespace."""
    publishing: InstanceOf[PublishingConfig] = PublishingConfig()
    """Bounds of publishing, and intervals of the maintenance of topics."""
    metrics: InstanceOf[MetricKeys] = MetricKeys()
    """Subjects with metrics of their own."""
    given: InstanceOf[GivenKeys] = GivenKeys()
    """The given keys; values set at run time are parsed together with them."""

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Build the configuration from the keys of broker.conf.

        Raises:
            ConfigError: All problems, a sentence each.
        """
        properties = with_token_prefix(properties)
        checked = known_keys().check(properties)
        refuse_true(checked, REFUSED_WHEN_TRUE)
        warn_of_missing_parts(checked)
        _refuse_tls_without_port(checked)
        return build_model(cls, {**_converted(checked), "given": GivenKeys(properties)}, checked)

    def __repr_args__(self) -> Iterable[tuple[str | None, object]]:
        """Show every field, without passwords."""
        for name, value in super().__repr_args__():
            yield name, without_password(str(value)) if name == "metadata_store_url" else value

    @property
    def own_keys(self) -> dict[str, str]:
        """Keys of the message store, and the bound of unstored messages."""
        megabytes = self.publishing.buffer_bytes // MEGABYTE_BYTES
        return {**self.message_store.told, BUFFER_KEY: str(megabytes)}

    @property
    def connection_bounds(self) -> ConnectionBounds:
        """BrokerMaxConnections and brokerMaxConnectionsPerIp."""
        return ConnectionBounds(self.broker_max_connections, self.broker_max_connections_per_ip)

    @property
    def announces_topic_watchers(self) -> bool:
        """True if clients are told that they may watch topic lists.

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


def _converted(checked: CheckedKeys) -> dict[str, object]:
    import_directory = checked.text("floodgateImportDirectory")
    return {
        **shared_values(checked, _PORT_KEY),
        "authentication": authentication_settings(checked, proxy=False),
        "authorization": authorization_settings(checked, proxy=False),
        "broker_service_port": checked.value(_PORT_KEY),
        "metadata_store_url": metadata_store_url(checked),
        "broker_shutdown_timeout_seconds": checked.seconds("brokerShutdownTimeoutMs", 0),
        "metadata_store_session_timeout_seconds": checked.seconds(
            "metadataStoreSessionTimeoutMillis", 100
        ),
        "snapshot_cache_max_bytes": checked.integer("floodgateSnapshotCacheMB") * MEGABYTE_BYTES,
        "listing_cache_max_bytes": checked.integer("floodgateListingCacheMB") * MEGABYTE_BYTES,
        "pattern_timeout_seconds": checked.seconds("floodgatePatternTimeoutMs"),
        "topic_watch_max_bytes": _topic_watch_max_bytes(checked),
        "pulsar_resources_extended_class_name": resources_class_name(checked),
        "resources_timeout_seconds": checked.seconds("floodgateResourcesTimeoutMs"),
        "listing_properties": property_bounds(checked),
        "publishing": publishing_config(checked),
        "metrics": metric_keys(checked),
        "policies": default_policies(checked),
        "message_store": message_store_keys(checked),
        "import_directory": Path(import_directory) if import_directory else None,
    }


def _refuse_tls_without_port(checked: CheckedKeys) -> None:
    """Refuse older versions' key for TLS without a TLS port."""
    ports = (f"{_PORT_KEY}Tls", "webServicePortTls")
    if checked.flag("tlsEnabled") and all(checked.value(key) is None for key in ports):
        checked.refuse(f"tlsEnabled=true: no port speaks TLS; set {' or '.join(ports)} instead")


def _topic_watch_max_bytes(checked: CheckedKeys) -> int:
    key = "floodgateTopicWatchMaxBytes"
    if checked.is_set(key):
        return checked.integer(key)
    return 0 if checked.text("floodgateProfile") == Profile.PULSAR.value else DEFAULT_WATCH_BYTES
