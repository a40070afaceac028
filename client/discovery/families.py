"""The discovery schedules that imitate official clients, and the choice of a schedule by name."""

from __future__ import annotations

import math
from enum import Enum
from random import random
from typing import TYPE_CHECKING, ClassVar

import proto.PulsarApi_pb2 as pb
from client.discovery.polite import GoBackoff, PoliteSchedule, UnreachableRetries
from client.discovery.schedule import (
    DiscoverySchedule,
    GiveUp,
    ListTopics,
    LookUpPattern,
    OpenWatch,
    Unanswered,
)
from client.exceptions import InvalidConfiguration
from limiter.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.discovery.schedule import Action, DiscoveryOptions, Failure
    from limiter.clock import Clock


class PeriodicSchedule(DiscoverySchedule):
    """A schedule that requests topics again one period after each response or failure.

    Failures do not change the period. If the first listing is refused or its connection lost, the
    subscription fails. Only while no server is reachable, the first listing is retried until the
    operation timeout.
    """

    def _prepare(self) -> None:
        self._unreachable = UnreachableRetries(
            self._options.operation_timeout_seconds, self._random
        )

    def subscribed(self) -> None:
        """Start polling, because the first topics are subscribed to."""
        if not self._closed:
            self._poll_in(self._options.period_seconds)

    def listed(self, topics_hash: str) -> None:
        """Process the response to a listing request, which may also end a series of retries."""
        self._unreachable.reset()
        super().listed(topics_hash)

    def _poll_listed(self) -> None:
        self._poll_in(self._options.period_seconds)

    def _failed(self, failure: Failure) -> None:
        delay = self._unreachable.next() if failure is Unanswered.UNREACHABLE else None
        if delay is not None:
            self._poll_in(delay)
            return
        self._unreachable.reset()
        if self.topics_hash is None:
            self._perform(GiveUp(failure))
        else:
            self._poll_in(self._options.period_seconds)


_MOST_WATCH_SECONDS = 60.0
_FINAL_FOR_WATCHES = frozenset(
    {
        pb.AuthorizationError,
        pb.InvalidTopicName,
        pb.NotAllowedError,
        pb.ConsumerBusy,
        pb.IncompatibleSchema,
        pb.TopicNotFound,
    }
)


class JavaPollSchedule(PeriodicSchedule):
    """A discovery schedule like that of Java clients without a watch: polls send the pattern.

    The pattern is looked up once, as for a watch.
    """

    family: ClassVar[str] = "java-poll"

    def _question(self) -> ListTopics:
        options = self._options
        return ListTopics(options.pattern, self.topics_hash, options.properties)

    def subscribed(self) -> None:
        """Start polling, because the first topics are subscribed to."""
        super().subscribed()
        if self._options.persistent and not self._closed:
            self._perform(LookUpPattern(self._options.pattern))


class _Watch(Enum):
    """The states of the topic-list watch of a schedule."""

    NONE = "given up, or not wanted yet"
    WANTED = "requested, or to be requested again"
    OPEN = "open"


