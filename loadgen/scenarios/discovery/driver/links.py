"""All connections of one client, and what it asks on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.scenarios.discovery.driver.ledger import Ledger, Request
from loadgen.scenarios.discovery.driver.link import Link, LinkRules

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.discovery.actions import Failure
    from loadgen.clients.context import ClientContext
    from loadgen.clients.records import Outcome
    from loadgen.clients.wires import BrokerAddress, Wire, Wires
    from loadgen.scenarios.discovery.scenario import FamilyClientPlan


class Links:
    """The connection to the service URL, and those to brokers.

    Args:
        plan: The client's.
        context: The task's.
        wires: Makes connections.
        on_lost: Told of a connection that is gone, before the requests on it fail.
        on_updated: Told of the new hash when topics came or went.
        on_consumer_closed: Told of a consumer that the broker closed.

    Attributes:
        service: The connection to the service URL.
        ledger: The client's requests.
        reconnects: Connections that were made again behind a loss.
        most_connections: Connections at once, at most.
        connected_at: When the first was made, on the run's monotonic clock.
    """

    def __init__(
        self,
        plan: FamilyClientPlan,
        context: ClientContext[Any],
        wires: Wires,
        *,
        on_lost: Callable[[Link], None],
        on_updated: Callable[[str], None],
        on_consumer_closed: Callable[[int], None],
    ) -> None:
        self.ledger = Ledger(plan, context)
        self._rules = LinkRules(
            ledger=self.ledger,
            wires=wires,
            patience_seconds=plan.group.operation_timeout_seconds,
            times_out_late=plan.group.family.startswith("java"),
            on_made=self._made,
            on_gone=self._gone,
            on_lost=on_lost,
            on_updated=on_updated,
            on_consumer_closed=on_consumer_closed,
        )
        self._brokers: dict[BrokerAddress, Link] = {}
        self._asked = self._connections = 0
        self.reconnects = self.most_connections = 0
        self.connected_at: float | None = None
        self.service = Link(self._rules, None)

    def to(self, broker: BrokerAddress) -> Link:
        """Return the connection to a broker; through a proxy it is one of its own."""
        if self._rules.wires.serves(broker):
            return self.service
        if broker not in self._brokers:
            self._brokers[broker] = Link(self._rules, broker)
        return self._brokers[broker]

    def request(
        self,
        link: Link,
        operation: str,
        send: Callable[[Wire, int], None],
        answered: Callable[[Any], None],
        failed: Callable[[Failure, str], None],
        intended_seconds: float | None = None,
    ) -> None:
        """Ask; one of ``answered`` and ``failed`` is called, unless all is closed before."""
        record = self.ledger.add(operation, intended_seconds)
        self._asked += 1
        link.ask(self._asked, Request(record, send, answered, failed))

    def drop(self, reason: str) -> None:
        """Lose all connections of the client's own accord."""
        for link in self._all():
            link.drop(reason)

    def close(self, outcome: Outcome | None, reason: str) -> None:
        """Close all connections; a later request makes new ones.

        Args:
            outcome: Of requests under way; None leaves them without an end.
            reason: For it.
        """
        closed = self._all()
        self.service, self._brokers = Link(self._rules, None), {}
        for link in closed:
            link.close()
            if outcome is not None:
                link.abandon(outcome, reason)

    def _all(self) -> list[Link]:
        return [self.service, *self._brokers.values()]

    def _made(self, again: bool) -> None:
        self.reconnects += again
        self._connections += 1
        self.most_connections = max(self.most_connections, self._connections)
        if self.connected_at is None:
            self.connected_at = self.ledger.context.time.monotonic()

    def _gone(self) -> None:
        self._connections -= 1
