"""The broker's configuration: Pulsar's keys in, one frozen model out.

``BrokerConfig.from_properties`` is pure: the file and the command line are read elsewhere.
Defaults are upstream's (they stand in ``broker_keys.json``), except where a field says so.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import Field

from proto.patterns import RegexImplementation
from server.config_model import build_model
from server.known_keys import CheckedKeys, KnownKeys
from server.limits_config import MEGABYTE_BYTES, ServerConfig, shared_values
from server.refused_keys import REFUSED_WHEN_SET, REFUSED_WHEN_TRUE, refuse_set, refuse_true

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_METADATA_STORE_URL = "memory:local"
DEFAULT_PULSAR_RESOURCES_CLASS = "org.apache.pulsar.broker.DefaultPulsarResourcesExtended"

_REFUSED_WHEN_TRUE = {**REFUSED_WHEN_TRUE, "tlsEnabled": "TLS"}
_REFUSED_WHEN_SET = {**REFUSED_WHEN_SET, "brokerServicePortTls": "TLS"}


class TopicType(Enum):
    """What kind of topic is made when a client asks for one that does not exist."""

    PARTITIONED = "partitioned"
    NON_PARTITIONED = "non-partitioned"


class BrokerConfig(ServerConfig):
    """What a broker is told before it starts; see ServerConfig for the rest."""

    broker_service_port: int = Field(default=6650, ge=0, le=65535)
    """brokerServicePort; 0 is any free port."""
    max_concurrent_lookup_requests: int = Field(
        default=50_000, ge=0, validation_alias="maxConcurrentLookupRequest"
    )
    """Lookups, metadata requests and listings that may be in progress at once."""
    enable_broker_side_subscription_pattern_evaluation: bool = Field(
        default=True, validation_alias="enableBrokerSideSubscriptionPatternEvaluation"
    )
    enable_broker_topic_list_watcher: bool = Field(
        default=True, validation_alias="enableBrokerTopicListWatcher"
    )
    subscription_pattern_max_length: int = Field(
        default=50, validation_alias="subscriptionPatternMaxLength"
    )
    """Characters of a pattern; a longer one is not evaluated by the broker."""
    topics_pattern_regex_implementation: RegexImplementation = Field(
        default=RegexImplementation.RE2J_WITH_JDK_FALLBACK,
        validation_alias="topicsPatternRegexImplementation",
    )
    allow_auto_topic_creation: bool = Field(default=True, validation_alias="allowAutoTopicCreation")
    allow_auto_topic_creation_type: TopicType = Field(
        default=TopicType.NON_PARTITIONED, validation_alias="allowAutoTopicCreationType"
    )
    default_num_partitions: int = Field(default=1, ge=1, validation_alias="defaultNumPartitions")
    metadata_store_url: str = DEFAULT_METADATA_STORE_URL
    """floodgateMetadataStoreUrl, else metadataStoreUrl where it is memory: or sqlite:.

    ``memory:local`` is the default and ends with the process; ``sqlite:///path`` survives it.
    """
    broker_shutdown_timeout_seconds: float = Field(default=60.0, ge=0)
    """brokerShutdownTimeoutMs: how long a drain may take."""
    snapshot_cache_max_bytes: int = Field(default=1024 * MEGABYTE_BYTES, ge=0)
    """floodgateSnapshotCacheMB."""
    import_directory: Path | None = None
    """floodgateImportDirectory: where imports asked for at run time may read from."""

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Make the configuration from the keys of broker.conf.

        Raises:
            ConfigError: Something is wrong; every problem at once, one sentence each.
        """
        checked = known_keys().check(properties)
        refuse_true(checked, _REFUSED_WHEN_TRUE)
        refuse_set(checked, _REFUSED_WHEN_SET)
        _refuse_foreign_class(checked)
        return build_model(cls, _converted(checked), checked)


@cache
def known_keys() -> KnownKeys:
    """Return the keys of Pulsar 4.2's broker and those of our own."""
    packaged = resources.files("broker").joinpath("broker_keys.json")
    return KnownKeys.from_json(packaged.read_text(encoding="utf-8"))


def _converted(checked: CheckedKeys) -> dict[str, object]:
    import_directory = checked.text("floodgateImportDirectory")
    return {
        **shared_values(checked),
        "broker_service_port": checked.port("brokerServicePort"),
        "metadata_store_url": _metadata_store_url(checked),
        "broker_shutdown_timeout_seconds": checked.seconds("brokerShutdownTimeoutMs"),
        "snapshot_cache_max_bytes": checked.integer("floodgateSnapshotCacheMB") * MEGABYTE_BYTES,
        "import_directory": Path(import_directory) if import_directory else None,
    }


def _metadata_store_url(checked: CheckedKeys) -> str:
    """Choose the store: our own key decides, then an upstream key that names one of ours."""
    own = checked.text("floodgateMetadataStoreUrl")
    upstream_key = next(
        (key for key in ("metadataStoreUrl", "zookeeperServers") if checked.text(key)),
        "metadataStoreUrl",
    )
    upstream = checked.text(upstream_key)
    if own:
        return _usable_store_url(checked, "floodgateMetadataStoreUrl", own)
    if upstream and upstream.startswith(("memory:", "sqlite:")):
        return _usable_store_url(checked, upstream_key, upstream)
    if upstream:
        checked.warn(
            f"{upstream_key}={upstream}: this store is not supported, topics live in "
            f"{DEFAULT_METADATA_STORE_URL} and end with the process; "
            "floodgateMetadataStoreUrl=sqlite:///path keeps them"
        )
    return DEFAULT_METADATA_STORE_URL


def _usable_store_url(checked: CheckedKeys, key: str, url: str) -> str:
    memory = url.startswith("memory:") and len(url) > len("memory:")
    file = url.startswith("sqlite:///") and len(url) > len("sqlite:///")
    if not (memory or file):
        checked.refuse(f"{key}={url!r}: expected memory:local or sqlite:///path")
    return url


def _refuse_foreign_class(checked: CheckedKeys) -> None:
    name = checked.text("pulsarResourcesExtendedClassName")
    if name not in (None, DEFAULT_PULSAR_RESOURCES_CLASS):
        checked.refuse(
            f"pulsarResourcesExtendedClassName={name!r}: this version has no topic listing "
            f"plugins; use {DEFAULT_PULSAR_RESOURCES_CLASS} or remove the key"
        )
