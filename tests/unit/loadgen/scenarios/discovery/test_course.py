"""The course of a run: clients start at their moments or in turn, and it ends when all are back."""

from __future__ import annotations

import pytest

from loadgen.clients.context import ClientContext, RunTime
from loadgen.clients.records import RequestCounters
from loadgen.scenarios.discovery.course import Course
from loadgen.scenarios.discovery.driver.family_client import FamilyClient
from loadgen.scenarios.discovery.scenario import DiscoveryScenario, Phases, client_plans
from tests.support.clocks.manual_clock import ManualClock
from tests.support.discovery.scripted_wires import ScriptedWires
from tests.unit.loadgen.scenarios.discovery.clients import NAMESPACE


class Run:
    """A course whose clients have wires of their own; each list takes a second."""

    def __init__(self, *groups, phases=None, steps=None, task=0, tasks=1):
        self.clock = ManualClock(10.0)
        self.over = []
        scenario = DiscoveryScenario(
            namespaces=(NAMESPACE,), groups=groups, phases=phases or Phases(measure_seconds=100)
        )
        self.context = ClientContext(
            scenario,
            RequestCounters(),
            on_finished=lambda: None,
            time=RunTime(self.clock.now, 12.0),  # T0 is in two seconds
            clock=self.clock,
        )
        self.course = Course(scenario, self.context, lambda: self.over.append(self.seconds))
        self.wires, self.clients = [], []
        for plan in client_plans(scenario, task, tasks):
            own = {"list": ["silence"]} if plan.group.name == "lost" else dict(steps or {})
            wires = ScriptedWires(self.clock, delays={"list": 1.0}, steps=own)
            self.wires.append(wires)
            client = FamilyClient(plan, self.context, wires, self.course.settled)
            self.clients.append(client)
        self.course.start(self.clients)

    @property
    def seconds(self):
        return self.context.time.seconds()

    def asked(self):
        """When lists were asked for, relative to T0."""
        return sorted(
            at - 12 for each in self.wires for at, kind, _ in each.asked if kind == "list"
        )


def group(name="g", **fields):
    return {"name": name, "clients": 1, "family": "cpp", **fields}


def test_clients_start_at_their_moments_and_the_run_ends_when_all_are_back():
    run = Run(group(clients=4, arrivals={"kind": "constant", "per_second": 2}))
    # When
    run.clock.advance(60)
    # Then
    assert run.asked() == [0.0, 0.5, 1.0, 1.5]
    assert run.over == [pytest.approx(2.5)]
    assert {each.row(0)["outcome"] for each in run.clients} == {"back"}


def test_a_closed_load_starts_the_next_when_one_is_back():
    arrivals = {"kind": "concurrency", "clients_at_once": 2}
    run = Run(group(clients=5, arrivals=arrivals))
    # When
    run.clock.advance(60)
    # Then
    assert run.asked() == [0.0, 0.0, 1.0, 1.0, 2.0]
    assert run.over == [3.0]
    assert not any(wires.open for wires in run.wires)


def test_everything_goes_on_while_a_run_is_held():
    phases = Phases(measure_seconds=5, hold_seconds=21.0)
    run = Run(group(period_seconds=10.0), phases=phases)
    # When
    run.clock.advance(8)
    assert run.context.counters.phase == "hold"
    run.clock.advance(52)
    # Then
    assert run.asked() == [0.0, 11.0, 22.0]
    assert run.over == [26.0]


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_a_hold_is_as_long_over_any_number_of_tasks(tasks):
    # Given a client that is never answered, and others that are back at once
    phases = Phases(warm_up_seconds=1, measure_seconds=4, hold_seconds=10, drain_seconds=0)
    groups = [group("lost"), group("fine", clients=2, period_seconds=3.0)]
    # When
    runs = [Run(*groups, phases=phases, task=task, tasks=tasks) for task in range(tasks)]
    for run in runs:
        run.clock.advance(60)
    # Then
    assert [run.over for run in runs] == [[15.0]] * tasks
    asked = sorted(at for run in runs for at in run.asked())
    assert asked == [0.0, *sorted([0.0, 4.0, 8.0, 12.0] * 2)]


def test_a_run_ends_with_its_time_and_lets_requests_end():
    phases = Phases(measure_seconds=5, drain_seconds=3)
    run = Run(group(), phases=phases, steps={"list": ["silence"]})
    # When
    run.clock.advance(60)
    # Then
    assert run.over == [8.0]
    assert run.clients[0].row(0)["outcome"] == "unfinished"


def test_draining_is_over_with_the_last_request():
    phases = Phases(measure_seconds=0.5, drain_seconds=3)
    run = Run(group(), phases=phases)
    # When
    run.clock.advance(60)
    # Then
    assert run.over == [1.0]


def test_nobody_ends_a_run_before_the_warm_up_is_over():
    run = Run(group(), phases=Phases(warm_up_seconds=4, measure_seconds=5))
    # When
    run.clock.advance(60)
    # Then
    assert run.over == [4.0]


def test_what_is_due_in_the_warm_up_is_not_counted_live():
    phases = Phases(warm_up_seconds=1, measure_seconds=5)
    run = Run(group(clients=4, arrivals={"kind": "constant", "per_second": 2}), phases=phases)
    # When
    run.clock.advance(60)
    # Then
    assert run.asked() == [0.0, 0.5, 1.0, 1.5]
    assert run.context.counters.ended == {"list.answered": 2}
    assert run.context.counters.started == 2


def test_a_task_without_clients_is_over_at_once():
    run = Run(group())
    run.course = Course(run.context.scenario, run.context, lambda: run.over.append("none"))
    # When
    run.course.start([])
    # Then
    assert run.over == ["none"]


def test_a_late_start_is_told():
    run = Run(group(clients=2, arrivals={"kind": "constant", "per_second": 1}))
    # When
    run.clock.advance(10, late_seconds=0.25)
    # Then
    assert run.course.start_error_seconds == pytest.approx(0.25)


def test_a_run_that_is_stopped_asks_no_more_and_lets_requests_end():
    arrivals = {"kind": "constant", "per_second": 1}
    run = Run(group(clients=9, arrivals=arrivals), phases=Phases(measure_seconds=100))
    run.clock.advance(2 + 1.5)  # the second client has asked half a second ago
    # When
    run.course.stop()
    run.course.stop()
    run.clock.advance(60)
    # Then
    assert run.asked() == [0.0, 1.0]
    assert run.over == [2.0]
