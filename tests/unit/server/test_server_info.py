"""A server's log and metrics show effective values, and no secrets."""

import pytest

from broker.configuration.config import BrokerConfig
from broker.configuration.config import known_keys as broker_keys
from broker.configuration.dynamic import runtime_values
from proto.version import VERSION
from proxy.config import ProxyConfig
from proxy.config import known_keys as proxy_keys
from server.server_info import INFO_KEYS, info_sentence, label_of, server_info

SETTINGS = {
    "floodgateProfile": "pulsar",
    "maxTopicListInFlightHeapMemSizeMB": "7",
    "maxTopicListInFlightDirectMemSizePermitsAcquireTimeoutMillis": "1234",
    "floodgateSocketSendBufferBytes": "65536",
    "brokerClientAuthenticationParameters": "token:hidden",
}


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
def test_the_effective_values_of_a_broker_are_equal_in_rest_and_metrics(profile: str) -> None:
    config = BrokerConfig.from_properties({"floodgateProfile": profile})
    runtime, info = runtime_values(config, {}), server_info(config)
    assert {key: info[key] for key in INFO_KEYS} == {key: runtime[key] for key in INFO_KEYS}


def test_configured_values_appear_in_the_server_info() -> None:
    info = server_info(ProxyConfig.from_properties({**SETTINGS, "brokerServiceURL": "pulsar://a"}))
    told = {key: value for key, value in SETTINGS.items() if not key.startswith("brokerClient")}
    assert told.items() <= info.items()
    assert info["floodgateAdmissionPolicy"] == "fifo"


def test_every_shown_key_exists_in_both_servers() -> None:
    for known in (broker_keys(), proxy_keys()):
        assert set(INFO_KEYS) <= {each.key for each in known}


def test_a_broker_shows_the_place_and_the_limits_of_its_message_store() -> None:
    keys = {
        "floodgateMessageStore": "sqlite:///data/m.db?fsync=true",
        "floodgateMessageStoreMaxMB": "9",
    }
    config = BrokerConfig.from_properties({**keys, "maxMessagePublishBufferSizeInMB": "3"})
    sentence, info = info_sentence("broker", config), server_info(config)
    assert "floodgateMessageStore=sqlite:///data/m.db, floodgateMessageStoreFsync=true" in sentence
    assert "maxMessagePublishBufferSizeInMB=3" in sentence
    assert info["floodgateMessageStoreMaxMB"] == "9"
    assert info["floodgateMessageStoreMaxTopicMB"] == "0"
    assert server_info(BrokerConfig.from_properties({}))["floodgateMessageStore"] == "temporary"
    assert set(config.own_keys) <= {each.key for each in broker_keys()}
    proxy = ProxyConfig.from_properties({"brokerServiceURL": "pulsar://a"})
    assert "MessageStore" not in info_sentence("proxy", proxy)


def test_the_start_message_shows_effective_values_and_no_secret() -> None:
    sentence = info_sentence("broker", BrokerConfig.from_properties(SETTINGS))
    assert sentence.startswith(f"Floodgate broker {VERSION} with floodgateProfile=pulsar, ")
    assert "maxTopicListInFlightHeapMemSizeMB=7" in sentence
    assert "hidden" not in sentence


def test_labels_are_unique_and_follow_the_naming_of_prometheus() -> None:
    assert label_of("maxTopicListInFlightHeapMemSizeMB") == (
        "max_topic_list_in_flight_heap_mem_size_mb"
    )
    assert len({label_of(key) for key in INFO_KEYS}) == len(INFO_KEYS)
