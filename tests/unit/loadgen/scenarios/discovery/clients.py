"""Clients of families over scripted wires."""

from __future__ import annotations

from loadgen.clients.context import ClientContext, RunTime
from loadgen.clients.records import RequestCounters
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.discovery.driver.family_client import FamilyClient
from loadgen.scenarios.discovery.scenario import DiscoveryScenario, FamilyClientPlan, Group

NAMESPACE = NamespaceExpectation(name="public/default")


def context_of(clock, group):
    """Return what the clients of a task share; T0 is the clock's moment."""
    scenario = DiscoveryScenario(namespaces=(NAMESPACE,), groups=(group,))
    return ClientContext(
        scenario,
        RequestCounters(),
        on_finished=lambda: None,
        time=RunTime(clock.now, clock.now()),
        clock=clock,
    )


def client_of(family, wires, *, settled=None, disconnects=(), start_seconds=0.0, **group):
    """Return a client that has not begun."""
    own = Group(name="g", family=family, clients=1, **group)
    plan = FamilyClientPlan(0, own, NAMESPACE, start_seconds, 1, disconnects, None)
    on_settled = (lambda client: None) if settled is None else settled.append
    return FamilyClient(plan, context_of(wires.clock, own), wires, on_settled)
