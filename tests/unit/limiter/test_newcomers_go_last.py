"""What an eviction frees goes to who has read before, not to the next silent peer."""

from __future__ import annotations

from limiter.dual import LimitType
from limiter.flow_totals import CloseReason
from tests.unit.limiter.test_slow_peers import LIMIT, Peer, World


def newcomer(world: World, name: str) -> Peer:
    """A connection that has been sent nothing."""
    peer = Peer(world, name)
    world.watch.connected(peer)
    return peer


def proven(world: World, name: str) -> Peer:
    """A connection that has read an answer, and is owed nothing now."""
    peer = newcomer(world, name)
    world.watch.sent(peer)
    peer.acknowledged, peer.outstanding = 100_000, False
    world.passes(1.0)
    return peer


def test_while_peers_are_closed_who_has_read_before_goes_before_newcomers() -> None:
    # Given a silent peer that holds all; a newcomer asks first, then one who has read before
    world = World()
    reader = proven(world, "reader")
    world.peer("silent", LIMIT)
    fresh = newcomer(world, "fresh")
    first = world.asks(LIMIT, fresh)
    second = world.asks(LIMIT, reader)
    # When
    world.passes(3.2)
    # Then
    assert world.closed == {CloseReason.CONTENTION: 1}
    assert second.permit is not None
    assert not first.done


def test_before_any_peer_is_closed_newcomers_take_their_turn() -> None:
    # Given
    world = World()
    reader = proven(world, "reader")
    holder = world.asks(LIMIT, "holder").result()
    first = world.asks(LIMIT, newcomer(world, "fresh"))
    second = world.asks(LIMIT, reader)
    # When
    world.limiter.semaphore(LimitType.DIRECT_MEMORY).release(holder)
    # Then
    assert first.permit is not None
    assert not second.done


def test_when_nobody_was_closed_for_two_graces_newcomers_are_like_the_others_again() -> None:
    # Given
    world = World()
    reader = proven(world, "reader")
    world.peer("silent", LIMIT)
    served = world.asks(LIMIT, reader)
    fresh = newcomer(world, "fresh")
    world.passes(3.2)
    assert served.permit is not None
    # When
    world.passes(6.5)
    first = world.asks(LIMIT, fresh)
    second = world.asks(LIMIT, proven(world, "another"))
    world.limiter.semaphore(LimitType.DIRECT_MEMORY).release(served.result())
    # Then
    assert first.permit is not None
    assert not second.done


def test_a_proxy_is_vouched_for() -> None:
    # Given
    world = World()
    world.peer("silent", LIMIT)
    proxy, fresh = newcomer(world, "proxy"), newcomer(world, "fresh")
    first = world.asks(LIMIT, fresh)
    second = world.asks(LIMIT, proxy)
    # When
    world.watch.vouched_for(proxy)
    world.passes(3.2)
    # Then
    assert second.permit is not None
    assert not first.done


def test_who_has_left_is_no_newcomer_any_more() -> None:
    # Given
    world = World()
    fresh = newcomer(world, "fresh")
    # When
    fresh.ends()
    # Then
    assert len(world.watch._newcomers) == 0


def test_a_drain_waits_for_a_silent_peer_no_longer_than_its_grace() -> None:
    # Given a peer that nobody waits for
    world = World()
    silent = world.peer("silent", LIMIT)
    world.passes(30.0)
    assert silent.closings == []
    # When
    world.watch.drain()
    world.passes(1.0)
    # Then
    assert len(silent.closings) == 1
    assert "the process ends" in silent.sentence
