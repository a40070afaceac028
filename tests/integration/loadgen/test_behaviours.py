"""Every behaviour at a broker, and through a proxy: requests get right answers."""

from collections import Counter
from typing import Any

import pytest

from broker.stores.changes import TopicChanges
from loadgen.documents.model import Document
from loadgen.engine.control import Control
from loadgen.engine.rows import Outcome
from loadgen.places.task import Task, TaskPlan, TaskResult
from loadgen.plan.clients import Namespace
from proto.names import NamespaceName
from tests.support.processes.cluster import cluster

NAMES = [f"persistent://public/default/t{number:03}" for number in range(50)]
PROXY = pytest.mark.parametrize("proxied", [False, True])


async def run(groups: list[dict[str, Any]], *, proxied: bool, **phases: float) -> TaskResult:
    """Run groups of clients for a second and a half."""
    async with cluster(proxy={} if proxied else None) as parts:
        namespace = NamespaceName("public", "default")
        added = [name.encode() for name in NAMES]
        await parts.broker.store.apply(namespace, TopicChanges(added=added))
        plan = TaskPlan.share(
            Document.model_validate(
                {
                    "name": "x",
                    "clients": groups,
                    "phases": {"measure": 1.5, "drain": 10, **phases},
                }
            ),
            [Namespace(name="public/default", topics=50, changes=len(groups) > 1)],
            service_url=(parts.proxy if proxied else parts.broker).service_url,
            admin_url=parts.broker.web_service_url,
        )
        return await Task(plan, Control(lead_seconds=0)).run()


def ends(result: TaskResult, operation: str) -> Counter[Outcome | None]:
    return Counter(row.outcome for row in result.rows.requests if row.operation == operation)


def reasons(result: TaskResult) -> set[str]:
    return {row.reason for row in result.rows.requests}


@PROXY
async def test_listings_return_every_topic(*, proxied: bool) -> None:
    result = await run([{"name": "g", "do": "list", "count": 5, "pipelined": 3}], proxied=proxied)
    assert ends(result, "list") == {Outcome.ANSWERED: 15}
    bodies = [row.answer for row in result.rows.requests]
    assert {body.verdict().topics for body in bodies if body is not None} == {50}


@PROXY
async def test_lookups_are_repeated_at_their_interval(*, proxied: bool) -> None:
    result = await run(
        [{"name": "g", "do": "lookup", "count": 2, "every": "500ms"}], proxied=proxied
    )
    assert ends(result, "lookup") == {Outcome.ANSWERED: 6}


@PROXY
async def test_every_message_is_delivered_once_and_in_order(*, proxied: bool) -> None:
    result = await run(
        [
            {"name": "orders", "do": "publish", "count": 2, "every": "100ms", "size": "1KiB"},
            {
                "name": "one",
                "do": "consume",
                "count": 2,
                "of": "orders",
                "publishers": 2,
                "size": 1024,
            },
            {
                "name": "many",
                "do": "consume",
                "count": 4,
                "of": "orders",
                "type": "shared",
                "subscription": "many",
                "publishers": 2,
                "size": 1024,
            },
        ],
        proxied=proxied,
    )
    assert reasons(result) == {""}
    assert ends(result, "publish") == {Outcome.ANSWERED: 30}
    assert ends(result, "deliver") == {Outcome.ANSWERED: 60}
    items = Counter(
        (row.group, row.item) for row in result.rows.requests if row.operation == "deliver"
    )
    assert set(items.values()) == {1}


@PROXY
async def test_watches_receive_every_creation_and_deletion_of_a_topic(*, proxied: bool) -> None:
    result = await run(
        [
            {"name": "watchers", "do": "watch", "count": 3},
            {
                "name": "churn",
                "do": "create-and-delete",
                "count": 1,
                "after": "300ms",  # All watches are open by then.
                "every": "200ms",
                "lifetime": "400ms",
            },
        ],
        proxied=proxied,
    )
    assert reasons(result) == {""}
    assert ends(result, "create") == ends(result, "delete") == {Outcome.ANSWERED: 6}
    assert ends(result, "update") == {Outcome.ANSWERED: 3 * 12}
    assert all(
        0 <= (row.done or 0) - row.due < 5
        for row in result.rows.requests
        if row.operation == "update"
    )


async def test_listings_of_clients_that_never_read_time_out() -> None:
    result = await run(
        [{"name": "deaf", "do": "list", "count": 1, "pipelined": 4, "read": {"never": True}}],
        proxied=False,
        drain=0.2,
    )
    assert ends(result, "list") == {Outcome.TIMEOUT: 4}
