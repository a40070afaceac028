"""A thousand clients waiting for one answer are answered in portions per turn of the event loop."""

import asyncio
import gc
from random import Random
from weakref import ref

import pytest

from client.connection.errors import DisconnectedError
from limiter.admission.rules import AdmissionPolicy
from proto.topics_response import TopicsAnswer
from proxy.listing import requesters as module
from proxy.listing.requesters import ANSWERS_A_TURN, BYTES_A_TURN, answers_a_turn
from tests.properties.proxy.flights_history import DIRECT, HEAP, Client, FlightsHistory
from tests.support.clocks.settle import settle

CLIENTS = 1_000


class Waiting(FlightsHistory):
    """Many clients requesting one list, and the broker's answer to all of them."""

    def __init__(self) -> None:
        super().__init__(Random(0), AdmissionPolicy.FAIR, own_hashes=False)

    async def ask(self, count: int = CLIENTS) -> None:
        """Make new clients request the list, all in one flight."""
        for number in range(count):
            self.clients.append(Client(f"client-{number}"))
            self._ask_for(self.clients[-1])
        await settle()

    async def turn(self) -> int:
        """Run one turn of the event loop; return the number of clients answered."""
        before = self.told
        await asyncio.sleep(0)
        return self.told - before

    @property
    def told(self) -> int:
        """Return the number of clients with an answer or an error."""
        return sum(bool(client.entries or client.failures) for client in self.clients)

    async def first_turn(self) -> None:
        """Return the time of the first answers."""
        while not await self.turn():
            pass

    async def turns(self) -> list[int]:
        """Return the number of clients answered in each turn, to the end."""
        told = []
        while self.told < len(self.clients):
            told.append(await self.turn())
        return [number for number in told if number]


async def test_an_answer_is_sent_to_a_bounded_number_of_clients_per_turn() -> None:
    waiting = Waiting()
    await waiting.ask()
    waiting.broker.answer(waiting.broker.pending[0])
    told = await waiting.turns()
    whole, rest = divmod(CLIENTS, ANSWERS_A_TURN)
    assert told == [ANSWERS_A_TURN] * whole + [rest]
    await waiting.end()


async def test_an_error_is_sent_to_a_bounded_number_of_clients_per_turn() -> None:
    waiting = Waiting()
    await waiting.ask()
    waiting.broker.fail(waiting.broker.pending[0], DisconnectedError("broker"))
    told = await waiting.turns()
    assert max(told) == ANSWERS_A_TURN
    await waiting.end()


async def test_requests_of_a_single_client_are_also_answered_in_portions_per_turn() -> None:
    waiting = Waiting()
    waiting.clients.append(Client("client"))
    for _ in range(CLIENTS):
        waiting._ask_for(waiting.clients[0])
    await settle()
    waiting.broker.answer(waiting.broker.pending[0])
    await waiting.first_turn()
    assert len(waiting.clients[0].entries) == ANSWERS_A_TURN
    await settle()
    assert len(waiting.clients[0].entries) == CLIENTS
    await waiting.end()


async def test_a_client_that_disconnects_between_two_turns_gets_no_answer() -> None:
    waiting = Waiting()
    await waiting.ask(ANSWERS_A_TURN + 10)
    waiting.broker.answer(waiting.broker.pending[0])
    await waiting.first_turn()
    unserved = [client for client in waiting.clients if not client.entries]
    for client in unserved[:5]:
        waiting._leave(client)
    await settle()
    assert [len(client.entries) for client in unserved] == [0] * 5 + [1] * 5
    waiting.check_charge()
    await waiting.end()


async def test_no_permits_remain_after_all_clients_disconnect_between_two_turns() -> None:
    waiting = Waiting()
    await waiting.ask(ANSWERS_A_TURN + 10)
    waiting.broker.answer(waiting.broker.pending[0])
    await waiting.first_turn()
    for client in list(waiting.clients):
        waiting._leave(client)
    assert waiting.limiter.acquired_permits(DIRECT) == 0
    await settle()
    assert waiting.limiter.acquired_permits(HEAP) == 0
    assert (len(waiting.flights), len(waiting.flights.live)) == (0, 0)


async def test_a_flight_without_clients_is_freed_without_the_garbage_collector() -> None:
    waiting = Waiting()
    await waiting.ask(ANSWERS_A_TURN + 10)
    (flight,) = waiting.flights._under_way.values()
    kept = ref(flight)
    del flight
    waiting.broker.answer(waiting.broker.pending[0])
    await waiting.first_turn()
    gc.disable()
    try:
        for client in list(waiting.clients):
            waiting._leave(client)
        waiting.broker.pending.clear()
        waiting._started.clear()
        await settle()
        assert kept() is None
    finally:
        gc.enable()


async def test_a_request_between_two_turns_asks_the_broker_to_confirm_the_answer() -> None:
    waiting = Waiting()
    await waiting.ask()
    waiting.broker.answer(waiting.broker.pending[0])
    await waiting.first_turn()
    await waiting.ask(1)
    # The broker is asked to confirm the answer
    assert waiting.broker.pending[0].request.HasField("topics_hash")
    await waiting.end()


@pytest.mark.parametrize(
    ("size_bytes", "clients"),
    [(0, ANSWERS_A_TURN), (5_000, ANSWERS_A_TURN), (BYTES_A_TURN // 4, 4), (5_242_880, 1)],
)
def test_a_larger_answer_is_sent_to_fewer_clients_per_turn(size_bytes: int, clients: int) -> None:
    assert answers_a_turn(size_bytes) == clients


async def test_an_internal_failure_is_reported_to_every_client_without_an_answer(
    monkeypatch,
) -> None:
    waiting = Waiting()
    await waiting.ask(10)
    monkeypatch.setattr(module, "ANSWERS_A_TURN", 4)
    waiting.broker.answer(waiting.broker.pending[0])
    await waiting.first_turn()
    monkeypatch.setattr(TopicsAnswer, "addressed_to", None)
    await settle()
    assert [len(client.entries) for client in waiting.clients] == [1] * 4 + [0] * 6
    assert [len(client.failures) for client in waiting.clients] == [0] * 4 + [1] * 6
    await waiting.end()


@pytest.mark.timeout(20)
async def test_clients_do_not_wait_for_a_cancelled_flight() -> None:
    # As when a loop is cancelled while servers release their clients
    waiting = Waiting()
    await waiting.ask(2)
    (flight,) = waiting.flights._under_way.values()
    assert flight.task is not None
    flight.task.cancel()
    for client in waiting.clients:
        await waiting.flights.finished(client)
    assert flight.task.done()
    assert not waiting.told
