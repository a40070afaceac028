"""Kinds of scenarios against a broker: what arrives is right, and is counted.

The task runs in a thread of its own, as it does in a worker process.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from loadgen.executors.worker import run_task
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.produce_consume.kind import messages_document
from loadgen.scenarios.produce_consume.scenario import ProduceConsumeScenario
from loadgen.scenarios.watch_churn.kind import watch_document
from loadgen.scenarios.watch_churn.scenario import WatchChurnScenario
from loadgen.tasks.task import TaskPlan
from tests.support.peers.stand_in_broker import topic_names
from tests.support.processes.cluster import cluster

if TYPE_CHECKING:
    from loadgen.clients.records import TaskReport

PROFILES = ("floodgate", "pulsar")
WAYS = ("broker", "proxy")


async def reported(scenario: Any, task: int = 0, tasks: int = 1) -> TaskReport:
    """Run one task; it begins at once."""
    plan = TaskPlan(scenario=scenario, task=task, tasks=tasks)
    return await asyncio.to_thread(run_task, plan, lambda now: now)


def outcomes(report: TaskReport) -> Counter[tuple[str, str]]:
    rows = report.rows.select(["operation", "outcome"]).to_pylist()
    return Counter((row["operation"], row["outcome"]) for row in rows)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("profile", PROFILES)
async def test_every_watcher_is_told_of_every_change(profile: str, way: str) -> None:
    # Given two namespaces, of which the second task has the second
    names = ("load/a", "load/b")
    topics = {name: topic_names(name, 20) for name in names}
    async with cluster(topics, profile) as parts:
        wanted = WatchChurnScenario(
            service_url=getattr(parts, way).service_url,
            namespaces=tuple(NamespaceExpectation(name=name) for name in names),
            clients=5,
            admin_url=parts.broker.web_service_url,
            changes_per_second=100,
            topic_seconds=0.05,
            churn_seconds=0.25,
        )
        # When
        report = await reported(wanted, task=1, tasks=2)
    # Then
    found = watch_document(wanted, [report])["watch_churn"]
    assert (found["watchers"], found["watchers_right"]) == (2, 2)
    assert found["changes"] == 20
    assert found["updates_wanted"] == found["updates_told"] == 40
    expected = {("create", "answered"): 10, ("delete", "answered"): 10, ("update", "answered"): 40}
    assert outcomes(report) == expected


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("profile", PROFILES)
async def test_every_message_arrives_once_in_every_subscription(profile: str, way: str) -> None:
    # Given two topics with two subscriptions each, which two consumers share by key
    async with cluster(profile=profile) as parts:
        wanted = ProduceConsumeScenario(
            service_url=getattr(parts, way).service_url,
            namespaces=(NamespaceExpectation(name="public/default"),),
            clients=2,
            messages_per_second=100,
            produce_seconds=0.25,
            message_keys=3,
            subscriptions=2,
            subscription_type="key-shared",
            consumers=2,
        )
        # When
        report = await reported(wanted)
    # Then
    found = messages_document(wanted, [report])["produce_consume"]
    assert (found["receipts"], found["delivered"]) == (50, 100)
    wrong = ("lost", "doubled", "out_of_order", "corrupt", "redelivered", "consumers_lost")
    assert not any(found[each] for each in wrong)
    assert outcomes(report) == {("publish", "answered"): 50, ("deliver", "answered"): 100}
