"""The keys of the message store."""

from pathlib import Path

import pytest

from broker.configuration.config import BrokerConfig
from broker.configuration.store_keys import MOST_DATABASE_BYTES, MOST_MEMORY_BYTES, Place
from server.errors import ConfigError


def keys(**properties: str):
    return BrokerConfig.from_properties(properties).message_store


@pytest.mark.parametrize("url", ["memory", "memory:local"])
def test_a_memory_url_keeps_messages_in_memory(url: str) -> None:
    found = keys(floodgateMessageStore=url)
    assert found.place == Place()
    assert 0 < found.max_bytes <= MOST_MEMORY_BYTES
    assert found.max_entries_per_ledger == 50_000


def test_messages_are_in_a_temporary_database_by_default(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    found = keys()
    assert found.place == Place(temporary_in=tmp_path)
    assert 0 < found.max_bytes <= MOST_DATABASE_BYTES


@pytest.mark.parametrize(
    ("url", "fsync"),
    [
        ("sqlite:///var/messages.db", False),
        ("sqlite:////var/messages.db", False),
        ("sqlite:///var/messages.db?fsync=true", True),
        ("sqlite:///var/messages.db?fsync=false", False),
    ],
)
def test_the_path_of_a_database_is_absolute(url: str, *, fsync: bool) -> None:
    found = keys(floodgateMessageStore=url)
    assert found.place == Place(database=Path("/var/messages.db"))
    assert found.fsync is fsync
    assert found.max_bytes == MOST_DATABASE_BYTES
    shown = BrokerConfig.from_properties({"floodgateMessageStore": url}).keys.shown
    assert shown("floodgateMessageStore") == "sqlite:///var/messages.db"


def test_a_log_url_of_an_older_version_is_refused_with_its_replacement() -> None:
    with pytest.raises(ConfigError, match=r"logs were replaced .* set sqlite:///path/messages\.db"):
        keys(floodgateMessageStore="log:///var/log")


def test_store_bounds_are_in_megabytes_and_0_means_unbounded() -> None:
    found = keys(
        floodgateMessageStoreMaxMB="0",
        floodgateMessageStoreMaxNamespaceMB="3",
        floodgateMessageStoreMaxTopicMB="2",
        floodgateMessageStoreFsync="true",
        managedLedgerMaxEntriesPerLedger="10",
    )
    assert (found.max_bytes, found.max_namespace_bytes, found.max_topic_bytes) == (
        0,
        3 * 1024 * 1024,
        2 * 1024 * 1024,
    )
    assert found.fsync
    assert found.max_entries_per_ledger == 10


@pytest.mark.parametrize("url", ["sqlite:path", "sqlite:///", "disk", "sqlite:///a?sync=true"])
def test_an_unknown_message_store_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="expected temporary, memory, sqlite:///path"):
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
    with pytest.raises(ConfigError) as refused:
        BrokerConfig.from_properties({key: "0"})
    assert f"{key}='0': expected a whole number from 1 to" in str(refused.value)
