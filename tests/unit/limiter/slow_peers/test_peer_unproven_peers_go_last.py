"""Memory freed by an eviction goes to peers that have read before, not to the next silent peer."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from limiter.flow.causes import CloseReason
from limiter.memory.dual_limiter import LimitType
from limiter.slow_peers.peer import ASKED_A_TICK
from tests.unit.limiter.slow_peers.test_eviction import LIMIT, Peer, World


def newcomer(world: World, name: str) -> Peer:
    """Return a connection that has been sent no bytes."""
    peer = Peer(world, name)
    world.watch.connected(peer)
    return peer


def proven(world: World, name: str) -> Peer:
    """Return a connection that has read an answer, with no bytes outstanding."""
    peer = newcomer(world, name)
    world.watch.sent(peer)
    peer.acknowledged, peer.outstanding = 100_000, False
    world.passes(1.0)
    return peer


@pytest.fixture
def world() -> World:
    return World()


def test_while_peers_are_closed_a_proven_peer_is_served_before_a_new_peer(world: World) -> None:
    reader = proven(world, "reader")
    world.peer("silent", LIMIT)
    fresh = newcomer(world, "fresh")
    first = world.asks(LIMIT, fresh)
    second = world.asks(LIMIT, reader)
    world.passes(3.2)
    assert world.closed == {CloseReason.CONTENTION: 1}
    assert second.permit is not None
    assert not first.done


def test_before_any_peer_is_closed_a_new_peer_is_served_in_turn(world: World) -> None:
    reader = proven(world, "reader")
    holder = world.asks(LIMIT, "holder").result()
    first = world.asks(LIMIT, newcomer(world, "fresh"))
    second = world.asks(LIMIT, reader)
    world.limiter.semaphore(LimitType.DIRECT_MEMORY).release(holder)
    assert first.permit is not None
    assert not second.done


def test_two_graces_after_the_last_close_a_new_peer_is_served_in_turn_again() -> None:
    world = World()
    reader = proven(world, "reader")
    world.peer("silent", LIMIT)
    served = world.asks(LIMIT, reader)
    fresh = newcomer(world, "fresh")
    world.passes(3.2)
    assert served.permit is not None
    world.passes(6.5)
    first = world.asks(LIMIT, fresh)
    second = world.asks(LIMIT, proven(world, "another"))
    world.limiter.semaphore(LimitType.DIRECT_MEMORY).release(served.result())
    assert first.permit is not None
    assert not second.done


def test_a_vouched_for_proxy_is_served_before_a_new_peer(world: World) -> None:
    world.peer("silent", LIMIT)
    proxy, fresh = newcomer(world, "proxy"), newcomer(world, "fresh")
    first = world.asks(LIMIT, fresh)
    second = world.asks(LIMIT, proxy)
    world.watch.vouched_for(proxy)
    world.passes(3.2)
    assert second.permit is not None
    assert not first.done


def test_bytes_acknowledged_while_peers_are_closed_do_not_prove_a_peer(world: World) -> None:
    reader = proven(world, "reader")
    world.peer("silent", LIMIT)
    fresh = newcomer(world, "fresh")
    served = world.asks(LIMIT, reader)
    world.passes(3.2)
    world.watch.sent(fresh)
    fresh.acknowledged, fresh.outstanding = 100_000, False
    world.passes(1.0)
    first = world.asks(LIMIT, fresh)
    second = world.asks(LIMIT, proven_by_a_pong(world, "another"))
    world.limiter.semaphore(LimitType.DIRECT_MEMORY).release(served.result())
    assert second.permit is not None
    assert not first.done


def proven_by_a_pong(world: World, name: str) -> Peer:
    peer = newcomer(world, name)
    world.watch.vouched_for(peer)
    return peer


def test_a_new_peer_is_served_last_before_the_first_silent_peer_is_closed(world: World) -> None:
    fresh, reader = newcomer(world, "fresh"), proven(world, "reader")
    world.peer("silent", LIMIT // 2)
    other = world.asks(LIMIT // 2, "other").result()
    first = world.asks(LIMIT // 2, fresh)
    second = world.asks(LIMIT // 2, reader)
    world.passes(1.2)
    world.limiter.semaphore(LimitType.DIRECT_MEMORY).release(other)
    assert world.closed == {}
    assert second.permit is not None
    assert not first.done


def test_no_peer_is_served_last_because_of_a_silent_peer_without_contention(world: World) -> None:
    fresh = newcomer(world, "fresh")
    world.peer("silent", LIMIT // 2)
    world.passes(20.0)
    assert not world.watch._unproven.go_last
    assert fresh.asked == 0


def test_a_peer_that_acknowledged_only_a_part_of_its_bytes_is_not_proven(world: World) -> None:
    part = newcomer(world, "part")
    world.watch.sent(part)
    part.acknowledged = 100_000
    world.passes(1.0)
    assert part in world.watch._unproven


def test_a_new_peer_is_probed_once_and_only_while_silent_peers_block_a_waiter(world: World) -> None:
    world.peer("silent", LIMIT)
    before = newcomer(world, "before")
    waiting = world.asks(LIMIT, "other")
    world.passes(0.9)
    assert before.asked == 0
    world.passes(0.3)
    after = newcomer(world, "after")
    world.passes(3.0)
    assert waiting.permit is not None
    assert (before.asked, after.asked) == (1, 1)


def test_a_new_peer_is_probed_once_its_handshake_is_finished(world: World) -> None:
    world.peer("silent", LIMIT)
    world.asks(LIMIT, "other")
    fresh = newcomer(world, "fresh")
    fresh.greeted = False
    world.passes(3.5)
    assert fresh.asked == 0
    fresh.greeted = True
    world.passes(0.2)
    assert fresh.asked == 1


def test_thousands_of_new_peers_are_probed_in_bounded_batches(world: World) -> None:
    world.peer("silent", LIMIT)
    world.asks(LIMIT, "other")
    fresh = [newcomer(world, str(number)) for number in range(2 * ASKED_A_TICK)]
    world.passes(0.9)
    asked = []
    for _ in range(4):
        world.passes(0.1)
        asked.append(sum(peer.asked for peer in fresh))
    assert asked[-1] == 2 * ASKED_A_TICK
    assert max(after - before for before, after in pairwise([0, *asked])) == ASKED_A_TICK


def test_an_error_while_probing_a_new_peer_does_not_affect_further_peers(world: World) -> None:
    world.peer("silent", LIMIT)
    waiting = world.asks(LIMIT, "other")
    broken, fresh = newcomer(world, "broken"), newcomer(world, "fresh")
    broken.ask_whether_it_reads = broken.fails
    world.passes(4.0)
    assert waiting.permit is not None
    assert fresh.asked == 1


def test_an_ended_peer_is_no_longer_a_new_peer(world: World) -> None:
    fresh = newcomer(world, "fresh")
    fresh.ends()
    assert len(world.watch._unproven) == 0
    assert world.watch._unproven.to_ask() == []


def test_a_drain_waits_for_a_silent_peer_no_longer_than_its_grace(world: World) -> None:
    silent = world.peer("silent", LIMIT)
    world.passes(30.0)
    assert silent.closings == []
    world.watch.drain()
    world.passes(1.0)
    assert len(silent.closings) == 1
    assert "the process shuts down" in silent.sentence


def test_hundreds_of_simultaneous_timeouts_scan_the_peers_once() -> None:
    # Given many slow peers that all keep reading, and many overdue waiters
    world = World(timeout_seconds=2.0)
    peers = [world.peer(str(number), LIMIT // 100) for number in range(100)]
    waiters = [world.asks(LIMIT, str(number)) for number in range(500)]
    for _ in range(4):
        for peer in peers:
            peer.acknowledged += 1
        world.passes(0.49)
    looked_at = 0
    silent_holders = world.watch._silent_holders

    def counted(now: float) -> Iterator[Peer]:
        nonlocal looked_at
        looked_at += 1
        return silent_holders(now)

    world.watch._silent_holders = counted
    world.passes(0.1)
    assert all(waiter.done for waiter in waiters)
    assert looked_at == 1
