"""Memory for messages that consumers prefetch, granted to the consumers in fair turns.

A broker sends as much as permits allow, and permits cannot be revoked. So a consumer requests a
*turn* before it grants permits: capacity for an entry, and possibly for more. Granted capacity is
promised until the messages arrive, or until no message came for a while and consumers wait: then
the turn passes on, although the permit stays with the broker.

Consumers that do not fit stand in line; consumers whose application waits for a message go first.
The wait is bounded: when no consumer has a turn, the first gets a turn regardless of memory, a
single consumer at a time; and after a second in line turns pass on at a pace that serves all.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from limiter.clock import Timer

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock

IDLE_SECONDS = 0.5
"""Seconds without a message after which a turn passes to a consumer whose application waits."""
PATIENCE_SECONDS = 1.0
"""Seconds in line after which a consumer with a waiting application may prefetch regardless of
memory."""
ROUND_SECONDS = 4.0
"""Seconds within which every waiting consumer then gets a turn."""
SHORTEST_PACE_SECONDS = 0.01
MOST_TURNS_AT_ONCE = 256
"""Most consumers given a turn by a release or a timer before the event loop runs other work."""
LONGEST_PACE_SECONDS = 0.5


class TurnTaker(Protocol):
    """Interface (typing Protocol) of a consumer's receiver queue that prefetches messages."""

    @property
    def entry_bytes(self) -> int:
        """The expected bytes of a broker entry, which may be a batch of messages."""

    @property
    def kept_bytes(self) -> int:
        """Bytes of received messages that the application has not finished processing."""

    @property
    def asking(self) -> bool:
        """True while the application waits for a message."""

    def turn_came(self, room_bytes: int) -> None:
        """Grant the broker permits for an entry, and for further entries within ``room_bytes``.

        Call :meth:`Prefetch.promise` before granting the permits.
        """


class Turn:
    """A consumer's right to prefetch messages, either granted or still awaited.

    Attributes:
        taker: The consumer's receiver queue.
        entry_bytes: Bytes promised for an entry; 0 without a turn, or after the turn passed on.
        more_bytes: Bytes promised beyond the entry.
        since: Start of the turn; in line, the time of the request.
        used: True if a message came since the last check.
        kept_bytes: Bytes held by the application when the turn came.
    """

    __slots__ = ("entry_bytes", "kept_bytes", "more_bytes", "since", "taker", "used")

    def __init__(self, taker: TurnTaker) -> None:
        self.taker = taker
        self.entry_bytes = 0
        self.more_bytes = 0
        self.since = 0.0
        self.used = False
        self.kept_bytes = 0


