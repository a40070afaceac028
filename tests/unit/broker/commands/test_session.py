"""CONNECT, as a broker answers it."""

from __future__ import annotations

import pytest

from tests.support.peers.raw_peer import connect_command
from tests.unit.broker.commands.test_table import START, parts, wire


@pytest.mark.parametrize(("offered", "spoken"), [(0, 0), (9, 9), (20, 20), (21, 21), (99, 21)])
async def test_the_lower_protocol_version_is_spoken(offered: int, spoken: int) -> None:
    # Given
    client = wire(START)
    # When
    client.say(connect_command(protocol_version=offered))
    # Then
    (answer,) = client.answers()
    assert answer.connected.protocol_version == spoken
    assert client.cnx.client_version == "raw-peer"


@pytest.mark.parametrize(
    ("keys", "announced"),
    [
        ({}, True),
        ({"enableBrokerTopicListWatcher": "false"}, False),
        ({"floodgateProfile": "pulsar"}, True),
        ({"floodgateProfile": "pulsar", "enableBrokerTopicListWatcher": "false"}, False),
    ],
)
async def test_connected_says_what_this_broker_can(keys: dict[str, str], announced: bool) -> None:
    # Given
    client = wire(START, parts(maxMessageSize="1234", **keys))
    # When
    client.say(connect_command())
    # Then
    (answer,) = client.answers()
    flags = answer.connected.feature_flags
    assert answer.connected.max_message_size == 1_234
    assert flags.supports_topic_watchers is announced
    assert flags.supports_topic_watcher_reconcile is announced
    assert flags.supports_get_partitioned_metadata_without_auto_creation
    assert flags.supports_repl_dedup_by_lid_and_eid
