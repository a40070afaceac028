"""The scenario's topics, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from loadgen.commands.scenario_options import make_scenario
from loadgen.errors import UsageError
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.client_memory.kind import CLIENT_MEMORY
from loadgen.scenarios.client_memory.scenario import ClientMemoryScenario


def test_topics_are_spread_over_namespaces_and_share_the_backlog() -> None:
    scenario = ClientMemoryScenario(
        namespaces=(NamespaceExpectation(name="a/b"), NamespaceExpectation(name="c/d")),
        backlog_topics=3,
        consumers_per_topic=4,
        backlog_bytes=1_000,
        message_bytes=100,
        producers=2,
    )
    assert scenario.topics() == [
        "persistent://a/b/client-memory-0",
        "persistent://c/d/client-memory-1",
        "persistent://a/b/client-memory-2",
    ]
    assert scenario.producer_topics() == [
        "persistent://a/b/client-memory-producer-0",
        "persistent://c/d/client-memory-producer-1",
    ]
    assert (scenario.messages_per_topic, scenario.consumers) == (3, 12)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"backlog_bytes": 900, "message_bytes": 100},
            "--backlog 900 has no message of --message 100 for each of --backlog-topics 10",
        ),
        ({"memory_limit_bytes": 0}, "--memory-limit 0: must be at least 1048576"),
        ({"clients": 2}, "--clients 2: must be at most 1"),
        ({"service_url": "pulsar://a:1", "silent_producers": 1}, "--silent-producers belongs to"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        make_scenario("client-memory", **given)
    assert str(refused.value).startswith(sentence)


def test_a_report_says_what_was_run() -> None:
    describe = CLIENT_MEMORY.words.describe
    words = describe(ClientMemoryScenario().model_dump(mode="json"))
    assert "100 Shared consumers of 10 topics take a backlog of 95 MB" in words
    assert "4 producers send 16 messages of 1.0 MB each to a server that reads nothing" in words
    alone = describe(ClientMemoryScenario(producers=0).model_dump(mode="json"))
    assert "producers" not in alone
