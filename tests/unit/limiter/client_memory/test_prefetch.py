"""Prefetching: bytes promised to consumers, and fair turns."""

import pytest

from limiter.client_memory import prefetch
from limiter.client_memory.memory_limit_controller import MemoryLimitController
from limiter.client_memory.prefetch import (
    IDLE_SECONDS,
    MOST_TURNS_AT_ONCE,
    PATIENCE_SECONDS,
    ROUND_SECONDS,
    SHORTEST_PACE_SECONDS,
    Turn,
)
from tests.support.clocks.manual_clock import ManualClock

ENTRY = 100


class Taker:
    """A consumer that holds one entry at a time."""

    def __init__(self, memory: MemoryLimitController, entry_bytes: int = ENTRY) -> None:
        self.prefetch = memory.prefetch
        self.held = memory.reserve_prefetched()
        self.entry_bytes = entry_bytes
        self.kept_bytes = 0
        self.asking = False
        self.turn = Turn(self)
        self.rooms: list[int] = []

    def turn_came(self, room_bytes: int) -> None:
        self.rooms.append(room_bytes)
        self.prefetch.promise(self.turn, self.entry_bytes, 0)

    def ask(self, *, waits: bool = False) -> None:
        self.asking = waits
        self.prefetch.ask(self.turn)

    def arrive(self) -> None:
        self.asking = False
        self.held.adjust(self.entry_bytes)
        self.prefetch.end(self.turn)

    def take(self) -> None:
        self.held.adjust(-self.entry_bytes)


class Pool:
    """A limit on a manual clock, with consumers."""

    def __init__(self, limit_bytes: int, takers: int, producer_share: float = 0.0) -> None:
        self.clock = ManualClock()
        self.memory = MemoryLimitController(
            limit_bytes, clock=self.clock, producer_share=producer_share
        )
        self.takers = [Taker(self.memory) for _ in range(takers)]

    def turns(self) -> list[int]:
        """Return the number of turns by consumer."""
        return [len(taker.rooms) for taker in self.takers]


# -- the producers' share ---------------------------------------------------------------------


def test_producers_keep_their_share_regardless_of_prefetched_bytes() -> None:
    pool = Pool(100, 1, producer_share=0.25)
    pool.memory.reserve_prefetched().adjust(10_000)
    # Up to the share, and one request beyond.
    assert pool.memory.try_reserve(25) is not None
    assert pool.memory.try_reserve(50) is not None
    assert pool.memory.try_reserve(0) is None


def test_without_a_producer_share_prefetched_messages_stop_producers() -> None:
    pool = Pool(100, 1, producer_share=0.0)
    pool.memory.reserve_prefetched().adjust(101)
    assert pool.memory.try_reserve(0) is None


def test_memory_released_by_a_producer_serves_the_next_producer_despite_prefetching() -> None:
    pool = Pool(100, 1, producer_share=0.25)
    pool.memory.reserve_prefetched().adjust(10_000)
    sent = pool.memory.reserve_nowait(30)
    waiter = pool.memory.request(1)
    assert not waiter.done
    sent.release()
    assert waiter.done


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_producer_share_outside_0_to_1_is_rejected(share: float) -> None:
    with pytest.raises(ValueError, match="producer_share is a fraction from 0 to 1, not"):
        MemoryLimitController(producer_share=share)


def test_bytes_promised_to_a_consumer_count_as_used_for_producers() -> None:
    pool = Pool(1_000, 1)
    taker = pool.takers[0]
    taker.ask()
    pool.memory.prefetch.promise(taker.turn, ENTRY, 1_001)
    assert pool.memory.try_reserve(1) is None
    waiter = pool.memory.request(1)
    pool.memory.prefetch.leave(taker.turn)
    assert waiter.done


# -- turns ------------------------------------------------------------------------------------


def test_turns_are_granted_immediately_while_there_is_room() -> None:
    pool = Pool(400, 4, producer_share=0.25)
    for taker in pool.takers:
        taker.ask()
    assert pool.turns() == [1, 1, 1, 0]
    assert [taker.rooms for taker in pool.takers] == [[100], [50], [0], []]
    assert pool.memory.prefetch.room() == 0


def test_half_of_the_free_memory_may_be_promised_to_a_single_consumer() -> None:
    pool = Pool(400, 1, producer_share=0.25)
    pool.memory.reserve_nowait(200)
    assert pool.memory.prefetch.room() == 100


def test_memory_used_by_producers_is_no_room_for_prefetching() -> None:
    pool = Pool(400, 2)
    pool.memory.reserve_nowait(300)
    for taker in pool.takers:
        taker.ask()
    assert pool.turns() == [1, 0]


def test_an_entry_larger_than_the_limit_arrives_only_when_no_entry_is_held() -> None:
    pool = Pool(1, 2)
    first, second = pool.takers
    first.ask()
    second.ask()
    assert pool.turns() == [1, 0]
    first.arrive()
    assert pool.turns() == [1, 0]
    first.take()
    assert pool.turns() == [1, 1]


def test_consumers_with_a_waiting_application_are_served_first() -> None:
    pool = Pool(1, 4)
    for taker in pool.takers:
        taker.ask()
    pool.takers[3].ask(waits=True)
    pool.takers[2].ask(waits=True)
    for expected in ([1, 0, 0, 1], [1, 0, 1, 1], [1, 1, 1, 1]):
        holder = next(one for one in pool.takers if one.turn.entry_bytes)
        holder.arrive()
        holder.take()
        assert pool.turns() == expected


def test_a_consumer_with_a_waiting_application_is_served_immediately_if_no_turn_is_in_use() -> None:
    # Memory is full of messages that no consumer takes.
    pool = Pool(100, 2)
    full, other = pool.takers
    full.ask()
    full.arrive()
    other.ask()
    assert pool.turns() == [1, 0]
    other.ask(waits=True)
    assert pool.turns() == [1, 1]


