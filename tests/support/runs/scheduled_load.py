"""A scheduled client on a clock in the test's hands, and a server that answers it after a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.clients.context import ClientContext, RunTime
from loadgen.clients.records import RequestCounters
from loadgen.clients.schedule import due_moments, scheduled_plans
from loadgen.clients.scheduled_client import ScheduledClient
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.lookups.scenario import LookupsScenario
from tests.support.clocks.manual_clock import ManualClock

if TYPE_CHECKING:
    from loadgen.clients.records import RequestRecord


class AnsweringWire:
    """A connection whose server answers each request ``service_seconds`` after it arrives.

    Attributes:
        stalled_until: Nothing is answered before this moment of the clock.
    """

    usable = True

    def __init__(self, client: ScheduledClient, clock: ManualClock, service_seconds: float) -> None:
        self.stalled_until = 0.0
        self._client = client
        self._clock = clock
        self._service_seconds = service_seconds

    def send(self, frame: bytes) -> None:
        """Take a request; its frame is its number."""
        begun = max(self._clock.now(), self.stalled_until)
        self._clock.call_at(begun + self._service_seconds, self._answer, int(frame))

    def _answer(self, request_id: int) -> None:
        if self._client.awaits(request_id):
            self._client.answered(request_id, 1, None)

    def close(self) -> None:
        """Nothing is left to do."""


class ScheduledLoad:
    """The clients of one task, each with a wire of its own."""

    def __init__(self, clients: int, rate: float, seconds: float, service_seconds: float) -> None:
        self.clock = ManualClock()
        self.seconds = seconds
        scenario = LookupsScenario(
            service_url="pulsar://127.0.0.1:1",
            namespaces=(NamespaceExpectation(name="load/ns"),),
            clients=clients,
            lookups_per_second=rate / clients,
            lookup_seconds=seconds,
        )
        time = RunTime(self.clock.now, self.clock.now())
        context = ClientContext(scenario, RequestCounters(), lambda: None, time, self.clock)
        self.clients = [
            ScheduledClient(
                plan,
                context,
                due_moments(scenario, plan.client),
                lambda number: b"%d" % number,
                lambda _: None,
            )
            for plan in scheduled_plans(scenario, 0, 1)
        ]
        self.wires = [AnsweringWire(each, self.clock, service_seconds) for each in self.clients]
        for client, wire in zip(self.clients, self.wires, strict=True):
            client.connected(wire)  # type: ignore[arg-type]
            client.begin()

    def stall(self, seconds: float) -> None:
        """Let the server answer nothing for a while."""
        for wire in self.wires:
            wire.stalled_until = self.clock.now() + seconds

    def lose_connections(self) -> None:
        """Let the server close all connections; nobody makes them again."""
        for client, wire in zip(self.clients, self.wires, strict=True):
            client.disconnected(wire, "closed")  # type: ignore[arg-type]

    def connect(self) -> None:
        """Make all connections again."""
        for client, wire in zip(self.clients, self.wires, strict=True):
            client.connected(wire)  # type: ignore[arg-type]

    def records(self) -> list[RequestRecord]:
        """Everything that was asked for."""
        return [record for client in self.clients for record in client.records]
