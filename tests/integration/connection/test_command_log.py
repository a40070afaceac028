"""``--log-level debug`` shows every command of a connection, on broker and proxy."""

import logging
import re

import pytest

from proto import command_log
from tests.support.peers.raw_peer import topics_command
from tests.support.processes.cluster import cluster, topic_names

NAMESPACE = "public/default"
TOPICS = {NAMESPACE: topic_names(NAMESPACE, 3)}
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")


def words(messages: list[str]) -> list[str]:
    """Return the start of each line: direction and command."""
    return [re.sub(r" \(\d+ bytes\).*", "", ADDRESS.sub("A", message)) for message in messages]


@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_commands_in_both_directions_of_a_client_are_logged(profile: str, caplog) -> None:
    with caplog.at_level(logging.DEBUG, command_log.logger.name):
        async with cluster(TOPICS, profile) as parts:
            peer = await parts.peer("broker")
            await peer.send(topics_command(1, NAMESPACE))
            await peer.command()
            fields = parts.cnx(peer, "broker").log_fields
            told = words(caplog.messages)
    assert told == [
        "connection between A (peer) and A",
        "received from A: CONNECT",
        "sent to A: CONNECTED",
        "received from A: GET_TOPICS_OF_NAMESPACE",
        "sent to A: GET_TOPICS_OF_NAMESPACE_RESPONSE",
    ]
    for line in caplog.records[3 : len(told)]:
        assert vars(line) | fields == vars(line)
    assert sorted(fields) == ["address", "client_version", "connection"]
    assert f"namespace='{NAMESPACE}'" in caplog.messages[3]
    assert "topics=[3: " in caplog.messages[4]


async def test_a_proxy_logs_commands_of_its_client_and_broker_connections(caplog) -> None:
    with caplog.at_level(logging.DEBUG, command_log.logger.name):
        async with cluster(TOPICS) as parts:
            await parts.client("proxy").topics_of_namespace(NAMESPACE)
            asked = [line for line in caplog.messages if " GET_TOPICS_OF_NAMESPACE " in line]
            answered = [line for line in caplog.messages if "GET_TOPICS_OF_NAMESPACE_R" in line]
    # Client, proxy (twice) and broker are one process here
    assert [words([line])[0].split(" ")[0] for line in asked] == ["sent", "received"] * 2
    assert [words([line])[0].split(" ")[0] for line in answered] == ["sent", "received"] * 2


async def test_no_command_line_is_built_unless_debug_logging_is_on(monkeypatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a line that nobody reads")

    for name in ("sent", "received", "connection_made", "connection_lost"):
        monkeypatch.setattr(command_log, name, fail)
    # When, Then (the cluster fails if anything was logged as an error)
    async with cluster(TOPICS) as parts:
        assert len((await parts.client().topics_of_namespace(NAMESPACE)).topics) == 3
