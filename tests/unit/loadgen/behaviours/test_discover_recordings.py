"""A discovering client sends the recorded requests of the official client, at the same times."""

import asyncio
from typing import Any

import pytest

from limiter.clock import clock_sleep
from tests.support.discovery.load_clients import broker_of, client_of, running
from tests.support.discovery.replay import (
    LATE_BEHIND_DOWNTIME_SECONDS,
    LATE_SECONDS,
    recorded,
    with_losses,
)
from tests.support.discovery.scripted_broker import BASE, on_virtual_loop
from tests.support.discovery.scripts import OPERATION_SECONDS, SCRIPTS

SEEN = {"cpp": recorded("python"), "go": recorded("go")}
JAVA = recorded("java")
CASES = [(family, name) for family, seen in SEEN.items() for name in seen]
# A load's client keeps no names: the client takes the broker's hash, which then always matches.
UNFIT = ("wrong hash", "wrong hash, reconciled")
JAVA_CASES = [
    ("java-watch" if SCRIPTS[name].watchers else "java-poll", name)
    for name in JAVA
    if name not in UNFIT
]
# The official client's random draws where a hundredth decides on another attempt.
JITTERS = {"watch always refused": 0.2}
REQUESTS = ("list", "lookup", "watch", "close watch")


def requests_of(seen):
    """Return the official client's requests with times, without lists of single topics."""
    return [
        (each["at"], each["what"], wanted(each))
        for each in seen
        if each["what"] in REQUESTS and not each.get("pattern", "").startswith("^")
    ]


def wanted(seen):
    """Return the fields of a recorded request."""
    if seen["what"] == "list":
        return {key: seen.get(key) for key in ("pattern", "hash", "properties")}
    if seen["what"] == "watch":
        return {"pattern": seen["pattern"], "hash": seen["hash"]}
    return {"topic": seen["topic"]} if seen["what"] == "lookup" else {}


async def replayed(family: str, name: str, seen: list[dict[str, Any]]) -> list[Any]:
    """Replay the recorded events with our client; return the requests with times."""
    script = SCRIPTS[name]
    broker = broker_of(
        topics={BASE + each for each in script.topics},
        steps={kind: list(steps) for kind, steps in script.steps.items()},
        watches=script.watchers,
        reconciles=script.reconcile,
    )
    said = [each for each in seen if each.get("says") == "subscribed"]
    broker.earliest["subscribe"] = said[0]["at"] if said else 0.0
    client = client_of(
        broker,
        do="discover",
        library=family,
        pattern="t-.*",
        properties={"team": "red"},
        attach=1,
        period=script.period_seconds,
        timeout=OPERATION_SECONDS,
    )
    client.random = lambda: JITTERS.get(name, 0.5)
    async with running(client) as task:
        for each in with_losses(seen):
            if each["at"] is None:
                continue
            await clock_sleep(broker.clock, max(0.0, each["at"] - broker.clock.now()))
            if each["what"] == "lost":
                broker.drop()
            elif each["what"] == "event":
                happen(broker, task, *each["event"].partition(" ")[::2])
    return [each for each in broker.asked if each[1] in REQUESTS]


def happen(broker, task: asyncio.Task[None], verb: str, topic: str) -> None:
    if verb.startswith(("create", "delete")):
        broker.change(topic, told="unseen" not in verb)
    elif verb in ("down", "drop"):
        broker.down = verb == "down"
        broker.drop()
    elif verb == "up":
        broker.down = False
    elif verb == "close":
        task.cancel()


@pytest.mark.parametrize(("family", "name"), CASES + JAVA_CASES)
def test_each_client_family_sends_the_recorded_requests_of_the_official_client(family, name):
    seen = SEEN.get(family, JAVA)[name]
    asked = on_virtual_loop(lambda: replayed(family, name, seen))
    expected = requests_of(seen)
    both = min(len(asked), len(expected))
    assert [each[1:] for each in asked[:both]] == [each[1:] for each in expected[:both]]
    beyond = [at for at, *_ in asked[both:] + expected[both:]]
    assert all(at > SCRIPTS[name].seconds - 2 * LATE_SECONDS for at in beyond)
    down = any(event == "down" for _, event in SCRIPTS[name].events)
    late = LATE_BEHIND_DOWNTIME_SECONDS if down else LATE_SECONDS
    for (at, *_), (expected_at, *_) in zip(asked[:both], expected[:both], strict=True):
        assert at == pytest.approx(expected_at, abs=late)
