"""Eviction of peers that do not read their responses, and hold memory that requests wait for.

While a request waits for memory held by other owners, connections that pin memory of the same
budget and have acknowledged nothing for the grace period are closed, longest without progress
first, at most one per CLOSE_INTERVAL_SECONDS. Their memory is released in the same event-loop
iteration. Earlier, at half the grace, a non-reading peer's requests are deferred behind all others,
so that released memory does not go to the next non-reading peer; and other requests do not time out
while such a peer is within its grace. From a third of the grace on, connections that have not
proven that they read are deferred, too: the next non-reading peer is among them. They are sent a
PING, behind their outstanding bytes: an honest peer stays deferred until it has read the bytes and
answered, which takes a round trip for a peer with nothing outstanding, and longer for a slow
reader.

No timer runs while nothing is outstanding: connections register when they send.
"""

from __future__ import annotations

import logging
from dataclasses import astuple
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from limiter.clock import Timer
from limiter.flow.causes import CloseReason
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType
from limiter.slow_peers.peer import Peer, SlowPeerRules, UnprovenPeers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limiter.clock import Clock
    from limiter.flow.totals import FlowTotals
    from limiter.permits.account import Waiter
    from limiter.permits.permit import Contention

logger = logging.getLogger(__name__)

CLOSE_INTERVAL_SECONDS = 0.1
"""Seconds between two closes for contention, and between two samples of the connections."""
QUIET_INTERVAL_SECONDS = 0.5
"""Seconds between two samples of the connections while no request waits for memory."""
SAMPLES_A_TICK = 2_000
"""Connections sampled in one turn; the rest come in later turns."""
DEFERRED_AT = 0.5
"""The part of floodgateSlowPeerGraceMs without progress after which a peer's requests are
deferred."""
NEWCOMERS_LAST_AT = 1 / 3
"""The part of floodgateSlowPeerGraceMs without progress after which unproven peers are deferred."""
TRIAL_LASTS_SECONDS = 0.02
"""Seconds for which the list of non-reading permit holders is cached."""
MORE_TIME_SECONDS = 0.5
"""Seconds, in addition to twice the grace, by which a request's timeout is extended at most."""


