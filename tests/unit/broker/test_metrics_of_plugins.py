"""Metrics of a listing plug-in."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest

import proto.PulsarApi_pb2 as pb
from broker.metrics import PLUGIN
from broker.plugins.calls import ResourceCalls, ResourcesError
from limiter.metrics.prometheus import Instruments
from proto.names import NamespaceName
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started
from tests.unit.broker.plugins.plug_ins import Stubborn

NAMESPACE = NamespaceName.parse("tenant/ns")
PERSISTENT = pb.CommandGetTopicsOfNamespace.PERSISTENT


async def test_plug_in_calls_are_counted_in_flight_overdue_and_failed() -> None:
    clock, plug_in = ManualClock(), Stubborn()
    plug_in.go_on.clear()
    calls = ResourceCalls(plug_in, "m:C", 30.0, clock)
    registry = CollectorRegistry()
    registry.register(Instruments(PLUGIN, lambda: calls, {"cluster": "c"}))

    def figures() -> list[float | None]:
        names = ("calls", "overdue_calls", "failures_total")
        labels = {"cluster": "c"}
        return [registry.get_sample_value(f"floodgate_resources_{n}", labels) for n in names]

    asking = await started(calls.list_topics(NAMESPACE, PERSISTENT, {"k": "v"}))
    under_way = figures()
    clock.advance(30.0)
    with pytest.raises(ResourcesError):
        await asking
    overdue = figures()
    plug_in.go_on.set()
    await settle()
    assert (under_way, overdue, figures()) == ([1, 0, 0], [0, 1, 1], [0, 0, 1])
    assert b"# HELP floodgate_resources_failures_total" in generate_latest(registry)
