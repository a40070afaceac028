"""Only non-reading peers holding memory that other peers wait for are closed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import count, pairwise

import pytest

from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.errors import PermitAcquireTimeoutError
from limiter.flow.causes import CloseReason
from limiter.flow.totals import FlowTotals
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from limiter.permits.account import Waiter
from limiter.slow_peers import eviction
from limiter.slow_peers.eviction import SlowPeers
from limiter.slow_peers.peer import SlowPeerRules, WriteProgress
from tests.support.clocks.counting_clock import CountingClock

HEAP, DIRECT = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY
BUDGETS = pytest.mark.parametrize(("one", "other"), [(HEAP, DIRECT), (DIRECT, HEAP)])
LIMIT = 1_000
ONLY_GRACE = SlowPeerRules(grace_seconds=3.0, max_unwritable_seconds=0)
ONLY_UNWRITABLE = SlowPeerRules(grace_seconds=0, max_unwritable_seconds=60)
ONLY_RATE = SlowPeerRules(0, 0, min_drain_bytes_per_second=100)


class Peer:
    """A connection with scripted acknowledged bytes."""

    def __init__(self, world: World, name: str, *, ends_at_once: bool = True) -> None:
        self.name = name
        self.progress = WriteProgress()
        self.many_clients = False
        self.writable = True
        self.outstanding = True
        self.acknowledged = 0
        self.samples = 0
        self.ends_at_once = ends_at_once
        self.asked = 0
        self.greeted = True
        self.closings: list[float] = []
        self.sentence = ""
        self._world = world

    def __repr__(self) -> str:
        return self.name

    def sample_progress(self, now: float) -> None:
        self.samples += 1
        self.progress.sample(self.acknowledged, now, outstanding=self.outstanding)

    def ask_whether_it_reads(self) -> bool:
        self.asked += self.greeted
        return self.greeted

    def fails(self) -> bool:
        raise RuntimeError("it cannot be asked")

    def close_slow(self, sentence: str) -> None:
        self.closings.append(self._world.seconds)
        self.sentence = sentence
        if self.ends_at_once:
            self.ends()

    def ends(self) -> None:
        self._world.limiter.cancel_owner(self)
        self._world.watch.ended(self)


class World:
    """A process with two budgets of 1,000 bytes; times are seconds since the start."""

    def __init__(
        self,
        rules: SlowPeerRules = ONLY_GRACE,
        timeout_seconds: float = 25.0,
        policy: AdmissionPolicy = AdmissionPolicy.FAIR,
    ) -> None:
        self.clock = CountingClock()
        limit = MemoryLimit(LIMIT, 1_000, timeout_seconds)
        self.limiter = AsyncDualMemoryLimiter(
            limit, limit, self.clock, rules=AdmissionRules(policy)
        )
        self.totals = FlowTotals(self.clock)
        self.watch = SlowPeers(self.limiter, rules, self.totals, self.clock)
        self._began = self.clock.now()

    @property
    def seconds(self) -> float:
        return round(self.clock.now() - self._began, 6)

    @property
    def closed(self) -> dict[CloseReason, int]:
        return dict(+Counter(self.totals.closed))

    def peer(
        self,
        name: str,
        pins: int = 0,
        budget: LimitType = DIRECT,
        *,
        ends_at_once: bool = True,
        many_clients: bool = False,
    ) -> Peer:
        """Connect a peer holding ``direct`` bytes just sent."""
        peer = Peer(self, name, ends_at_once=ends_at_once)
        if many_clients:
            peer.many_clients = True
            self.limiter.exempt_from_quota(peer)
        if pins:
            self.asks(pins, peer, budget).result()
        self.watch.sent(peer)
        return peer

    def asks(self, size: int, owner: object = "healthy", budget: LimitType = DIRECT) -> Waiter:
        return self.limiter.request(budget, size, owner, "public/default")

    def passes(self, seconds: float) -> None:
        self.clock.advance(seconds)


def refused(waiter: Waiter) -> bool:
    return isinstance(waiter.error, PermitAcquireTimeoutError)


@pytest.fixture
def world() -> World:
    return World()


# -- contention -----------------------------------------------------------------------------------


@BUDGETS
def test_a_peer_without_progress_is_closed_after_the_grace_and_its_memory_is_granted(
    world: World, one: LimitType, other: LimitType
) -> None:
    stuck = world.peer("stuck", LIMIT, one)
    waiter = world.asks(10, budget=one)
    world.passes(2.99)
    assert not waiter.done
    world.passes(0.11)
    assert stuck.closings == [pytest.approx(3.0, abs=0.1)]
    assert waiter.result().size == 10
    assert world.closed == {CloseReason.CONTENTION: 1}
    assert world.limiter.acquired_permits(one) == 10
    assert world.limiter.acquired_permits(other) == 0


def test_a_closed_peer_receives_the_reason(world: World) -> None:
    stuck = world.peer("stuck", LIMIT)
    world.asks(10)
    world.passes(3.1)
    assert stuck.sentence.startswith("it read nothing for 3.0 s while other connections wait")
    assert "floodgateSlowPeerGraceMs" in stuck.sentence


def test_each_acknowledged_byte_restarts_the_grace(world: World) -> None:
    slow = world.peer("slow", LIMIT)
    world.asks(10)
    for _ in range(5):
        world.passes(2.5)
        slow.acknowledged += 1
    world.passes(2.9)
    assert slow.closings == []
    world.passes(0.4)
    assert slow.closings == [pytest.approx(12.5 + 3.1, abs=0.15)]


def test_no_peer_is_closed_while_no_request_waits(world: World) -> None:
    stuck = world.peer("stuck", LIMIT)
    world.passes(600.0)
    assert stuck.closings == []
    assert len(world.watch) == 1


def test_an_overdue_peer_is_closed_within_an_interval_after_a_request_begins_to_wait() -> None:
    world = World()
    stuck = world.peer("stuck", LIMIT)
    world.passes(10.05)
    waiter = world.asks(10)
    world.passes(0.11)
    assert stuck.closings == [pytest.approx(10.15)]
    assert waiter.done


def test_at_most_a_single_peer_is_closed_per_interval_longest_without_progress_first() -> None:
    world = World()
    peers = {}
    for name in "abcd":
        peers[name] = world.peer(name, 250)
        world.passes(0.3)
    for name in "ac":
        world.passes(1.0)
        peers[name].acknowledged += 1
    world.passes(10.0)
    # When all are late
    world.asks(LIMIT)
    world.passes(1.0)
    in_order = sorted(peers.values(), key=lambda peer: peer.closings)
    assert [peer.name for peer in in_order] == ["b", "d", "a", "c"]
    moments = [peer.closings[0] for peer in in_order]
    assert all(later - before >= 0.0999 for before, later in pairwise(moments))
    assert world.closed == {CloseReason.CONTENTION: 4}


def test_all_overdue_peers_are_closed_each_in_a_separate_interval(world: World) -> None:
    peers = [world.peer(str(number), 100) for number in range(10)]
    world.passes(5.0)
    world.asks(LIMIT)
    world.passes(1.05)
    moments = sorted(moment for peer in peers for moment in peer.closings)
    assert moments == [pytest.approx(5.1 + 0.1 * number, abs=0.02) for number in range(10)]


def test_no_more_peers_are_closed_than_a_waiter_needs(world: World) -> None:
    peers = [world.peer(str(number), 250) for number in range(4)]
    waiter = world.asks(100)
    world.passes(30.0)
    assert waiter.done
    assert sum(bool(peer.closings) for peer in peers) == 1


@BUDGETS
def test_a_peer_holding_no_memory_of_the_contended_budget_is_not_closed(world, one, other) -> None:
    world.asks(LIMIT, "honest", one)
    in_nobodys_way = world.peer("stuck", LIMIT, other)
    waiter = world.asks(10, budget=one)
    world.passes(24.0)
    assert not waiter.done
    assert in_nobodys_way.closings == []


def test_of_two_overdue_peers_the_holder_of_the_contended_budget_is_closed_first() -> None:
    world = World()
    elsewhere = world.peer("elsewhere", LIMIT, HEAP)
    world.passes(1.0)
    in_the_way = world.peer("in the way", LIMIT, DIRECT)
    world.asks(10, budget=DIRECT)
    world.passes(10.0)
    assert (len(elsewhere.closings), len(in_the_way.closings)) == (0, 1)


def test_a_part_of_a_shared_permit_counts_as_held_memory(world: World) -> None:
    shared = world.limiter.share("public/default")
    peers = [world.peer(name) for name in "ab"]
    for peer in peers:
        shared.join(peer)
    world.asks(LIMIT, shared)
    waiter = world.asks(10)
    world.passes(3.5)
    assert [len(peer.closings) for peer in peers] == [1, 1]
    assert waiter.done


def test_a_peer_waiting_for_its_own_growth_is_not_closed(world: World) -> None:
    growing = world.peer("growing", 500)
    world.asks(500, "honest")
    (account,) = [one for one in world.limiter.semaphore(DIRECT).accounts() if one.owner is growing]
    (permit,) = account.permits
    growth = world.limiter.semaphore(DIRECT).request_update(permit, 600)
    world.passes(24.0)
    assert not growth.done
    assert growing.closings == []


def test_a_peer_without_outstanding_bytes_is_not_closed(world: World) -> None:
    idle = world.peer("idle", LIMIT)
    idle.outstanding = False
    world.asks(10)
    world.passes(24.0)
    assert idle.closings == []


def test_a_peer_with_newly_outstanding_bytes_has_the_full_grace(world: World) -> None:
    peer = world.peer("peer", LIMIT)
    peer.outstanding = False
    world.asks(10)
    world.passes(10.0)
    peer.outstanding = True
    world.watch.sent(peer)
    world.passes(2.9)
    assert peer.closings == []
    world.passes(0.5)
    assert peer.closings == [pytest.approx(13.0, abs=0.2)]


def test_further_sent_bytes_do_not_restart_the_grace(world: World) -> None:
    stuck = world.peer("stuck", LIMIT)
    world.asks(10)
    for _ in range(31):
        world.watch.sent(stuck)
        world.passes(0.1)
    assert len(stuck.closings) == 1


@pytest.mark.parametrize("acknowledges", [True, False])
def test_a_proxy_making_any_progress_is_not_closed(acknowledges: bool) -> None:
    world = World()
    proxy = world.peer("proxy", LIMIT, many_clients=True)
    world.asks(10)
    for _ in range(8):
        world.passes(2.8)
        proxy.acknowledged += acknowledges
    assert bool(proxy.closings) is not acknowledges


def test_without_a_grace_no_peer_is_closed_for_contention_and_no_timeout_is_postponed() -> None:
    world = World(ONLY_UNWRITABLE, timeout_seconds=2.0)
    stuck = world.peer("stuck", LIMIT)
    waiter = world.asks(10)
    world.passes(2.01)
    assert refused(waiter)
    world.asks(10)
    world.passes(30.0)
    assert stuck.closings == []


def test_under_policy_fifo_a_waiter_behind_the_peers_own_request_counts_as_contention() -> None:
    # While the peer stands first, other peers wait for the peer's bytes as well
    world = World(policy=AdmissionPolicy.FIFO)
    stuck = world.peer("stuck", LIMIT)
    world.asks(10, stuck)
    behind = world.asks(10)
    world.passes(3.2)
    assert len(stuck.closings) == 1
    assert behind.done


@pytest.mark.parametrize("rules", [SlowPeerRules(3.0, 60.0, 0), SlowPeerRules(3.0, 0, 100)])
def test_a_peer_ending_a_turn_after_its_close_is_closed_and_counted_once(rules) -> None:
    # Two rules apply in one turn, because a wait begins just before
    world = World(rules)
    stuck = world.peer("stuck", LIMIT, ends_at_once=False)
    stuck.writable = False
    world.passes(59.95 if rules.max_unwritable_seconds else 9.95)
    world.asks(10)
    world.passes(0.06)
    assert len(stuck.closings) == 1
    assert sum(world.closed.values()) == 1


def test_with_more_peers_than_are_sampled_within_the_grace_no_reading_peer_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Most of the observations are older than the grace
    monkeypatch.setattr(eviction, "SAMPLES_A_TICK", 2)
    world = World()
    peers = [world.peer(str(number), 50) for number in range(20)]
    for tenths in range(500):
        if tenths == 300:
            world.asks(LIMIT)
        for peer in peers:
            peer.acknowledged += 1
        world.passes(0.1)
    assert [peer.closings for peer in peers] == [[]] * 20


# -- no progress without contention ---------------------------------------------------------------


def test_a_peer_unwritable_for_too_long_is_closed_though_no_request_waits() -> None:
    world = World(ONLY_UNWRITABLE)
    stuck = world.peer("stuck")
    stuck.writable = False
    world.passes(59.9)
    assert stuck.closings == []
    world.passes(0.7)
    assert stuck.closings == [pytest.approx(60.0, abs=0.5)]
    assert world.closed == {CloseReason.UNWRITABLE: 1}
    assert "floodgateMaxUnwritableSeconds" in stuck.sentence


@pytest.mark.parametrize(
    ("rules", "writable"),
    [
        pytest.param(ONLY_GRACE, False, id="unwritable, without the rules for it"),
        pytest.param(ONLY_UNWRITABLE, True, id="writable"),
    ],
)
def test_without_a_rule_for_it_a_peer_is_not_closed_while_no_request_waits(
    rules: SlowPeerRules, writable: bool
) -> None:
    world = World(rules)
    peer = world.peer("peer")
    peer.writable = writable
    world.passes(600.0)
    assert peer.closings == []


def test_an_unwritable_peer_that_makes_progress_is_not_closed() -> None:
    world = World(ONLY_UNWRITABLE)
    slow = world.peer("slow")
    slow.writable = False
    for _ in range(20):
        world.passes(59.0)
        slow.acknowledged += 1
    assert slow.closings == []


def test_several_unwritable_peers_are_closed_in_a_single_turn_when_no_request_waits() -> None:
    world = World(ONLY_UNWRITABLE)
    peers = [world.peer(str(number)) for number in range(5)]
    for peer in peers:
        peer.writable = False
    world.passes(60.6)
    assert world.closed == {CloseReason.UNWRITABLE: 5}


@pytest.mark.parametrize(("bytes_a_second", "closed"), [(99, True), (101, False)])
def test_a_peer_draining_below_the_minimum_rate_is_closed(
    bytes_a_second: int, closed: bool
) -> None:
    world = World(ONLY_RATE)
    peer = world.peer("peer")
    peer.writable = False
    for _ in range(25):
        peer.acknowledged += bytes_a_second
        world.passes(1.0)
    assert bool(peer.closings) is closed
    if closed:
        assert peer.closings == [pytest.approx(10.0, abs=0.6)]
        assert world.closed == {CloseReason.DRAIN_RATE: 1}
        assert "floodgateMinDrainRateBytesPerSecond=100" in peer.sentence


@pytest.mark.parametrize(("bytes_a_second", "closed"), [(1, False), (0, True)])
def test_a_proxy_may_drain_slowly_but_is_closed_without_progress(
    bytes_a_second: int, closed: bool
) -> None:
    world = World(ONLY_RATE)
    proxy = world.peer("proxy", many_clients=True)
    proxy.writable = False
    for _ in range(25):
        proxy.acknowledged += bytes_a_second
        world.passes(1.0)
    assert bool(proxy.closings) is closed


def test_time_before_a_peer_is_unwritable_does_not_count_towards_its_drain_rate() -> None:
    # Always some bytes in flight, never more than the kernel's buffer
    world = World(ONLY_RATE)
    peer = world.peer("peer")
    for _ in range(25):
        peer.acknowledged += 1
        world.passes(1.0)
    # Time is counted from the moment of becoming unwritable
    peer.writable = False
    world.passes(9.0)
    assert peer.closings == []


# -- waiters behind other waiters -----------------------------------------------------------------


def granted_first(world: World, stuck: Peer, held: Waiter) -> str:
    """Make the stuck peer request before a healthy peer; return the recipient of released bytes."""
    by_stuck, by_healthy = world.asks(400, stuck), world.asks(400, "healthy")
    world.limiter.semaphore(DIRECT).release(held.result())
    assert by_stuck.done is not by_healthy.done
    return "stuck" if by_stuck.done else "healthy"


@pytest.mark.parametrize(("seconds", "first"), [(1.4, "stuck"), (1.6, "healthy")])
def test_from_half_of_the_grace_on_a_peer_without_progress_is_deferred(
    world: World, seconds: float, first: str
) -> None:
    stuck = world.peer("stuck")
    world.asks(LIMIT, "busy", HEAP)
    world.asks(1, "waiting", HEAP)
    world.asks(600, "other")
    held = world.asks(400, "honest")
    world.passes(seconds)
    assert granted_first(world, stuck, held) == first


def makes_progress(world: World, peer: Peer) -> None:
    peer.acknowledged += 1
    world.passes(0.6)


def acknowledges_everything(world: World, peer: Peer) -> None:
    peer.outstanding = False
    world.passes(0.6)


def ends(world: World, peer: Peer) -> None:
    world.watch.ended(peer)
    assert len(world.watch) == 0


@pytest.mark.parametrize(
    "happens", [makes_progress, acknowledges_everything, ends, lambda world, _: world.watch.stop()]
)
def test_a_peer_is_deferred_until_new_progress_its_end_or_a_stop(world: World, happens) -> None:
    peer = world.peer("peer")
    world.asks(600, "other")
    held = world.asks(400, "honest")
    world.passes(2.6)
    happens(world, peer)
    assert granted_first(world, peer, held) == "stuck"


def test_without_a_grace_no_peer_is_deferred() -> None:
    world = World(ONLY_UNWRITABLE)
    peer = world.peer("peer")
    world.asks(600, "other")
    held = world.asks(400, "honest")
    world.passes(30.0)
    assert granted_first(world, peer, held) == "stuck"


# -- deferred timeouts ----------------------------------------------------------------------------


def test_a_timeout_is_postponed_until_the_blocking_peer_is_closed() -> None:
    world = World(timeout_seconds=2.0)
    world.peer("stuck", LIMIT)
    waiter = world.asks(10)
    world.passes(3.2)
    assert waiter.result().size == 10


def test_a_postponed_timeout_ends_once_the_blocking_peer_makes_progress() -> None:
    world = World(timeout_seconds=2.0)
    slow = world.peer("slow", LIMIT)
    waiter = world.asks(10)
    world.passes(2.4)
    assert not waiter.done
    slow.acknowledged += 1
    world.passes(0.3)
    assert refused(waiter)


def test_a_timeout_is_not_postponed_for_peers_that_make_progress() -> None:
    world = World(timeout_seconds=2.0)
    honest = world.peer("honest", LIMIT)
    waiter = world.asks(10)
    for _ in range(21):
        honest.acknowledged += 1
        world.passes(0.1)
    assert refused(waiter)


def test_a_timeout_is_postponed_for_a_holder_of_the_budget_that_heap_holders_wait_for() -> None:
    # Given heap held by a waiter for direct memory pinned by a silent peer
    world = World(timeout_seconds=2.0)
    world.peer("stuck", LIMIT, DIRECT)
    world.asks(LIMIT, "honest", HEAP)
    waiter = world.asks(10, budget=HEAP)
    world.passes(2.01)
    assert not waiter.done


def test_a_timeout_is_not_postponed_for_a_peer_without_permits() -> None:
    world = World(timeout_seconds=2.0)
    world.peer("stuck")
    world.asks(LIMIT, "honest", DIRECT)
    waiter = world.asks(10, budget=DIRECT)
    world.passes(2.01)
    assert refused(waiter)


def test_the_timeout_of_a_peer_without_progress_is_not_postponed() -> None:
    # Given two stuck peers in each other's way
    world = World(timeout_seconds=2.0)
    first = world.peer("first", 500)
    world.peer("second", 500)
    waiter = world.asks(100, first)
    world.passes(2.01)
    assert refused(waiter)


def test_the_timeout_of_a_peer_blocked_by_its_own_permits_is_not_postponed() -> None:
    # No other account holds bytes, and the peer is not deferred yet
    world = World(timeout_seconds=1.0)
    peer = world.peer("peer", LIMIT)
    waiter = world.asks(10, peer)
    world.passes(1.01)
    assert refused(waiter)


def test_a_timeout_is_not_postponed_before_any_peer_could_be_closed() -> None:
    world = World(timeout_seconds=0.3)
    world.asks(LIMIT, "honest")
    waiter = world.asks(10)
    world.passes(0.31)
    assert refused(waiter)


def two_that_take_turns(world: World) -> Callable[[float], None]:
    """Two peers hold all and read now and then, so that one is always within the grace."""
    peers = [world.peer("even", LIMIT // 2), world.peer("odd", LIMIT // 2)]
    turn = count()

    def pass_seconds(seconds: float) -> None:
        peers[next(turn) % 2].acknowledged += 1
        world.passes(seconds)

    return pass_seconds


@pytest.mark.parametrize(
    ("grace_seconds", "before", "step"),
    [(3.0, 0.49, 0.02), pytest.param(3.02, 0.539, 0.002, id="to the millisecond")],
)
def test_a_timeout_is_postponed_by_at_most_twice_the_grace_and_half_a_second(
    grace_seconds: float, before: float, step: float
) -> None:
    world = World(SlowPeerRules(grace_seconds, 0, 0), timeout_seconds=2.0)
    pass_seconds = two_that_take_turns(world)
    waiter = world.asks(LIMIT)
    for _ in range(8):
        pass_seconds(1.0)
    pass_seconds(before)
    assert not waiter.done
    world.passes(step)
    assert refused(waiter)


def test_no_request_is_refused_while_silent_peers_are_being_closed() -> None:
    # Given so many peers that closing them takes longer than any bound
    world = World(timeout_seconds=2.0)
    for number in range(100):
        world.peer(str(number), LIMIT // 100)
    waiter = world.asks(LIMIT)
    world.passes(12.9)
    assert not waiter.done
    world.passes(1.0)
    assert waiter.permit is not None


def test_after_a_peer_is_closed_an_overdue_request_has_half_a_second_more() -> None:
    # The closed peer's bytes go to another peer, which releases later
    world = World(timeout_seconds=1.0)
    world.peer("stuck", LIMIT)
    world.passes(2.5)
    first = world.asks(LIMIT, "first")
    second = world.asks(LIMIT, "second")
    world.passes(1.0)
    # Then the overdue second waiter is granted in time, or refused at the deadline
    assert first.done
    assert not second.done
    world.passes(0.2)
    assert refused(second)


# -- cost -----------------------------------------------------------------------------------------


def test_no_timer_runs_while_no_bytes_are_outstanding(world: World) -> None:
    peer = world.peer("peer")
    world.passes(1.0)
    peer.outstanding = False
    world.passes(1.0)
    armed, samples = world.clock.armed, peer.samples
    world.passes(3_600.0)
    assert (world.clock.armed, peer.samples) == (armed, samples)
    assert len(world.watch) == 0


def test_sampling_resumes_when_new_bytes_are_sent(world: World) -> None:
    peer = world.peer("peer")
    peer.outstanding = False
    world.passes(10.0)
    samples = peer.samples
    peer.outstanding = True
    world.watch.sent(peer)
    world.passes(1.0)
    assert peer.samples == samples + 2


def test_peers_are_sampled_twice_a_second_and_ten_times_a_second_while_a_request_waits() -> None:
    world = World(SlowPeerRules(60.0, 0, 0))
    peer = world.peer("peer", LIMIT)
    world.passes(10.05)
    in_quiet = peer.samples
    world.asks(10)
    world.passes(10.0)
    assert in_quiet == 20
    assert peer.samples - in_quiet == pytest.approx(100, abs=1)


def test_new_peers_do_not_postpone_the_next_sampling(world: World) -> None:
    first = world.peer("first")
    for number in range(10):
        world.passes(0.3)
        world.peer(str(number))
    world.passes(0.1)
    assert first.samples == 6


def test_a_bounded_number_of_peers_is_sampled_per_turn_and_the_rest_next(monkeypatch) -> None:
    monkeypatch.setattr(eviction, "SAMPLES_A_TICK", 2)
    world = World()
    peers = [world.peer(str(number)) for number in range(5)]
    seen = []
    for _ in range(5):
        world.passes(0.5)
        seen.append([peer.samples for peer in peers])
    assert seen == [
        [1, 1, 0, 0, 0],
        [1, 1, 1, 1, 0],
        [2, 1, 1, 1, 1],
        [2, 2, 2, 1, 1],
        [2, 2, 2, 2, 2],
    ]


def test_an_internal_error_with_a_single_peer_does_not_end_the_watch_over_the_rest(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken, stuck = world.peer("broken"), world.peer("stuck", LIMIT)
    monkeypatch.setattr(broken, "sample_progress", lambda _: 1 // 0)
    world.asks(10)
    world.passes(3.2)
    assert len(stuck.closings) == 1
    assert "broken" in caplog.text
    assert len(world.watch) == 0


# -- off, and the end -----------------------------------------------------------------------------


def test_with_every_rule_off_no_peer_is_watched() -> None:
    world = World(SlowPeerRules(0, 0, 0))
    peer = world.peer("peer", LIMIT)
    world.passes(600.0)
    assert not world.watch.watches
    assert (len(world.watch), peer.samples, world.clock.armed) == (0, 0, 0)


@pytest.mark.parametrize("rules", [ONLY_GRACE, ONLY_UNWRITABLE, ONLY_RATE])
def test_any_single_rule_is_enough_to_watch_peers(rules: SlowPeerRules) -> None:
    world = World(rules)
    peer = world.peer("peer")
    world.passes(1.1)
    assert peer.samples == 2


def test_after_a_stop_no_peer_is_watched_or_closed() -> None:
    world = World(SlowPeerRules(3.0, 60.0, 100), timeout_seconds=300.0)
    stuck = world.peer("stuck", LIMIT)
    stuck.writable = False
    world.passes(2.0)
    world.watch.stop()
    world.watch.stop()
    assert world.clock.live == 0
    armed = world.clock.armed
    world.watch.sent(stuck)
    waiter = world.asks(10)
    world.passes(120.0)
    assert stuck.closings == []
    assert not waiter.done
    assert (len(world.watch), world.clock.armed) == (0, armed + 1)  # the request's own timer
    assert world.clock.live == 1


def test_after_a_stop_no_timeout_is_postponed() -> None:
    world = World(timeout_seconds=2.0)
    world.peer("stuck", LIMIT)
    waiter = world.asks(10)
    world.watch.stop()
    world.passes(2.01)
    assert refused(waiter)


def test_a_peer_ending_during_sampling_is_not_sampled() -> None:
    # Closing the first peer ends the second, too
    world = World(ONLY_UNWRITABLE)
    first, second = world.peer("first"), world.peer("second")
    first.writable = second.writable = False
    ends = first.ends
    first.ends = lambda: (ends(), second.ends())  # type: ignore[method-assign, func-returns-value]
    world.passes(60.6)
    assert (len(first.closings), len(second.closings)) == (1, 0)
    assert second.samples == first.samples - 1