class JavaWatchSchedule(JavaPollSchedule):
    """A discovery schedule like that of Java clients, with a topic-list watch besides polls.

    The watch is requested after the first topics are subscribed to, with retries at doubling delays
    until the operation timeout. Polls start a period after its outcome. A lost watch is requested
    again after 0.1 s, without limit. If the broker offers reconciliation, the open watch's list is
    requested instead of a poll, and immediately after an update with a mismatching hash; after a
    refusal a poll follows immediately. Without reconciliation, the next poll finds missing topics.
    """

    family: ClassVar[str] = "java-watch"

    def _prepare(self) -> None:
        super()._prepare()
        self._backoff = Backoff(0.1, _MOST_WATCH_SECONDS, self._random)
        self._watch = _Watch.NONE
        self._reconciles = self._reconciling = self._was_open = False
        self._give_up_at = 0.0

    @property
    def _watching(self) -> bool:
        return self._watch is _Watch.OPEN

    @property
    def complete(self) -> bool:
        """True once the first listing has succeeded, and the watch is open if one is wanted."""
        return super().complete and self._watch is not _Watch.WANTED

    def connected(self, *, watches: bool, reconciles: bool = False) -> None:
        """React to a new connection to the server, whether the first or a later one."""
        self._reconciles = reconciles

    def subscribed(self) -> None:
        """Open a watch or start polling, because the first topics are subscribed to."""
        if self._closed:
            return
        if not self._options.persistent:
            self._poll_in(self._options.period_seconds)
            return
        self._give_up_at = self._clock.now() + self._options.operation_timeout_seconds
        self._open_watch()

    def _open_watch(self) -> None:
        self._watch = _Watch.WANTED
        self._perform(OpenWatch(self._options.pattern, self.topics_hash))

    def _poll_due(self) -> None:
        self._poll_timer = None
        if not self._reconcile():
            self._list()

    def _reconcile(self) -> bool:
        """Request the list of the open watch instead of a poll; return False if impossible."""
        if not (self._reconciles and self._watching):
            return False
        if not self._reconciling:
            self._reconciling = True
            self._cancel_poll()
            self._perform(OpenWatch(self._options.pattern, self.topics_hash, again=True))
        return True

    def watch_opened(self, topics_hash: str) -> None:
        """Store the list's hash after a watch was opened and its topics applied; start polling."""
        self.topics_hash = topics_hash
        begins = not self._was_open or self._reconciling
        self._watch, self._was_open, self._reconciling = _Watch.OPEN, True, False
        self._backoff.reset()
        if begins and not self._closed:
            self._poll_in(self._options.period_seconds)

    def watch_failed(self, failure: Failure) -> None:
        """Request the watch again, or poll, after a watch request was refused or not answered."""
        if self._closed:
            return
        if self._reconciling:
            self._reconciling = False
            if failure is not Unanswered.DISCONNECTED:
                self._list()
            else:
                self._poll_in(self._options.period_seconds)
        elif self._watch is _Watch.WANTED:
            self._ask_again_or_not(failure)

    def _ask_again_or_not(self, failure: Failure) -> None:
        late = not self._was_open and self._clock.now() >= self._give_up_at
        if failure in _FINAL_FOR_WATCHES or late:
            self._watch = _Watch.NONE
            if not self._was_open:
                self._poll_in(self._options.period_seconds)
        else:
            self._watch_in(self._backoff.next())

    def connection_lost(self) -> None:
        """Open the watch again after a lost connection, on which pending requests have failed."""
        if self._closed:
            return
        if self._reconciling:
            self.watch_failed(Unanswered.DISCONNECTED)
        if self._watch is _Watch.OPEN:
            self._watch = _Watch.WANTED
            self._watch_in(self._backoff.next())

    def watch_updated(self, topics_hash: str, *, fits: bool) -> None:
        """Store the new list's hash after a watch's update, whose changes are already applied.

        If the hash differs from the broker's, request the watch's whole list.
        """
        self.topics_hash = topics_hash
        if not (fits or self._closed):
            self._reconcile()


class CppSchedule(PeriodicSchedule):
    """A discovery schedule like that of C++ and Python clients.

    These clients list the whole namespace, one period after each response.
    """

    family: ClassVar[str] = "cpp"


class GoSchedule(DiscoverySchedule):
    """A discovery schedule like that of Go clients.

    These clients list the whole namespace at each tick of a timer, with quick retries. After any
    refusal the request is retried after 0.1 s, 0.2 s and so on, until the operation timeout; then a
    first listing fails the subscription, and a poll is abandoned. Ticks do not move: a tick during
    a poll makes the next poll follow immediately.
    """

    family: ClassVar[str] = "go"

    def _prepare(self) -> None:
        self._backoff: GoBackoff | None = None
        self._give_up_at = self._tick_at = 0.0

    def _failed(self, failure: Failure) -> None:
        now = self._clock.now()
        if self._backoff is None:
            self._backoff = GoBackoff(self._random)
        delay = self._backoff.next()
        if now + delay < self._give_up_at:
            self._poll_in(delay)
            return
        self._backoff = None
        if self.topics_hash is None:
            self._perform(GiveUp(failure))
        else:
            self._next_tick()

    def _list(self) -> None:
        if self._backoff is None and not self._asking:  # a new request, not a retry
            self._give_up_at = self._clock.now() + self._options.operation_timeout_seconds
        super()._list()

    def subscribed(self) -> None:
        """Start polling, because the first topics are subscribed to."""
        if not self._closed:
            self._tick_at = self._clock.now()
            self._next_tick()

    def _first_listed(self) -> None:
        self._backoff = None

    def _poll_listed(self) -> None:
        self._backoff = None
        self._next_tick()

    def _next_tick(self) -> None:
        """Poll at the next tick of the timer; immediately if a tick was missed, as in Go."""
        period, now = self._options.period_seconds, self._clock.now()
        self._tick_at += period
        if self._tick_at < now:
            missed = math.floor((now - self._tick_at) / period)
            self._tick_at += missed * period
        self._poll_in(max(0.0, self._tick_at - now))


FAMILIES: dict[str, type[DiscoverySchedule]] = {
    kind.family: kind
    for kind in (PoliteSchedule, JavaWatchSchedule, JavaPollSchedule, CppSchedule, GoSchedule)
}


def schedule_of(
    family: str,
    options: DiscoveryOptions,
    clock: Clock,
    perform: Callable[[Action], None],
    random: Callable[[], float] = random,
) -> DiscoverySchedule:
    """Create the discovery schedule with this name; see DiscoverySchedule for the arguments.

    Raises:
        InvalidConfiguration: No schedule has this name.
    """
    kind = FAMILIES.get(family)
    if kind is None:
        raise InvalidConfiguration(
            f"{family[:40]!r} is no discovery schedule: choose one of {', '.join(FAMILIES)}"
        )
    return kind(options, clock, random, perform)