class Prefetch:
    """Prefetched and promised bytes under a memory limit, and consumers waiting to prefetch.

    Args:
        limit_bytes: The limit of producers and consumers together.
        own_bytes: The part of the limit that prefetching may use.
        clock: The source of time.
        usage: Returns the number of all reserved bytes.
        less_promised: Called when a promise ends without messages.

    Attributes:
        arrived_bytes: Bytes reserved for arrived messages; changed by the controller.
        entry_bytes: Bytes promised for an entry of each consumer with a turn.
        more_bytes: Bytes promised beyond these entries.
        waiting: Number of consumers in line.
        passed_on_total: Turns that passed on for lack of messages.
    """

    def __init__(
        self,
        limit_bytes: int,
        own_bytes: int,
        clock: Clock,
        usage: Callable[[], int],
        less_promised: Callable[[], None],
    ) -> None:
        self._limit = limit_bytes
        self._own = own_bytes
        self._clock = clock
        self._usage = usage
        self._less_promised = less_promised
        self._askers: dict[Turn, None] = {}
        self._others: dict[Turn, None] = {}
        self._holders: dict[Turn, None] = {}
        # A consumer served without capacity, until its messages are taken: the next waits for that.
        self._beyond: Turn | None = None
        # Most consumers in line or with a turn, since applications began to wait.
        self._crowd = 0
        self._timer = Timer(clock)
        self._serving = False
        self.arrived_bytes = self.entry_bytes = self.more_bytes = 0
        self.waiting = 0
        self.passed_on_total = 0

    @property
    def turns(self) -> int:
        """The number of consumers that may prefetch now."""
        return len(self._holders)

    def room(self) -> int:
        """Return the number of bytes that may be promised beyond one entry; 0 if consumers wait.

        Half of the free bytes: a promise to a consumer that then receives nothing stays promised,
        and must not take all capacity.
        """
        return 0 if self.waiting else self._room() // 2

    def _room(self) -> int:
        promised = self.entry_bytes + self.more_bytes
        own = self._own - self.arrived_bytes
        return max(0, min(own, self._limit - self._usage()) - promised)

    # -- called by consumers --------------------------------------------------------------------

    def ask(self, turn: Turn) -> None:
        """Request a turn to prefetch, which is granted now or after waiting in line.

        A repeated request moves a consumer whose application now waits to the line of waiting
        applications.
        """
        asking = turn.taker.asking
        if turn in self._askers or (turn in self._others and not asking):
            return
        self.step_back(turn)
        turn.since = self._clock.now()
        (self._askers if asking else self._others)[turn] = None
        self.waiting += 1
        self.serve()

    def stands_in_line(self, turn: Turn) -> bool:
        """Return True if a consumer waits in line for a turn to prefetch."""
        return turn in self._askers or turn in self._others

    def step_back(self, turn: Turn) -> None:
        """Remove a consumer from the line of waiting consumers, if it is there."""
        for line in (self._askers, self._others):
            if turn in line:
                del line[turn]
                self.waiting -= 1

    def promise(self, turn: Turn, entry_bytes: int, more_bytes: int) -> None:
        """Set the bytes promised to a consumer that begins its turn or is granted more."""
        self._forget(turn)
        turn.since, turn.used = self._clock.now(), False
        turn.entry_bytes, turn.more_bytes = entry_bytes, more_bytes
        self.entry_bytes += entry_bytes
        self.more_bytes += more_bytes
        self._holders[turn] = None

    def came(self, turn: Turn, more_bytes: int) -> None:
        """Record an arrived message, and set the bytes still promised beyond an entry."""
        self.more_bytes += more_bytes - turn.more_bytes
        turn.more_bytes = more_bytes
        turn.used = True

    def end(self, turn: Turn) -> None:
        """End a consumer's turn to prefetch, after all of its messages have arrived."""
        self._forget(turn)
        if self.waiting:
            self.serve()

    def leave(self, turn: Turn) -> None:
        """Drop the bytes promised to a consumer, and its place in line; idempotent."""
        if turn is self._beyond:
            self._beyond = None
        self.step_back(turn)
        self._forget(turn)
        self._less_promised()
        self.serve()

    def _forget(self, turn: Turn) -> None:
        self._holders.pop(turn, None)
        self.entry_bytes -= turn.entry_bytes
        self.more_bytes -= turn.more_bytes
        turn.entry_bytes = turn.more_bytes = 0

    # -- the next turn ----------------------------------------------------------------------------

    def serve(self) -> None:
        """Give turns to waiting consumers whose entries fit; call this after releasing memory."""
        if self._serving:
            return  # Reentrant call from a turn: the loop below continues.
        self._serving = True
        try:
            for _ in range(MOST_TURNS_AT_ONCE):
                if (turn := self._next()) is None:
                    break
                self._come(turn)
            else:
                self._timer.after(0.0, self._pass_on)
        finally:
            self._serving = False
        if self._askers:
            self._crowd = max(self._crowd, self.waiting + len(self._holders))
            if not self._timer.armed:
                self._timer.after(self._pace(), self._pass_on)

    def _next(self) -> Turn | None:
        """Return the first consumer in line if it may prefetch now, otherwise None."""
        if self._askers:
            turn = next(iter(self._askers))
            size = turn.taker.entry_bytes
            idle_since = self._clock.now() - IDLE_SECONDS
            while not self._fits(size):
                if not self._holders and not self._waits_for_beyond():
                    self._beyond = turn
                    break
                if not self._drop_idle(idle_since):
                    return None
            return turn
        if self._others:
            turn = next(iter(self._others))
            return turn if self._fits(turn.taker.entry_bytes) else None
        return None

    def _waits_for_beyond(self) -> bool:
        """Return False once the messages prefetched beyond the limit have been processed."""
        turn = self._beyond
        if turn is not None and self.stands_in_line(turn):
            return turn.taker.kept_bytes > turn.kept_bytes
        return turn is not None

    def _fits(self, size: int) -> bool:
        """Return True if there is room for ``size`` bytes, or none are prefetched or promised."""
        if self._room() >= size:
            return True
        return not (self.arrived_bytes or self.entry_bytes or self.more_bytes)

    def _come(self, turn: Turn) -> None:
        self.step_back(turn)
        if turn is self._beyond and self._fits(turn.taker.entry_bytes):
            self._beyond = None
        turn.kept_bytes = turn.taker.kept_bytes
        free = 0 if self.waiting else self._room() - turn.taker.entry_bytes
        turn.taker.turn_came(max(0, free // 2))

    def _drop_idle(self, idle_since: float) -> bool:
        """End the oldest turn without messages since ``idle_since``; return False without any."""
        now = self._clock.now()
        while self._holders:
            turn = next(iter(self._holders))
            if turn.used:
                turn.used, turn.since = False, now
                del self._holders[turn]
                self._holders[turn] = None
            elif turn.since > idle_since:
                return False
            else:
                del self._holders[turn]
                self.entry_bytes -= turn.entry_bytes
                turn.entry_bytes = 0
                self.passed_on_total += 1
                return True
        return False

    # -- long waits ------------------------------------------------------------------------------

    def _pace(self) -> float:
        pace = ROUND_SECONDS / self._crowd
        return min(max(pace, SHORTEST_PACE_SECONDS), LONGEST_PACE_SECONDS)

    def _pass_on(self) -> None:
        """Give turns to long-waiting consumers at a set pace, ending the oldest idle turns."""
        now = self._clock.now()
        if not self._askers:
            self._crowd = 0
        number = math.ceil(self._crowd * self._pace() / ROUND_SECONDS) if self._crowd else 0
        for _ in range(min(number, MOST_TURNS_AT_ONCE)):
            turn = next(iter(self._askers), None)
            if turn is None or turn.since + PATIENCE_SECONDS > now:
                break
            self._drop_idle(now)
            self._come(turn)
        self.serve()
