"""Flow control's samples: waiting requests, pauses with reasons, closed peers."""

import pytest
from prometheus_client import CollectorRegistry

from broker.metrics import THROTTLED
from limiter.flow.causes import CloseReason, PauseCause
from limiter.flow.read_gate import ReadGate
from limiter.flow.totals import FlowTotals
from limiter.metrics.prometheus import Instruments
from server.instruments import FLOW
from tests.support.clocks.manual_clock import ManualClock
from tests.support.processes.samples import SampleLine, exposition, read_samples

GAUGES = {
    "floodgate_outbound_pending_bytes",
    "floodgate_outbound_pending_bytes_peak",
    "pulsar_server_channel_write_buf_memory_used_bytes",
    "floodgate_outbound_unpaid_bytes",
    "floodgate_parked_frames",
    "floodgate_parked_bytes",
    "floodgate_in_flight_response_bytes",
}
OVERSIZED = "floodgate_oversized_commands_total"
BY_CAUSE = {
    "floodgate_paused_connections": "gauge",
    "floodgate_pauses_total": "counter",
    "floodgate_paused_seconds_total": "counter",
}


class Exported:
    """The totals of a process and the exported samples."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.totals = FlowTotals(self.clock)
        self._registry = CollectorRegistry()
        for table in (FLOW, THROTTLED):
            self._registry.register(Instruments(table, lambda: self.totals, {"cluster": "c1"}))

    def samples(self) -> list[SampleLine]:
        return read_samples(exposition(self._registry).decode())

    def value(self, name: str, **labels: str) -> float:
        wanted = {"cluster": "c1", **labels}
        (sample,) = [one for one in self.samples() if (one.name, one.labels) == (name, wanted)]
        return sample.value

    def gate(self) -> ReadGate:
        return ReadGate(lambda: None, lambda: None, self.totals)


def test_every_sample_is_exported_with_zero_from_the_start() -> None:
    samples = Exported().samples()
    by_cause = {(name, cause.value) for name in BY_CAUSE for cause in PauseCause}
    by_reason = {("floodgate_closed_slow_peers_total", reason.value) for reason in CloseReason}
    plain = {(name, "") for name in {*GAUGES, OVERSIZED, "pulsar_broker_throttled_connections"}}
    assert {
        (one.name, one.labels.get("cause", one.labels.get("reason", ""))) for one in samples
    } == by_cause | by_reason | plain
    assert {sample.value for sample in samples} == {0}
    assert {sample.labels["cluster"] for sample in samples} == {"c1"}


def test_values_that_can_fall_are_gauges_and_growing_values_are_counters() -> None:
    types = {sample.name: sample.type for sample in Exported().samples()}
    assert types == {
        **dict.fromkeys(GAUGES, "gauge"),
        **BY_CAUSE,
        "floodgate_closed_slow_peers_total": "counter",
        OVERSIZED: "counter",
        "pulsar_broker_throttled_connections": "gauge",
    }


def test_pause_causes_and_close_reasons_are_as_documented() -> None:
    assert {
        "outbound_buffer_full",
        "cooldown",
        "in_flight_response_bytes",
        "pending_publishes",
        "peer_leg_full",
        "process_outbound_full",
    } <= {cause.value for cause in PauseCause}
    assert {reason.value for reason in CloseReason} == {
        "contention",
        "unwritable",
        "drain_rate",
        "keep_alive",
    }


@pytest.mark.parametrize("cause", PauseCause)
def test_a_pause_is_exported_under_its_cause(cause: PauseCause) -> None:
    exported = Exported()
    gate = exported.gate()
    gate.close_for(cause)
    exported.clock.advance(2.5)
    values = {
        (name, one.value): exported.value(name, cause=one.value)
        for name in BY_CAUSE
        for one in PauseCause
    }
    assert {key: value for key, value in values.items() if value} == {
        ("floodgate_paused_connections", cause.value): 1,
        ("floodgate_pauses_total", cause.value): 1,
        ("floodgate_paused_seconds_total", cause.value): 2.5,
    }
    gate.end()
    assert exported.value("floodgate_paused_connections", cause=cause.value) == 0
    assert exported.value("floodgate_pauses_total", cause=cause.value) == 1
    assert exported.value("floodgate_paused_seconds_total", cause=cause.value) == 2.5


@pytest.mark.parametrize("cause", PauseCause)
def test_only_pending_publishes_count_as_throttled(cause: PauseCause) -> None:
    exported = Exported()
    exported.gate().close_for(cause)
    throttled = exported.value("pulsar_broker_throttled_connections")
    assert throttled == (cause is PauseCause.PENDING_PUBLISHES)


@pytest.mark.parametrize("reason", CloseReason)
def test_a_closed_peer_is_exported_under_its_reason(reason: CloseReason) -> None:
    exported = Exported()
    exported.totals.closed[reason] += 3
    name = "floodgate_closed_slow_peers_total"
    values = {one: exported.value(name, reason=one.value) for one in CloseReason}
    assert values == {**dict.fromkeys(CloseReason, 0), reason: 3}


def test_an_oversized_command_is_counted() -> None:
    exported = Exported()
    exported.totals.oversized_commands += 2
    assert exported.value(OVERSIZED) == 2


def test_each_amount_is_exported_under_its_own_name() -> None:
    exported = Exported()
    totals = exported.totals
    totals.outbound.change(1_000)
    totals.outbound.change(-100, 0)
    totals.outbound.change(50, 50)
    totals.parked_frames, totals.parked_bytes, totals.response_bytes = 3, 77, 8_192
    assert {name: exported.value(name) for name in GAUGES} == {
        "floodgate_outbound_pending_bytes": 950,
        "floodgate_outbound_pending_bytes_peak": 1_000,
        "pulsar_server_channel_write_buf_memory_used_bytes": 950,
        "floodgate_outbound_unpaid_bytes": 900,
        "floodgate_parked_frames": 3,
        "floodgate_parked_bytes": 77,
        "floodgate_in_flight_response_bytes": 8_192,
    }
