"""A server that stalls makes an open schedule wait: response times say so, service times do not."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from loadgen.clients.records import TaskFacts, TaskReport, report_rows
from loadgen.results.writing import summarized
from tests.support.runs.scheduled_load import ScheduledLoad

SERVICE = 0.001
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "p9999": 0.9999, "max": 1.0}


def analytic(rate: float, seconds: float, begun: float, stall: float, share: float) -> float:
    """The percentile of a queue that stands still once: who is due meanwhile waits for its end."""
    due = [number / rate for number in range(math.ceil(round(seconds * rate, 9)))]
    waits = sorted(max(0.0, begun + stall - at) for at in due if at >= begun)
    took = [SERVICE] * (len(due) - len(waits)) + [wait + SERVICE for wait in waits]
    return sorted(took)[max(1, math.ceil(round(share * len(took), 9))) - 1]


def latencies(load: ScheduledLoad) -> tuple[dict[str, float], dict[str, float]]:
    """Response and service percentiles, as a run's summary has them."""
    rows = report_rows(0, load.records())
    summary = summarized([TaskReport(rows, TaskFacts(0, 1, 0.0, 0.0, 0.0))])
    assert summary["answered"] == rows.num_rows
    return summary["latency_seconds"], summary["service_latency_seconds"]


def stalled(rate: float, seconds: float, begun: float, stall: float) -> ScheduledLoad:
    """A server that takes no connection for a while: what falls due meanwhile is sent behind it."""
    load = ScheduledLoad(1, rate, seconds, SERVICE)
    load.clock.advance(begun)
    load.lose_connections()
    load.clock.advance(stall)
    load.connect()
    load.clock.advance(seconds)
    return load


def test_a_stall_of_200_ms_is_in_the_response_times_and_not_in_the_service_times() -> None:
    # Given a hundred requests a second for ten seconds, and a stall that twenty of them meet
    load = stalled(rate=100.0, seconds=10.0, begun=4.9975, stall=0.2)
    # When
    response, service = latencies(load)
    # Then of 1,000 the 990th waited for all but ten intervals of the stall
    assert response["p99"] == pytest.approx(0.1985 - 0.1, abs=1e-6)
    assert response["p999"] == pytest.approx(0.1985 - 0.01, abs=1e-6)
    assert response["max"] == pytest.approx(0.1985, abs=1e-6)
    assert response["p50"] == pytest.approx(SERVICE, abs=1e-6)
    # and who looks at service times alone sees nothing of it
    assert service["max"] == pytest.approx(SERVICE, abs=1e-6)


@settings(max_examples=15)
@given(
    rate=st.integers(20, 200).map(float),
    begun=st.integers(1, 40).map(lambda tenths: tenths / 10 + 0.00171),
    stall=st.integers(1, 10).map(lambda tenths: tenths / 10),
)
def test_every_percentile_of_the_response_is_the_analytic_one(
    rate: float, begun: float, stall: float
) -> None:
    # Given a stall that begins while nothing is under way
    assume((begun * rate) % 1 > SERVICE * rate * 1.1)
    load = stalled(rate, 6.0, begun, stall)
    # When
    response, service = latencies(load)
    # Then
    for name, share in SHARES.items():
        right = analytic(rate, 6.0, begun, stall, share)
        assert response[name] == pytest.approx(right, abs=1e-6), name
        assert service[name] == pytest.approx(SERVICE, abs=1e-6)


def test_a_server_that_answers_late_makes_nobody_ask_less() -> None:
    # Given a server that answers nothing for a second, over connections that stay
    load = ScheduledLoad(4, 100.0, 5.0, SERVICE)
    load.clock.advance(2.0005)
    load.stall(1.0)
    load.clock.advance(10.0)
    # When
    response, _ = latencies(load)
    # Then each was sent when it was due
    assert len(load.records()) == 500
    assert max(load.clients[0].context.lags) < 1e-9
    for name, share in SHARES.items():
        right = analytic(100.0, 5.0, 2.0005, 1.0, share)
        assert response[name] == pytest.approx(right, abs=1e-6), name
