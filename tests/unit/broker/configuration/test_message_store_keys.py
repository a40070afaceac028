"""The keys of the message store."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.configuration.config import BrokerConfig
from broker.configuration.message_store_keys import MOST_LOG_BYTES, MOST_MEMORY_BYTES
from server.errors import ConfigError


def keys(**properties: str):
    return BrokerConfig.from_properties(properties).message_store


@pytest.mark.parametrize("url", [None, "memory", "memory:local"])
def test_without_a_log_messages_are_in_memory(url: str | None) -> None:
    # When
    found = keys(**({} if url is None else {"floodgateMessageStore": url}))
    # Then
    assert found.log_directory is None
    assert 0 < found.max_bytes <= MOST_MEMORY_BYTES
    assert found.max_entries_per_ledger == 50_000


@pytest.mark.parametrize(
    ("url", "fsync"),
    [
        ("log:///var/log", False),
        ("log:////var/log", False),
        ("log:///var/log?fsync=true", True),
        ("log:///var/log?fsync=false", False),
    ],
)
def test_the_path_of_a_log_is_absolute(url: str, *, fsync: bool) -> None:
    # When
    found = keys(floodgateMessageStore=url)
    # Then
    assert found.log_directory == Path("/var/log")
    assert found.fsync is fsync
    assert found.max_bytes == MOST_LOG_BYTES


def test_bounds_are_megabytes_and_0_is_none() -> None:
    # When
    found = keys(
        floodgateMessageStoreMaxMB="0",
        floodgateMessageStoreMaxNamespaceMB="3",
        floodgateMessageStoreMaxTopicMB="2",
        floodgateMessageStoreFsync="true",
        managedLedgerMaxEntriesPerLedger="10",
    )
    # Then
    assert (found.max_bytes, found.max_namespace_bytes, found.max_topic_bytes) == (
        0,
        3 * 1024 * 1024,
        2 * 1024 * 1024,
    )
    assert found.fsync
    assert found.max_entries_per_ledger == 10


@pytest.mark.parametrize("url", ["log:path", "log:///", "disk", "log:///a?sync=true"])
def test_another_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="expected memory, log:///path"):
        keys(floodgateMessageStore=url)


@pytest.mark.parametrize(
    "key",
    [
        "managedLedgerMaxEntriesPerLedger",
        "brokerDeduplicationEntriesInterval",
        "brokerDeduplicationMaxNumberOfProducers",
        "delayedDeliveryTickTimeMillis",
    ],
)
def test_a_number_below_1_is_refused(key: str) -> None:
    # When
    with pytest.raises(ConfigError) as refused:
        BrokerConfig.from_properties({key: "0"})
    # Then
    assert f"{key}=0: expected 1 or more" in str(refused.value)
