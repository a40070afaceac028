"""The schedule of a pattern consumer's requests: the base of all families.

A schedule has no sockets. It is told what happens by calls of its methods, and has requests made
by ``perform``; time is a ``Clock``'s, chance a function's. So the client, a load generator and a
simulation run the same class.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from client.discovery.actions import CloseWatch, ListTopics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from client.discovery.actions import Action, Failure
    from limiter.clock import Clock, TimerHandle

PERIOD_SECONDS = 60.0
"""Seconds between polls (upstream: patternAutoDiscoveryPeriod)."""


class Removal(Enum):
    """The way in which a client leaves a topic that its pattern no longer finds."""

    CLOSE = "close the consumer; the subscription stays"
    UNSUBSCRIBE = "unsubscribe"
    KEEP = "do nothing"


@dataclass(frozen=True, slots=True)
class DiscoveryOptions:
    """The options of one pattern consumer's discovery.

    Attributes:
        pattern: As it goes to the broker, ``persistent://`` included where the user wrote it.
        properties: The consumer's, for the broker's plug-in (PIP-452).
        persistent: Whether only persistent topics are looked for: a watch tells of no others.
        period_seconds: From one poll to the next.
        operation_timeout_seconds: How long the first listing is tried for, by those who try again.
    """

    pattern: str
    properties: Mapping[str, str] = field(default_factory=dict)
    persistent: bool = True
    period_seconds: float = PERIOD_SECONDS
    operation_timeout_seconds: float = 30.0


class DiscoverySchedule:
    """A family's decisions on when to ask for topics, and for what.

    Its methods are called as things happen, by whoever performs the requests; they never raise.
    At most one listing is under way at any time.

    Args:
        options: Of the consumer.
        clock: Where time comes from.
        random: Returns numbers from 0 to 1.
        perform: Has a request made. It may tell the outcome before it returns.

    Attributes:
        family: The family's name.
        removal: What becomes of topics that are gone.
        topics_hash: Hash of the names the client has; None before the first listing.
        listings: How often topics were asked for.
    """

    family: ClassVar[str]
    removal: ClassVar[Removal] = Removal.CLOSE

    def __init__(
        self,
        options: DiscoveryOptions,
        clock: Clock,
        random: Callable[[], float],
        perform: Callable[[Action], None],
    ) -> None:
        self._options = options
        self._clock = clock
        self._random = random
        self._perform = perform
        self._asking = self._closed = False
        self._poll_timer: TimerHandle | None = None
        self._poll_at = 0.0
        self._watch_timer: TimerHandle | None = None
        self.topics_hash: str | None = None
        self.listings = 0

    @property
    def complete(self) -> bool:
        """True when all that it begins with is there: the list, and the watch if one is to be."""
        return self.topics_hash is not None

    # -- what happens -------------------------------------------------------------------------

    def start(self) -> None:
        """Begin: the consumer was made, and there is a connection, or will be for the asking."""
        self._list()

    def listed(self, topics_hash: str) -> None:
        """Learn that a listing was answered.

        Args:
            topics_hash: Hash of the names that the client has now.
        """
        self._asking = False
        first, self.topics_hash = self.topics_hash is None, topics_hash
        if not self._closed:
            if first:
                self._first_listed()
            else:
                self._poll_listed()

    def list_failed(self, failure: Failure) -> None:
        """Learn that a listing was refused, or not answered."""
        self._asking = False
        if not self._closed:
            self._failed(failure)

    def subscribed(self) -> None:
        """Learn that the topics found first are subscribed to."""

    def connected(self, *, watches: bool, reconciles: bool = False) -> None:
        """Learn that there is a connection, again or for the first time.

        Args:
            watches: Whether the server offers topic list watches.
            reconciles: Whether an open watch may be asked for its list.
        """

    def connection_lost(self) -> None:
        """Learn that the connection is gone; open watches and requests failed with it.

        A listing under way is told of by ``list_failed`` as well, an open watch by this alone.
        """

    def watch_opened(self, topics_hash: str) -> None:
        """Learn that a watch was opened, or told its list; what it told is applied."""

    def watch_failed(self, failure: Failure) -> None:
        """Learn that a watch was refused, or not answered."""

    def watch_updated(self, topics_hash: str, *, fits: bool) -> None:
        """Learn that an update came and was applied.

        Args:
            topics_hash: Hash of the names that the client has now.
            fits: Whether the broker's hash is the same.
        """

    def close(self) -> None:
        """End; nothing is asked for any more, and an open watch is closed."""
        self._closed = True
        self._cancel_poll()
        self._cancel_watch_timer()
        if self._watching:
            self._perform(CloseWatch())

    # -- what a family decides ----------------------------------------------------------------

    @property
    def _watching(self) -> bool:
        """True while a watch is open."""
        return False

    def _question(self) -> ListTopics:
        """Return what is asked for now."""
        return ListTopics()

    def _first_listed(self) -> None:
        """Go on behind the first listing."""

    def _poll_listed(self) -> None:
        """Go on behind another listing."""

    def _failed(self, failure: Failure) -> None:
        """Go on behind a listing that failed, the first or another."""
        raise NotImplementedError

    # -- tools --------------------------------------------------------------------------------

    def _list(self) -> None:
        """Ask for topics now, unless that is under way."""
        if not self._asking and not self._closed:
            self._asking = True
            self.listings += 1
            self._cancel_poll()
            self._perform(self._question())

    def _poll_in(self, seconds: float) -> None:
        """Poll after a while, and not at the time set before."""
        self._cancel_poll()
        self._poll_at = self._clock.now() + seconds
        self._poll_timer = self._clock.call_at(self._poll_at, self._poll_due)

    def _poll_within(self, seconds: float) -> None:
        """Poll after a while, if not earlier by what was set before."""
        if self._poll_timer is None or self._clock.now() + seconds < self._poll_at:
            self._poll_in(seconds)

    def _poll_due(self) -> None:
        self._poll_timer = None
        self._list()

    def _cancel_poll(self) -> None:
        if self._poll_timer is not None:
            self._poll_timer.cancel()
            self._poll_timer = None

    def _watch_in(self, seconds: float) -> None:
        """Open a watch after a while, and not at the time set before."""
        self._cancel_watch_timer()
        self._watch_timer = self._clock.call_at(self._clock.now() + seconds, self._watch_due)

    def _watch_due(self) -> None:
        self._watch_timer = None
        self._open_watch()

    def _open_watch(self) -> None:
        """Ask for a watch now."""
        raise NotImplementedError

    def _cancel_watch_timer(self) -> None:
        if self._watch_timer is not None:
            self._watch_timer.cancel()
            self._watch_timer = None
