"""The course of a task: clients start at scheduled times or in sequence; the task ends with the
last.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.discovery.families import FAMILIES
from limiter.clock import clock_sleep
from loadgen.documents.model import Document
from loadgen.engine.context import RunTime
from loadgen.engine.control import Control
from loadgen.engine.rows import Outcome, Rows
from loadgen.engine.totals import Totals
from loadgen.places.task import Task, TaskPlan
from loadgen.plan.clients import Namespace
from tests.support.discovery.load_clients import NAMESPACE, virtual_clock
from tests.support.discovery.scripted_broker import URL, ScriptedBroker, on_virtual_loop

START = 2.0
"""Seconds until the agreed start."""
EVENLY = {"kind": "constant", "rate": 2}
BATCH = {"name": "g", "do": "list", "count": 1}


class StartTime(RunTime):
    """Time since a start agreed immediately."""

    def agree(self, t0_epoch_seconds: float) -> None:
        del t0_epoch_seconds
        self.t0 = self.monotonic() + START


@dataclass
class Run:
    """A finished task.

    Attributes:
        over: End, since the agreed start.
        sent: Times of requests for lists.
    """

    over: float
    sent: list[float]
    rows: Rows
    totals: Totals
    broker: ScriptedBroker
    interrupted: bool


def task_of(
    broker: ScriptedBroker,
    groups: Sequence[dict[str, Any]],
    phases: dict[str, float],
    task: int = 0,
    tasks: int = 1,
) -> Task:
    """Return one task of a plan over a scripted broker."""
    document = {"name": "x", "clients": groups, "phases": {"measure": 100, **phases}}
    plan = TaskPlan.share(
        Document.model_validate(document),
        [NAMESPACE],
        service_url=URL,
        task=task,
        tasks=tasks,
        loopback=False,
    )
    time, clock = StartTime(broker.clock.now), broker.clock
    return Task(plan, Control(lead_seconds=0), connector=broker, time=time, clock=clock)


def run(
    *groups: dict[str, Any],
    phases: dict[str, float] | None = None,
    task: int = 0,
    tasks: int = 1,
    stop_at: float | None = None,
    **script: Any,
) -> Run:
    """Run one task of a plan over a scripted broker, whose lists take a second."""

    async def course() -> Run:
        clock = virtual_clock()
        broker = ScriptedBroker(clock, **{"delays": {"list": 1.0}, **script})
        made = task_of(broker, groups, phases or {}, task, tasks)
        if stop_at is not None:
            clock.call_at(clock.now() + START + stop_at, made.interrupt)
        result = await made.run()
        context = made.context
        sent = sorted(
            round(at - context.time.t0, 6) for at, kind, _ in broker.asked if kind == "list"
        )
        over = round(context.time.seconds(), 6)
        return Run(over, sent, result.rows, context.totals, broker, result.facts.interrupted)

    return on_virtual_loop(course)


def group(**fields: Any) -> dict[str, Any]:
    return {**BATCH, **fields}


def test_clients_start_at_their_scheduled_times_and_the_run_ends_when_all_are_back() -> None:
    found = run(group(count=4, arrive=EVENLY))
    assert found.sent == [0.0, 0.5, 1.0, 1.5]
    assert found.over == pytest.approx(2.5)
    assert [each.what for each in found.rows.events] == ["back"] * 4


def test_a_closed_load_starts_the_next_client_when_a_client_is_back() -> None:
    arrive = {"kind": "concurrency", "count": 2}
    found = run(group(count=5, arrive=arrive))
    assert found.sent == pytest.approx([0.0, 0.0, 1.0, 1.0, 2.0], abs=1e-6)
    assert found.over == pytest.approx(3.0)


def test_clients_keep_polling_during_the_hold_phase() -> None:
    polls = group(do="discover", library="cpp", period=10)
    found = run(polls, phases={"measure": 5, "hold": 21})
    assert found.sent == pytest.approx([0.0, 11.0, 22.0])
    assert found.over == pytest.approx(26.0)


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_the_length_of_a_run_does_not_depend_on_the_number_of_tasks(tasks: int) -> None:
    groups = [group(name="beat", count=2, every=3), group(name="once", count=2)]
    runs = [
        run(*groups, phases={"measure": 8, "drain": 0.5}, task=task, tasks=tasks)
        for task in range(tasks)
    ]
    assert all(each.over == pytest.approx(8.5, abs=0.51) for each in runs)
    sent = sorted(at for each in runs for at in each.sent)
    assert sent == pytest.approx(sorted([0.0, 0.0, *[0.0, 3.0, 6.0] * 2]), abs=1e-6)


def test_an_unanswered_request_times_out_at_the_end_of_the_drain_phase() -> None:
    found = run(group(), phases={"measure": 5, "drain": 3}, steps={"list": ["silence"]})
    assert found.over == pytest.approx(8.0)
    assert [row.outcome for row in found.rows.requests] == [Outcome.TIMEOUT]


def test_the_drain_phase_ends_with_the_last_request() -> None:
    found = run(group(every=10), phases={"measure": 0.5, "drain": 3})
    assert found.over == pytest.approx(1.0)


def test_a_run_does_not_end_before_its_warm_up() -> None:
    assert run(group(), phases={"warm_up": 4, "measure": 5}).over == pytest.approx(4.0)


def test_requests_due_in_the_warm_up_are_not_in_the_live_totals() -> None:
    found = run(group(count=4, arrive=EVENLY), phases={"warm_up": 1, "measure": 5})
    assert found.sent == [0.0, 0.5, 1.0, 1.5]
    assert found.totals.ended == {"g list answered": 2}
    assert found.totals.started == 2


def test_a_task_without_clients_ends_immediately() -> None:
    assert run(group(), task=1, tasks=2).over == 0.0


def test_an_interrupted_run_sends_no_requests_and_waits_for_open_requests() -> None:
    arrive = {"kind": "constant", "rate": 1}
    found = run(group(count=9, arrive=arrive), stop_at=1.5)
    assert found.sent == [0.0, 1.0]
    assert (found.over, found.interrupted) == (pytest.approx(2.0), True)


def test_pipelined_listings_are_due_and_sent_simultaneously() -> None:
    found = run(group(pipelined=3))
    assert found.sent == [0.0] * 3
    assert [row.due for row in found.rows.requests] == [0.0] * 3


def test_requests_keep_their_interval_regardless_of_the_answers() -> None:
    found = run(
        group(every=2, timeout=30),
        phases={"measure": 9, "drain": 1},
        delays={"list": 3.0},
        steps={"list": ["silence", "TooManyRequests"]},
    )
    assert [row.due for row in found.rows.requests] == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert found.sent == pytest.approx([0.0, 2.0, 4.0, 6.0, 8.0], abs=1e-6)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("drop", "down", "up", "change", "wait", "wait")),
        st.sampled_from((0.05, 0.5, 5.0, 31.0, 70.0)),
    ),
    max_size=12,
)
ANSWERS = st.lists(
    st.sampled_from(("answer", "silence", "TooManyRequests", "AuthorizationError")), max_size=6
)


@pytest.mark.parametrize("library", FAMILIES)
@given(
    steps=STEPS,
    script=st.dictionaries(st.sampled_from(("list", "watch", "lookup", "subscribe")), ANSWERS),
    proxied=st.booleans(),
    restart=st.sampled_from((0, 3)),
)
@settings(max_examples=4, deadline=None)
def test_every_request_ends_once_for_any_behavior_of_the_broker(
    library: str, steps: list[tuple[str, float]], script: Any, proxied: bool, restart: int
) -> None:
    async def course() -> Task:
        clock = virtual_clock()
        broker = ScriptedBroker(clock, steps=script, proxied=proxied)
        clients = group(do="discover", library=library, attach=2, restart=restart, count=2)
        task = task_of(broker, [clients], {"measure": 200, "hold": 1, "drain": 1})
        running = asyncio.get_running_loop().create_task(task.run())
        for verb, seconds in steps:
            if verb == "change":
                broker.change("t-c")
            elif verb == "wait":
                await clock_sleep(clock, seconds)
            else:
                broker.down = verb == "down" or (broker.down and verb != "up")
                if verb != "up":
                    broker.drop()
        await running
        assert not broker.open
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return task

    task = on_virtual_loop(course)
    rows = task.context.rows.requests
    assert all(row.outcome is not None and (row.done or 0) >= row.due for row in rows)
    assert sum(task.context.totals.ended.values()) == len(rows)
    ends = [each for each in task.context.rows.events if each.what in ("back", "lost", "refused")]
    assert len(ends) <= 2


def test_the_plan_of_a_task_holds_only_the_namespaces_of_its_clients() -> None:
    groups = [{"name": "g", "do": "list", "count": 6, "namespaces": [10, 40_000]}]
    document = Document.model_validate(
        {"name": "x", "clients": groups, "topics": {"namespaces": 50_000}}
    )
    namespaces = [Namespace(name=f"t/n{number}") for number in range(50_000)]
    plan = TaskPlan.share(document, namespaces, task=1, tasks=3)
    assert {each.name for each in plan.namespaces.values()} == {"t/n11", "t/n14"}
    text = plan.model_dump_json(by_alias=True)
    assert len(text) < 20_000
    again = TaskPlan.model_validate_json(text)
    assert [each.namespace.name for each in again.clients()] == ["t/n11", "t/n14"]
