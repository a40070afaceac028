"""A broker's share of the machine, in percent."""

import os

from broker.metrics import LoadUsage, memory_limit_bytes, resident_bytes
from limiter.flow.outbound_buffer import OutboundTotals
from tests.support.clocks.manual_clock import ManualClock


def test_cpu_usage_is_the_share_of_all_processors_in_the_last_minute() -> None:
    clock, used = ManualClock(), [5.0]
    usage = LoadUsage(OutboundTotals(), clock, lambda: used[0])
    share = []
    # A minute with half a processor, then an idle minute, with two readings in each
    for more in (15.0, 15.0, 0.0, 0.0):
        clock.advance(30)
        used[0] += more
        share.append(usage.percent()["cpu"] * (os.cpu_count() or 1))
    assert share == [0, 50, 50, 0]


def test_direct_memory_usage_is_the_share_of_the_bound_and_omitted_without_a_bound() -> None:
    bounded, unbounded = OutboundTotals(1_000), OutboundTotals()
    for one in (bounded, unbounded):
        one.change(400, paid_bytes=150)
    shown = [LoadUsage(one, ManualClock()).percent() for one in (bounded, unbounded)]
    assert shown[0]["directMemory"] == 25
    assert "directMemory" not in shown[1]


def test_memory_usage_is_the_share_of_the_memory_limit_of_the_process() -> None:
    share = LoadUsage(OutboundTotals(), ManualClock()).percent()["memory"]
    assert 0 < share < 100
    assert 0 < resident_bytes() < memory_limit_bytes()
