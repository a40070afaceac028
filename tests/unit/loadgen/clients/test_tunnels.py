"""A proxy's lookups name the brokers to be tunnelled to; a broker needs no tunnel."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from client.connection.errors import RequestTimeoutError
from client.exceptions import TooManyLookupRequestException
from client.pulsar_client import LookupResult
from loadgen.clients import tunnels
from loadgen.errors import LoadgenError
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.storm.scenario import StormScenario

if TYPE_CHECKING:
    from collections.abc import Callable

SCENARIO = StormScenario(
    service_url="pulsar://127.0.0.1:1", namespaces=(NamespaceExpectation(name="load/a"),)
)
TOPICS = [f"persistent://load/a/{number}" for number in range(50)]


class Lookups:
    """Stands in for the client library: answers lookups, and knows what was asked."""

    def __init__(self, answer: Callable[[str], LookupResult]) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def __call__(self, *_: object, **__: object) -> Lookups:
        return self

    async def __aenter__(self) -> Lookups:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close nothing."""

    async def lookup(self, topic: str) -> LookupResult:
        self.asked.append(topic)
        await asyncio.sleep(0)
        return self.answer(topic)


def proxied(topic: str) -> LookupResult:
    return LookupResult(f"pulsar://broker-{topic.rpartition('/')[2]}:6650", True)


def found(monkeypatch: pytest.MonkeyPatch, lookups: Lookups) -> dict[str, str]:
    monkeypatch.setattr(tunnels, "client_of", lookups)
    return asyncio.run(tunnels.tunnels_to(SCENARIO, TOPICS))


def test_every_topic_has_the_broker_that_a_proxy_names(monkeypatch: pytest.MonkeyPatch) -> None:
    lookups = Lookups(proxied)
    brokers = {topic: f"broker-{number}:6650" for number, topic in enumerate(TOPICS)}
    assert found(monkeypatch, lookups) == brokers
    assert sorted(lookups.asked) == sorted(TOPICS)


@pytest.mark.parametrize(
    "place",
    [LookupResult("pulsar://broker:6650", False), LookupResult(SCENARIO.service_url, True)],
)
def test_a_broker_is_asked_once_and_needs_no_tunnel(
    monkeypatch: pytest.MonkeyPatch, place: LookupResult
) -> None:
    lookups = Lookups(lambda _: place)
    assert found(monkeypatch, lookups) == {}
    assert lookups.asked == TOPICS[:1]


@pytest.mark.parametrize("asked", [0, 7])
@pytest.mark.parametrize(
    "error", [TooManyLookupRequestException("full"), RequestTimeoutError("no answer")]
)
def test_without_an_answer_there_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, error: Exception, asked: int
) -> None:
    def fail(topic: str) -> LookupResult:
        if topic == TOPICS[asked]:
            raise error
        return proxied(topic)

    with pytest.raises(LoadgenError, match=f"/{asked} cannot be looked up: {error}"):
        found(monkeypatch, Lookups(fail))
