"""A stalled server makes no client send less: response times show the stall, service times do
not.
"""

import asyncio
import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from loadgen.behaviours.lookup import Lookup
from loadgen.engine.client import LoadClient
from loadgen.engine.context import RunTime, TaskContext
from loadgen.engine.rows import Rows
from loadgen.plan.clients import ClientPlan, Namespace
from loadgen.results.results import Results
from loadgen.results.tables import write_rows
from tests.support.discovery.load_clients import virtual_clock
from tests.support.discovery.scripted_broker import on_virtual_loop
from tests.support.runs.recorded_run import record_run

SERVICE = 0.001
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}


class StallingServer:
    """A client's connection that answers after a while, except during a stall.

    Args:
        refuses: Whether sends fail during the stall; else requests of the stall are answered after
            its end.
    """

    def __init__(self, begun: float, stall: float, *, refuses: bool) -> None:
        self._begun, self._end, self._refuses = begun, begun + stall, refuses
        self.connection = self

    def _left(self) -> float:
        now = asyncio.get_running_loop().time()
        return self._end - now if self._begun <= now < self._end else 0.0

    async def ready(self) -> None:
        if self._refuses and (left := self._left()):
            await asyncio.sleep(left)

    def request(self, *_: object) -> asyncio.Future[pb.CommandLookupTopicResponse]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[pb.CommandLookupTopicResponse] = loop.create_future()
        found = pb.CommandLookupTopicResponse()
        loop.call_later(self._left() + SERVICE, answer.set_result, found)
        return answer

    def forget(self, _: int) -> None:
        """No-op."""

    def patience_end(self) -> float:
        return asyncio.get_running_loop().time() + 30

    def close(self) -> None:
        """No-op."""


def played(rate: float, seconds: float, server: StallingServer) -> Rows:
    """Return the rows of one client sending requests at fixed intervals."""

    async def play() -> Rows:
        clock = virtual_clock()
        context: Any = TaskContext("", None, RunTime(clock.now), clock, authentication=None)
        group = Lookup(name="look", count=1, every=1 / rate)
        client = LoadClient(ClientPlan(0, 0, group, Namespace(name="t/n"), 0.0), context)
        client.service = server  # type: ignore[assignment]
        running = asyncio.create_task(client.run())
        await asyncio.sleep(seconds - 0.5 / rate)
        client.stopping.set()
        await client.finish()
        await running
        return context.rows

    rows: Rows = on_virtual_loop(play)
    return rows


def percentiles(rows: Rows) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return response and service percentiles, from a run's queries."""
    with tempfile.TemporaryDirectory() as folder:
        run = record_run(Path(folder))
        write_rows(folder, "r", 0, 0.0, rows)
        with Results.open(run) as results:
            return results.query("all")[0], results.query("service")[0]


def analytic(rate: float, seconds: float, begun: float, stall: float, share: float) -> float:
    """Return the percentile of a queue with one stall: requests due meanwhile wait for the end."""
    due = [number / rate for number in range(math.ceil(round(seconds * rate, 9)))]
    waits = [max(0.0, begun + stall - at) if at >= begun else 0.0 for at in due]
    took = sorted(wait + SERVICE for wait in waits)
    return took[max(1, math.ceil(round(share * len(took), 9))) - 1]


def test_a_stall_of_200_ms_is_in_the_response_times_and_not_in_the_service_times() -> None:
    # A hundred requests a second for ten seconds, and a stall affecting twenty.
    response, service = percentiles(played(100.0, 10.0, StallingServer(4.9975, 0.2, refuses=True)))
    assert response["p99"] == pytest.approx(0.1985 - 0.1, abs=1e-6)
    assert response["max"] == pytest.approx(0.1985, abs=1e-6)
    assert response["p50"] == pytest.approx(SERVICE, abs=1e-6)
    # Service times alone hide the stall.
    assert service["max"] == pytest.approx(SERVICE, abs=1e-6)


@settings(max_examples=10, deadline=None)
@given(
    rate=st.integers(20, 200).map(float),
    begun=st.integers(1, 40).map(lambda tenths: tenths / 10 + 0.00171),
    stall=st.integers(1, 10).map(lambda tenths: tenths / 10),
    refuses=st.booleans(),
)
def test_every_response_percentile_equals_its_analytic_value(rate, begun, stall, refuses) -> None:
    # No request is in flight when the stall begins
    assume((begun * rate) % 1 > SERVICE * rate * 1.1)
    rows = played(rate, 6.0, StallingServer(begun, stall, refuses=refuses))
    response, _ = percentiles(rows)
    for name, share in SHARES.items():
        right = analytic(rate, 6.0, begun, stall, share)
        assert response[name] == pytest.approx(right, abs=1e-6), name
