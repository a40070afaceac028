"""The client's default schedule, whose requests are spread so that restarts cause no storm."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, ClassVar

import proto.PulsarApi_pb2 as pb
from client.discovery.schedule import DiscoverySchedule, GiveUp, ListTopics, OpenWatch, Unanswered
from limiter.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.discovery.schedule import Failure

_GO_FIRST_SECONDS, _GO_MOST_SECONDS, _GO_JITTER = 0.1, 60.0, 0.2


class GoBackoff:
    """Delays that double from 0.1 s to 60 s, each lengthened at random by up to a fifth.

    Args:
        random: Function that returns random numbers from 0 to 1.

    Source: observed traffic.
    """

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._seconds = _GO_FIRST_SECONDS

    def next(self) -> float:
        """Return the next delay in seconds, about twice the previous one."""
        delay = self._seconds
        self._seconds = min(2 * delay, _GO_MOST_SECONDS)
        return delay * (1 + _GO_JITTER * self._random())


class UnreachableRetries:
    """Delays of the Java and C++ clients while no server is reachable.

    The last delay is shortened, so that all delays add up to a given total.

    Args:
        total_seconds: Sum of all delays, which is the operation timeout.
        random: Function that returns random numbers from 0 to 1.

    Source: upstream BinaryProtoLookupService, and logs of both clients.
    """

    def __init__(self, total_seconds: float, random: Callable[[], float]) -> None:
        self._backoff = Backoff(0.1, total_seconds, random)
        self._total_seconds = self._left_seconds = total_seconds

    def next(self) -> float | None:
        """Return the next delay in seconds; None once the delays add up to the total."""
        if self._left_seconds <= 0:
            return None
        delay = min(self._backoff.next(), self._left_seconds)
        self._left_seconds -= delay
        return delay

    def reset(self) -> None:
        """Start again from the first delay, for a new request."""
        self._backoff.reset()
        self._left_seconds = self._total_seconds


class FullJitter:
    """Random delays between a fixed minimum and a maximum that doubles.

    Spreads the retries of clients refused together evenly; a small jitter would keep them together.

    Args:
        shortest_seconds: The minimum.
        first_seconds: The first maximum.
        most_seconds: The largest maximum.
        random: Function that returns random numbers from 0 to 1.
    """

    def __init__(
        self,
        shortest_seconds: float,
        first_seconds: float,
        most_seconds: float,
        random: Callable[[], float],
    ) -> None:
        self._shortest_seconds = shortest_seconds
        self._first_seconds = self._window_seconds = first_seconds
        self._most_seconds = most_seconds
        self._random = random

    def next(self) -> float:
        """Return the next delay in seconds, chosen at random."""
        window = self._window_seconds
        self._window_seconds = min(2 * window, self._most_seconds)
        return self._shortest_seconds + self._random() * max(0.0, window - self._shortest_seconds)

    def reset(self) -> None:
        """Start again from the first maximum, after a success."""
        self._window_seconds = self._first_seconds


SHORTEST_SECONDS = 0.1
"""Shortest delay after a failure, in seconds."""
FIRST_SECONDS = 0.5
"""Maximum of the random delay after a refused first listing, in seconds; then it doubles."""
MOST_FIRST_SECONDS = 10.0
"""Largest maximum of the random delay, in seconds, until the first listing succeeds."""
MOST_PERIODS = 5
"""Largest maximum of the random delay after refused polls and watches, in periods.

It is also the interval of polls while a watch is open.
"""
RECHECK_SECONDS = 5.0
"""Maximum random delay of a listing after an update with a mismatching hash.