def test_a_consumer_keeping_entries_beyond_the_limit_waits_until_patience_ends() -> None:
    # Memory is full of messages kept by one application.
    pool = Pool(100, 1)
    (keeper,) = pool.takers
    for kept in (ENTRY, 2 * ENTRY):
        keeper.ask(waits=True)
        keeper.arrive()
        keeper.kept_bytes = kept
    keeper.ask(waits=True)
    assert pool.turns() == [2]
    pool.clock.advance(PATIENCE_SECONDS + 0.5)
    assert pool.turns() == [3]


def test_a_consumer_that_releases_entries_beyond_the_limit_is_served_immediately() -> None:
    pool = Pool(100, 1)
    (keeper,) = pool.takers
    for kept in (ENTRY, 2 * ENTRY):
        keeper.ask(waits=True)
        keeper.arrive()
        keeper.kept_bytes = kept
    keeper.ask(waits=True)
    keeper.kept_bytes = ENTRY
    keeper.take()
    assert pool.turns() == [3]


def test_a_turn_without_arriving_entries_passes_on_to_a_waiting_consumer() -> None:
    pool = Pool(100, 2)
    idle, waiting = pool.takers
    idle.ask()
    waiting.ask(waits=True)
    pool.clock.advance(IDLE_SECONDS - 0.01)
    assert pool.turns() == [1, 0]
    pool.clock.advance(0.02)
    assert pool.turns() == [1, 1]
    assert pool.memory.prefetch.passed_on_total == 1


def test_a_turn_does_not_pass_on_to_a_consumer_without_a_waiting_application() -> None:
    pool = Pool(100, 2)
    for taker in pool.takers:
        taker.ask()
    pool.clock.advance(100.0)
    assert pool.turns() == [1, 0]


def test_a_turn_in_use_passes_on_only_after_the_patience_of_waiting_consumers_ends() -> None:
    pool = Pool(100, 2)
    busy, waiting = pool.takers
    busy.ask()
    waiting.ask(waits=True)
    for _ in range(9):
        pool.memory.prefetch.came(busy.turn, 0)
        pool.clock.advance(PATIENCE_SECONDS / 10)
    assert pool.turns() == [1, 0]
    pool.memory.prefetch.came(busy.turn, 0)
    pool.clock.advance(0.5)
    assert pool.turns() == [1, 1]


@pytest.mark.parametrize("consumers", [2, 50, 1_000, 5_000])
def test_every_waiting_consumer_has_a_turn_within_a_round(consumers: int) -> None:
    """Even without a single message, and with a limit of one byte."""
    pool = Pool(1, consumers)
    for taker in pool.takers:
        taker.ask(waits=True)
    assert sum(pool.turns()) == 1
    pool.clock.advance(PATIENCE_SECONDS + ROUND_SECONDS + 0.5)
    assert pool.turns() == [1] * consumers


def test_turns_pass_on_evenly_over_a_round() -> None:
    pool = Pool(1, 1_000)
    for taker in pool.takers:
        taker.ask(waits=True)
    pool.clock.advance(PATIENCE_SECONDS + ROUND_SECONDS / 2)
    assert 400 < sum(pool.turns()) < 700


def test_a_release_grants_a_bounded_number_of_turns_per_step_of_the_loop() -> None:
    pool = Pool(100_000, 600)
    sent = pool.memory.reserve_nowait(100_000)
    for taker in pool.takers:
        taker.ask()
    sent.release()
    # The first consumer has had a turn already.
    assert sum(pool.turns()) == 1 + MOST_TURNS_AT_ONCE
    pool.clock.advance(0.0)
    assert pool.turns() == [1] * 600
    assert pool.memory.prefetch.waiting == 0


def test_overdue_turns_are_granted_in_bounded_batches(monkeypatch) -> None:
    monkeypatch.setattr(prefetch, "MOST_TURNS_AT_ONCE", 3)
    pool = Pool(ENTRY, 4_000)
    for taker in pool.takers:
        taker.ask(waits=True)
    at_once = []
    for _ in range(round(2 * PATIENCE_SECONDS / SHORTEST_PACE_SECONDS)):
        before = sum(pool.turns())
        pool.clock.advance(SHORTEST_PACE_SECONDS)
        at_once.append(sum(pool.turns()) - before)
    assert 3 <= max(at_once) <= 3 + 3


def test_a_leaving_consumer_makes_room_for_a_waiting_consumer() -> None:
    pool = Pool(100, 3)
    for taker in pool.takers:
        taker.ask()
    pool.memory.prefetch.leave(pool.takers[1].turn)
    pool.memory.prefetch.leave(pool.takers[0].turn)
    assert pool.turns() == [1, 0, 1]
    assert pool.memory.prefetch.waiting == 0
    assert pool.memory.prefetch.turns == 1


def test_a_consumer_that_steps_back_no_longer_waits_and_keeps_its_promised_bytes() -> None:
    pool = Pool(100, 2)
    for taker in pool.takers:
        taker.ask()
    for taker in pool.takers:
        pool.memory.prefetch.step_back(taker.turn)
    assert pool.memory.prefetch.waiting == 0
    assert pool.memory.prefetch.entry_bytes == ENTRY


def test_statistics_report_prefetched_and_promised_bytes_and_waiting_consumers() -> None:
    pool = Pool(300, 4)
    for taker in pool.takers:
        taker.ask()
    pool.takers[0].arrive()
    figures = pool.memory.statistics()
    assert (figures.prefetched_bytes, figures.promised_bytes) == (ENTRY, 2 * ENTRY)
    assert figures.consumers_waiting == 1