class SlowPeers:
    """Watch over a process's connections with unacknowledged bytes, closing non-reading peers.

    Bound: an entry for each connection, forgotten when nothing is outstanding or the connection
    ends.

    Attributes:
        watches: True if any rule is on.
    """

    def __init__(
        self,
        limiter: AsyncDualMemoryLimiter,
        rules: SlowPeerRules,
        totals: FlowTotals,
        clock: Clock,
    ) -> None:
        self.watches = any(limit > 0 for limit in astuple(rules))
        self._limiter = limiter
        self._rules = rules
        self._totals = totals
        self._clock = clock
        self._active: dict[Peer, None] = {}
        self._deferred: set[Peer] = set()
        self._unproven = UnprovenPeers()
        self._draining = False
        self._timer = Timer(clock)
        self._due = 0.0
        self._closed_at = self._silent_at = clock.now() - MORE_TIME_SECONDS
        self._tried_at = clock.now() - TRIAL_LASTS_SECONDS
        self._on_trial_then: list[Peer] = []
        if rules.grace_seconds > 0:
            for one in LimitType:
                limiter.semaphore(one).contention.on_change(self._contended)
                limiter.semaphore(one).extend_timeouts(partial(self.more_seconds, one))

    def __len__(self) -> int:
        return len(self._active)

    # -- notifications by connections ---------------------------------------------------------

    def connected(self, peer: Peer) -> None:
        """Watch a new connection, which has not yet proven that its peer reads."""
        if self._rules.grace_seconds > 0:
            self._unproven.came(peer)
            self._choose_turn(peer, self._clock.now())

    def vouched_for(self, peer: Peer) -> None:
        """Mark a connection as proven: it stands for many clients, or has answered a PING."""
        if peer in self._unproven:
            self._unproven.is_proven(peer)
            self._choose_turn(peer, self._clock.now())

    def sent(self, peer: Peer) -> None:
        """Watch a peer with outstanding bytes until all are acknowledged."""
        if peer not in self._active and self.watches:
            self._active[peer] = None
            peer.progress.sent(self._clock.now())
            if not self._timer.armed:
                self._arm(QUIET_INTERVAL_SECONDS)

    def ended(self, peer: Peer) -> None:
        """Forget a closed connection."""
        self._active.pop(peer, None)
        self._unproven.is_proven(peer)
        self._undefer(peer)

    def drain(self) -> None:
        """Close non-reading peers even if no request waits, as they delay the shutdown."""
        self._draining = True

    def stop(self) -> None:
        """Stop watching all connections."""
        self._timer.stop()
        self._active.clear()
        for peer in list(self._deferred):
            self._undefer(peer)
        self._rules, self.watches = SlowPeerRules(0, 0, 0), False

    # -- time ---------------------------------------------------------------------------------

    def _contended(self, _: Contention) -> None:
        if self._active and self._due > self._clock.now() + CLOSE_INTERVAL_SECONDS:
            self._arm(CLOSE_INTERVAL_SECONDS)

    def _arm(self, seconds: float) -> None:
        self._due = self._clock.now() + seconds
        self._timer.at(self._due, self._tick)

    def _tick(self) -> None:
        now = self._clock.now()
        for peer in list(islice(self._active, SAMPLES_A_TICK)):
            self._guarded(peer, self._look_at, peer, now)
        waited_for = self._waited_for()
        self._place_unproven(waited_for, now)
        if waited_for and now >= self._closed_at + CLOSE_INTERVAL_SECONDS:
            self._close_one(waited_for, now)
        if self._active or self._unproven.go_last:
            soon = waited_for or self._unproven.go_last
            self._arm(CLOSE_INTERVAL_SECONDS if soon else QUIET_INTERVAL_SECONDS)

    def _guarded(self, peer: Peer, look: Callable[..., object], *args: object) -> None:
        """Call the function ``look``; an error in it ends the watching of this peer only."""
        try:
            look(*args)
        except Exception:
            logger.exception("stopped watching %r after an internal error", peer)
            self.ended(peer)

    # -- one peer -----------------------------------------------------------------------------

    def _look_at(self, peer: Peer, now: float) -> None:
        """Sample a peer, and close it if it breaks a rule that applies without contention."""
        if peer not in self._active:
            return  # It ended together with a peer closed before it.
        del self._active[peer]
        peer.sample_progress(now)
        if peer.progress.proven and not peer.progress.outstanding and not self._unproven.go_last:
            self._unproven.is_proven(peer)
        stalled_seconds = peer.progress.stalled_seconds(now)
        self._choose_turn(peer, now)
        if not peer.progress.outstanding:
            return
        self._active[peer] = None  # Behind the rest, which are sampled first next time.
        limit_seconds = self._rules.max_unwritable_seconds
        if self._draining and 0 < self._rules.grace_seconds <= stalled_seconds:
            sentence = f"it read nothing for {stalled_seconds:.1f} s while the process shuts down"
            self._end(peer, CloseReason.CONTENTION, sentence)
        elif 0 < limit_seconds <= stalled_seconds and not peer.writable:
            self._close(peer, CloseReason.UNWRITABLE, stalled_seconds)
        elif peer.writable:
            peer.progress.measure_from(now)
        elif self._rules.min_drain_bytes_per_second > 0:
            self._judge_rate(peer, now)

    def _judge_rate(self, peer: Peer, now: float) -> None:
        rate, least = peer.progress.drain_rate(now), self._rules.min_drain_bytes_per_second
        if rate is not None and rate < least and not (peer.many_clients and rate > 0):
            self._end(
                peer,
                CloseReason.DRAIN_RATE,
                f"it took {rate:.0f} bytes a second for ten seconds, less than "
                f"floodgateMinDrainRateBytesPerSecond={least}",
            )

    def _choose_turn(self, peer: Peer, now: float) -> None:
        """Defer a peer's requests while it makes no progress; otherwise end the deferral."""
        if not (self._stands_still(peer, now) or self._unproven.waits(peer)):
            self._undefer(peer)
        elif peer not in self._deferred:
            self._deferred.add(peer)
            self._limiter.defer(peer)

    def _stands_still(self, peer: Peer, now: float) -> bool:
        return 0 < self._rules.grace_seconds * DEFERRED_AT <= peer.progress.stalled_seconds(now)

    def _place_unproven(self, waited_for: dict[LimitType, Contention], now: float) -> None:
        """Defer unproven peers while a non-reading peer blocks a request, and for some time after.

        The time is two grace periods, because the next non-reading peer is closed a grace period
        after this peer, at the earliest.
        """
        go_last = self._unproven.go_last
        if not go_last or now >= self._silent_at + 2 * self._rules.grace_seconds:
            go_last = any(True for _ in self._in_the_way(waited_for, NEWCOMERS_LAST_AT, now))
            if go_last:
                self._silent_at = now
            if go_last is not self._unproven.go_last:
                self._let_unproven_go(last=go_last)
        if go_last:
            for peer in self._unproven.to_ask():
                self._guarded(peer, self._ask, peer)

    def _ask(self, peer: Peer) -> None:
        self._unproven.was_asked(peer, done=peer.ask_whether_it_reads())

    def _let_unproven_go(self, *, last: bool) -> None:
        """Defer the requests of all unproven peers, or end the deferral, in one step."""
        self._unproven.go_last = last
        now = self._clock.now()
        still = [peer for peer in self._unproven if not self._stands_still(peer, now)]
        if last:
            self._deferred.update(still)
            self._limiter.defer(*still)
        else:
            self._deferred.difference_update(still)
            self._limiter.undefer(*still)

    def _undefer(self, peer: Peer) -> None:
        if peer in self._deferred:
            self._deferred.remove(peer)
            self._limiter.undefer(peer)

    # -- contention ---------------------------------------------------------------------------

    def _waited_for(self) -> dict[LimitType, Contention]:
        if self._rules.grace_seconds <= 0:
            return {}
        found = {one: self._limiter.semaphore(one).contention.current() for one in LimitType}
        return {one: contention for one, contention in found.items() if contention is not None}

    def _close_one(self, waited_for: dict[LimitType, Contention], now: float) -> None:
        """Close the peer that made no progress for longest, among those that block a request."""
        grace = self._rules.grace_seconds
        for peer in self._in_the_way(waited_for, 1.0, now):
            # With many connections, the last sample may be old.
            self._guarded(peer, peer.sample_progress, now)
            if peer in self._active and peer.progress.stalled_seconds(now) >= grace:
                self._closed_at = self._silent_at = now
                self._close(peer, CloseReason.CONTENTION, peer.progress.stalled_seconds(now))
                return

    def _in_the_way(
        self, waited_for: dict[LimitType, Contention], part: float, now: float
    ) -> Iterator[Peer]:
        """Yield peers that block a request and have long read nothing, longest first."""
        least = self._rules.grace_seconds * part
        late = []
        if waited_for:
            late = [one for one in self._active if one.progress.stalled_seconds(now) >= least]
            late.sort(key=lambda peer: peer.progress.stalled_seconds(now), reverse=True)
        for peer in late:
            if self._is_in_the_way(peer, waited_for):
                yield peer

    def _is_in_the_way(self, peer: Peer, waited_for: dict[LimitType, Contention]) -> bool:
        pinned = self._limiter.pinned_by(peer)
        return any(
            pinned[one] > 0
            and (
                found.owner is not peer or self._limiter.semaphore(one).contention.others_wait(peer)
            )
            for one, found in waited_for.items()
        )

    def _close(self, peer: Peer, reason: CloseReason, stalled_seconds: float) -> None:
        why = "while other connections wait for the memory it holds: floodgateSlowPeerGraceMs"
        if reason is CloseReason.UNWRITABLE:
            why = "and is unwritable: floodgateMaxUnwritableSeconds"
        sentence = f"it read nothing for {stalled_seconds:.1f} s {why} is the limit"
        self._end(peer, reason, sentence)

    def _end(self, peer: Peer, reason: CloseReason, sentence: str) -> None:
        """Close a peer's connection, and count it once, even if the connection is lost later."""
        self._active.pop(peer, None)
        self._totals.closed[reason] += 1
        peer.close_slow(sentence)

    def more_seconds(self, limit_type: LimitType, waiter: Waiter) -> float:
        """Return the seconds that a request may wait beyond its timeout; 0 or less for none.

        A request may wait while a peer that blocks it is within its grace period: that peer reads
        on, or is closed.
        """
        now, grace = self._clock.now(), self._rules.grace_seconds
        timeout = self._limiter.semaphore(limit_type).timeout_seconds
        # While silent peers are closed one by one, no request is refused for the rest.
        since = max(waiter.enqueued_at, self._closed_at)
        latest = since + timeout + 2 * grace + MORE_TIME_SECONDS
        owner = waiter.account.owner if waiter.account is not None else waiter.owner
        gone_last = owner in self._deferred and owner not in self._unproven
        if gone_last or now >= latest:
            return 0.0
        # A closed peer's memory may have gone to a request that releases it in a moment.
        just_closed = now < self._closed_at + MORE_TIME_SECONDS
        served_soon = just_closed or self._on_trial(owner, now)
        return min(CLOSE_INTERVAL_SECONDS, latest - now) if served_soon else 0.0

    def _on_trial(self, owner: object, now: float) -> bool:
        """Return True if a non-reading peer holds memory, but its grace period is not over.

        The memory may be of either budget: in Pulsar's release, a holder of heap may wait for
        direct memory pinned by the peer; otherwise a request waiting for heap may hold direct
        memory that is waited for. Thousands of requests may call in one moment, so the result is
        cached: two peers suffice to find a peer that is not the calling owner.
        """
        if now >= self._tried_at + TRIAL_LASTS_SECONDS:
            self._tried_at = now
            self._on_trial_then = list(islice(self._silent_holders(now), 2))
        return any(one is not owner and one in self._active for one in self._on_trial_then)

    def _silent_holders(self, now: float) -> Iterator[Peer]:
        for peer in self._active:
            silent = peer.progress.stalled_seconds(now) > QUIET_INTERVAL_SECONDS
            if silent and any(self._limiter.pinned_by(peer).values()):
                yield peer
