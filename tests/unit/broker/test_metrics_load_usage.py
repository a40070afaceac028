"""A broker's share of the machine, in percent."""

import os

from broker.metrics import LoadUsage, memory_limit_bytes, resident_bytes
from limiter.flow.outbound_buffer import OutboundTotals
from tests.support.clocks.manual_clock import ManualClock


def test_processor_time_is_the_share_of_all_processors_in_the_last_minute_whoever_asks() -> None:
    clock, used = ManualClock(), [5.0]
    usage = LoadUsage(OutboundTotals(), clock, lambda: used[0])
    share = []
    # A minute with half a processor, then an idle minute, with two readings in each
    for more in (15.0, 15.0, 0.0, 0.0):
        clock.advance(30)
        used[0] += more
        share.append(usage.percent()["cpu"] * (os.cpu_count() or 1))
    assert share == [0, 50, 50, 0]


def test_outbound_bytes_are_the_share_of_their_bound_and_left_out_without_one() -> None:
    bounded, unbounded = OutboundTotals(1_000), OutboundTotals()
    for one in (bounded, unbounded):
        one.change(400, paid_bytes=150)
    shown = [LoadUsage(one, ManualClock()).percent() for one in (bounded, unbounded)]
    assert shown[0]["directMemory"] == 25
    assert "directMemory" not in shown[1]


def test_memory_is_the_share_of_what_this_process_may_have() -> None:
    share = LoadUsage(OutboundTotals(), ManualClock()).percent()["memory"]
    assert 0 < share < 100
    assert 0 < resident_bytes() < memory_limit_bytes()