Delays spread the listings, because all watchers of the same topics may have received the same
update.
"""
_FINAL = frozenset(
    {
        pb.AuthenticationError,
        pb.AuthorizationError,
        pb.InvalidTopicName,
        pb.NotAllowedError,
        pb.UnsupportedVersionError,
    }
)
"""Errors after which a listing, or a watch on the same connection, is not retried."""


class _Watch(Enum):
    """The states of the topic-list watch of the schedule."""

    NONE = "not asked for"
    ASKED = "asked for"
    OPEN = "open"


class PoliteSchedule(DiscoverySchedule):
    """A discovery schedule with few requests, spread at random.

    It finds new topics within a period. The first listing is requested immediately, since a program
    waits, and retried until the operation timeout: with growing delays, each random over its whole
    window.

    Afterwards, the broker applies the pattern and compares the hash of names: its response for an
    unchanged list has no names. If the broker offers complete watches, a watch is opened, with
    every fifth poll; otherwise polls follow with a jitter of a tenth.

    The watch, whose answer is a list as well, or the first poll is requested half a period to one
    and a half periods after the first listing, and after a lost connection: thousands of consumers
    lost theirs at the same moment, and attach to their topics first.
    """

    family: ClassVar[str] = "polite"

    def _prepare(self) -> None:
        period = self._options.period_seconds
        self._first_backoff = self._backoff(FIRST_SECONDS, MOST_FIRST_SECONDS)
        self._poll_backoff = self._backoff(period, MOST_PERIODS * period)
        self._watch_backoff = self._backoff(period, MOST_PERIODS * period)
        self._watch = _Watch.NONE
        self._watches = False
        self._heard_at = self._clock.now()
        self._give_up_at = self._heard_at + self._options.operation_timeout_seconds

    def _backoff(self, first_seconds: float, most_seconds: float) -> FullJitter:
        return FullJitter(SHORTEST_SECONDS, first_seconds, most_seconds, self._random)

    @property
    def _watching(self) -> bool:
        return self._watch is not _Watch.NONE

    @property
    def complete(self) -> bool:
        """True once the first listing has succeeded, and the watch is open if one is wanted."""
        return super().complete and (self._watch is _Watch.OPEN or not self._watches)

    def _question(self) -> ListTopics:
        options = self._options
        return ListTopics(options.pattern, self.topics_hash, options.properties)

    # -- listings -----------------------------------------------------------------------------

    def start(self) -> None:
        """Request the first listing, once the consumer exists."""
        self._give_up_at = self._clock.now() + self._options.operation_timeout_seconds
        super().start()

    def listed(self, topics_hash: str) -> None:
        """Process the response to a listing request, and note that the server answered."""
        self._heard_at = self._clock.now()
        super().listed(topics_hash)

    def _first_listed(self) -> None:
        self._ask_soon()

    def _poll_listed(self) -> None:
        self._poll_backoff.reset()
        self._next_poll()

    def _next_poll(self) -> None:
        periods = MOST_PERIODS if self._watch is _Watch.OPEN else 1
        self._poll_in(periods * self._options.period_seconds * (0.9 + 0.2 * self._random()))

    def _failed(self, failure: Failure) -> None:
        if self.topics_hash is not None:
            self._poll_in(_delay(self._poll_backoff, failure))
            return
        delay = self._first_backoff.next()
        if failure in _FINAL or self._clock.now() + delay >= self._give_up_at:
            self._perform(GiveUp(failure))
        else:
            self._poll_in(delay)

    # -- connection and watch -----------------------------------------------------------------

    def connected(self, *, watches: bool, reconciles: bool = False) -> None:
        """React to a new connection to the server, whether the first or a later one."""
        self._watches = (
            watches and self._options.persistent and not self._options.properties
        )  # a watch sends none
        if self.topics_hash is not None and not self._closed:
            self._ask_soon()

    def connection_lost(self) -> None:
        """Schedule the next request after a lost connection.

        Its open watch and pending requests have failed.
        """
        self._watch = _Watch.NONE
        if self.topics_hash is None or self._closed:
            return
        if self._clock.now() < self._heard_at + self._options.period_seconds:
            # Repeated losses delay a poll for a period at most.
            self._cancel_poll()
            self._cancel_watch_timer()
        self._ask_soon()

    def _ask_soon(self) -> None:
        """Schedule a watch, whose response includes a list; without watches, schedule a listing."""
        seconds = self._options.period_seconds * (0.5 + self._random())
        if not self._watches:
            if not self._asking:
                self._poll_within(seconds)
        elif self._watch is _Watch.NONE and self._watch_timer is None:
            self._watch_in(seconds)

    def _open_watch(self) -> None:
        if self._watches and self._watch is _Watch.NONE:
            self._watch = _Watch.ASKED
            self._perform(OpenWatch(self._options.pattern, self.topics_hash))

    def watch_opened(self, topics_hash: str) -> None:
        """Schedule the next poll after a watch was opened, whose topics are already applied."""
        self.topics_hash, self._heard_at = topics_hash, self._clock.now()
        if self._watch is _Watch.ASKED and not self._closed:
            self._watch = _Watch.OPEN
            self._watch_backoff.reset()
            if not self._asking:
                self._next_poll()

    def watch_failed(self, failure: Failure) -> None:
        """Schedule a poll and another watch request, after one was refused or not answered."""
        if self._watch is _Watch.NONE or self._closed:
            return  # lost with its connection
        self._watch = _Watch.NONE
        if failure in _FINAL:
            self._watches = False  # until the next connection
        else:
            self._watch_in(_delay(self._watch_backoff, failure))
        if not self._asking:
            self._poll_within(self._options.period_seconds * self._random())

    def watch_updated(self, topics_hash: str, *, fits: bool) -> None:
        """Store the new list's hash after a watch's update, whose changes are already applied.

        If the hash differs from the broker's, poll soon.
        """
        self.topics_hash = topics_hash
        if not (fits or self._closed or self._asking):
            self._poll_within(SHORTEST_SECONDS + RECHECK_SECONDS * self._random())


def _delay(backoff: FullJitter, failure: Failure) -> float:
    """Return a backoff's next delay; reset the backoff first if the server is unreachable.

    Delays therefore grow only while a reachable server refuses or does not answer.
    """
    if failure is Unanswered.UNREACHABLE:
        backoff.reset()
    return backoff.next()
