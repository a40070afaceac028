"""Memory for what brokers send ahead: what has arrived, what was promised, and whose turn it is.

A broker sends at once whatever permits allow, and permits cannot be taken back. So a consumer asks
here before it grants any: for a *turn*, the room of one entry, and with it for more. What is
granted is promised until it arrives, or until nothing came for a while and others wait: then the
turn passes on, though the permit stays with the broker.

Who asks and does not fit stands in line; those whose application waits for a message go first.
Nobody of them stands there for ever: when nobody has a turn, the first gets one whatever memory
there is, one at a time; and after a second in line turns pass on at a pace that serves all.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock, TimerHandle

IDLE_SECONDS = 0.5
"""After so long without a message, a turn passes on to one whose application waits."""
PATIENCE_SECONDS = 1.0
"""After so long in line, one whose application waits gets a turn whatever memory there is."""
ROUND_SECONDS = 4.0
"""The time in which turns then pass on to all who wait."""
SHORTEST_PACE_SECONDS = 0.01
MOST_TURNS_AT_ONCE = 256
"""Turns that one release or look may bring, before others have the event loop."""
LONGEST_PACE_SECONDS = 0.5


class TurnTaker(Protocol):
    """A consumer's receiver queue."""

    @property
    def entry_bytes(self) -> int:
        """The room that one entry takes."""

    @property
    def kept_bytes(self) -> int:
        """Bytes that the application has, and that count until it is done with them."""

    @property
    def asking(self) -> bool:
        """True while the application waits for a message."""

    def turn_came(self, room_bytes: int) -> None:
        """Grant permits for one entry, and for what more fits into so many bytes.

        :meth:`Prefetch.promise` comes first, then the permits.
        """


class Turn:
    """One consumer's place among those that prefetch.

    Attributes:
        taker: Whose it is.
        entry_bytes: Promised for one entry; 0 without a turn, or when it passed on.
        more_bytes: Promised beyond it.
        since: The moment it came; in line, the moment of asking.
        used: Something came since it was looked at last.
        kept_bytes: What the application kept when it came.
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
    """The prefetched bytes under one limit, which several clients may share.

    Args:
        limit_bytes: The limit of producers and consumers together.
        own_bytes: The part of it that prefetching may take.
        clock: Where time comes from.
        usage: Bytes that are reserved in all.
        less_promised: Called when less is promised than before, though it has not arrived.

    Attributes:
        arrived_bytes: Reserved for what has arrived; the controller's to change.
        entry_bytes: Promised for one entry of each that has a turn.
        more_bytes: Promised beyond.
        waiting: How many stand in line.
        passed_on_total: Turns that passed on since nothing came.
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
        # One that got a turn without room, until what came was taken: the next waits for that.
        self._beyond: Turn | None = None
        # The most there were in line or with a turn, since applications began to wait.
        self._crowd = 0
        self._timer: TimerHandle | None = None
        self._serving = False
        self.arrived_bytes = self.entry_bytes = self.more_bytes = 0
        self.waiting = 0
        self.passed_on_total = 0

    @property
    def turns(self) -> int:
        """Consumers that have a turn which has not passed on."""
        return len(self._holders)

    def room(self) -> int:
        """Return the bytes that may be promised to one beyond an entry; none while others wait.

        It is half of what is free: what is promised to one that then gets nothing stays promised,
        and must not be all there is.
        """
        return 0 if self.waiting else self._room() // 2

    def _room(self) -> int:
        promised = self.entry_bytes + self.more_bytes
        own = self._own - self.arrived_bytes
        return max(0, min(own, self._limit - self._usage()) - promised)

    # -- what consumers do --------------------------------------------------------------------

    def ask(self, turn: Turn) -> None:
        """Ask for a turn: it comes at once, or the asker stands in line.

        Asked again, one whose application has begun to wait goes to those who wait with it.
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
        """Return True for one whose turn is still to come."""
        return turn in self._askers or turn in self._others

    def step_back(self, turn: Turn) -> None:
        """Stand in line no more; once more is harmless."""
        for line in (self._askers, self._others):
            if turn in line:
                del line[turn]
                self.waiting -= 1

    def promise(self, turn: Turn, entry_bytes: int, more_bytes: int) -> None:
        """Set what is promised to one whose turn came, or to which more was granted."""
        self._forget(turn)
        turn.since, turn.used = self._clock.now(), False
        turn.entry_bytes, turn.more_bytes = entry_bytes, more_bytes
        self.entry_bytes += entry_bytes
        self.more_bytes += more_bytes
        self._holders[turn] = None

    def came(self, turn: Turn, more_bytes: int) -> None:
        """Set what is still promised beyond an entry, when something has come."""
        self.more_bytes += more_bytes - turn.more_bytes
        turn.more_bytes = more_bytes
        turn.used = True

    def end(self, turn: Turn) -> None:
        """End a turn: all that was granted has come."""
        self._forget(turn)
        if self.waiting:
            self.serve()

    def leave(self, turn: Turn) -> None:
        """Be promised nothing, and wait for nothing; once more is harmless."""
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

    # -- whose turn it is ---------------------------------------------------------------------

    def serve(self) -> None:
        """Give turns to those in line for whom there is room; to be called when there is more."""
        if self._serving:
            return  # What a turn sets off: the loop below goes on.
        self._serving = True
        try:
            for _ in range(MOST_TURNS_AT_ONCE):
                if (turn := self._next()) is None:
                    break
                self._come(turn)
            else:
                self._go_on_in(0.0)
        finally:
            self._serving = False
        if self._askers:
            self._crowd = max(self._crowd, self.waiting + len(self._holders))
            if self._timer is None:
                self._go_on_in(self._pace())

    def _go_on_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_at(self._clock.now() + seconds, self._pass_on)

    def _next(self) -> Turn | None:
        """Return the first in line, if its turn is now."""
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
        """Return False once what came without room was taken, and the application is done."""
        turn = self._beyond
        if turn is not None and self.stands_in_line(turn):
            return turn.taker.kept_bytes > turn.kept_bytes
        return turn is not None

    def _fits(self, size: int) -> bool:
        """Return True if there is room for an entry, or no prefetching at all so far."""
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
        """Let the oldest turn pass on if nothing came since a moment; False if there is none."""
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

    # -- when it takes long -------------------------------------------------------------------

    def _pace(self) -> float:
        pace = ROUND_SECONDS / self._crowd
        return min(max(pace, SHORTEST_PACE_SECONDS), LONGEST_PACE_SECONDS)

    def _pass_on(self) -> None:
        """Serve those who wait for long, in order, at the pace; the oldest turns pass on."""
        self._timer = None
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
