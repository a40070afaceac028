"""The base class of discovery schedules, which decide when to request a pattern's topics."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    import proto.PulsarApi_pb2 as pb
    from limiter.clock import Clock, TimerHandle


@dataclass(frozen=True, slots=True)
class ListTopics:
    """The action of sending GET_TOPICS_OF_NAMESPACE.

    ``listed`` or ``list_failed`` reports its outcome.

    Attributes:
        pattern: Pattern that the broker applies; None if the client matches the names itself.
        topics_hash: Hash of the client's list. If the list is unchanged, the response contains no
            names.
        properties: Properties for the broker's listing plug-in (PIP-452).
    """

    pattern: str | None = None
    topics_hash: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LookUpPattern:
    """The action of sending LOOKUP for the pattern as if it were a topic.

    The outcome is ignored.
    """

    pattern: str


@dataclass(frozen=True, slots=True)
class OpenWatch:
    """The action of sending WATCH_TOPIC_LIST.

    ``watch_opened`` or ``watch_failed`` reports its outcome.

    Attributes:
        pattern: The watched pattern, which is first looked up as if it were a topic.
        topics_hash: Hash of the client's list.
        again: Whether to request the open watch's list on its connection, without a lookup.
    """

    pattern: str
    topics_hash: str | None
    again: bool = False


@dataclass(frozen=True, slots=True)
class CloseWatch:
    """The action of sending WATCH_TOPIC_LIST_CLOSE.

    The outcome is ignored.
    """


class Unanswered(Enum):
    """The reasons for which a request fails without a response from the server."""

    TIMED_OUT = "no answer in time"
    DISCONNECTED = "the connection ended"
    UNREACHABLE = "no connection could be opened"


if TYPE_CHECKING:
    Failure: TypeAlias = Unanswered | pb.ServerError.ValueType
    """Why a request failed: the server's error code, or the kind of missing response."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The action of failing the subscription, because its first listing failed for good.

    Attributes:
        failure: Why the last attempt failed.
    """

    failure: Failure


if TYPE_CHECKING:
    Action: TypeAlias = ListTopics | LookUpPattern | OpenWatch | CloseWatch | GiveUp


PERIOD_SECONDS = 60.0
"""Seconds between polls (upstream: patternAutoDiscoveryPeriod)."""


@dataclass(frozen=True, slots=True)
class DiscoveryOptions:
    """The options with which a pattern consumer discovers its topics.

    Attributes:
        pattern: The pattern as sent to the broker, including ``persistent://`` if the user gave it.
        properties: The consumer's properties, for the broker's listing plug-in (PIP-452).
        persistent: Whether to find only persistent topics. Watches report no others.
        period_seconds: Interval of polls in seconds.
        operation_timeout_seconds: Timeout of the first listing, in schedules that retry it.
    """

    pattern: str
    properties: Mapping[str, str] = field(default_factory=dict)
    persistent: bool = True
    period_seconds: float = PERIOD_SECONDS
    operation_timeout_seconds: float = 30.0


class DiscoverySchedule:
    """A schedule that decides when and how to request the topics of a pattern.

    The performer of the requests calls the methods; methods never raise. At most one listing is in
    flight at any time.

    Args:
        options: The options of the pattern consumer's discovery.
        clock: The source of time.
        random: Function that returns random numbers from 0 to 1.
        perform: Function that carries out an action, such as a request. It may report the outcome
            before it returns.

    Attributes:
        family: The name of the schedule.
        topics_hash: Hash of the matching names that the client knows; None before the first
            listing.
        listings: Number of listing requests.
    """

    family: ClassVar[str]

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
        self._prepare()

    @property
    def complete(self) -> bool:
        """True once the first listing has succeeded, and the watch is open if one is wanted."""
        return self.topics_hash is not None

    # -- events -------------------------------------------------------------------------------

    def start(self) -> None:
        """Request the first listing, once the consumer exists."""
        self._list()

    def listed(self, topics_hash: str) -> None:
        """Process the response to a listing request: store the hash, and schedule the next one.

        Args:
            topics_hash: Hash of the matching names that the client now knows.
        """
        self._asking = False
        first, self.topics_hash = self.topics_hash is None, topics_hash
        if not self._closed:
            if first:
                self._first_listed()
            else:
                self._poll_listed()

    def list_failed(self, failure: Failure) -> None:
        """Schedule a retry, or give up, after a listing request was refused or not answered."""
        self._asking = False
        if not self._closed:
            self._failed(failure)

    def subscribed(self) -> None:
        """Start polling, because the first topics are subscribed to."""

    def connected(self, *, watches: bool, reconciles: bool = False) -> None:
        """React to a new connection to the server, whether the first or a later one.

        Args:
            watches: Whether the server offers topic list watches.
            reconciles: Whether an open watch can return its list again.
        """

    def connection_lost(self) -> None:
        """React to a lost connection, on which open watches and pending requests have failed.

        A listing in flight is also reported by ``list_failed``, an open watch only here.
        """

    def watch_opened(self, topics_hash: str) -> None:
        """React to a watch that was opened or listed again; its topics are already applied."""

    def watch_failed(self, failure: Failure) -> None:
        """React to a watch request that the server refused or did not answer."""

    def watch_updated(self, topics_hash: str, *, fits: bool) -> None:
        """Store the new list's hash after a watch's update, whose changes are already applied.

        Args:
            topics_hash: Hash of the matching names that the client now knows.
            fits: Whether this hash is equal to the broker's.
        """

    def close(self) -> None:
        """Stop requesting topics, and close an open watch."""
        self._closed = True
        self._cancel_poll()
        self._cancel_watch_timer()
        if self._watching:
            self._perform(CloseWatch())

    # -- decisions of a family ----------------------------------------------------------------

    def _prepare(self) -> None:
        """Initialize the attributes of a subclass."""

    @property
    def _watching(self) -> bool:
        """True while a topic-list watch is open."""
        return False

    def _question(self) -> ListTopics:
        """Return the next listing request to send."""
        return ListTopics()

    def _first_listed(self) -> None:
        """Continue after the response to the first listing request."""

    def _poll_listed(self) -> None:
        """Continue after the response to a later listing request."""

    def _failed(self, failure: Failure) -> None:
        """Continue after a listing request failed, whether the first or a later one."""
        raise NotImplementedError

    # -- tools --------------------------------------------------------------------------------

    def _list(self) -> None:
        """Send a listing request now, unless another one is pending."""
        if not self._asking and not self._closed:
            self._asking = True
            self.listings += 1
            self._cancel_poll()
            self._perform(self._question())

    def _poll_in(self, seconds: float) -> None:
        """Schedule the next poll, replacing one that is scheduled already."""
        self._cancel_poll()
        self._poll_at = self._clock.now() + seconds
        self._poll_timer = self._clock.call_at(self._poll_at, self._poll_due)

    def _poll_within(self, seconds: float) -> None:
        """Schedule the next poll, unless one is already scheduled for an earlier time."""
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
        """Schedule the opening of a watch, replacing one that is scheduled already."""
        self._cancel_watch_timer()
        self._watch_timer = self._clock.call_at(self._clock.now() + seconds, self._watch_due)

    def _watch_due(self) -> None:
        self._watch_timer = None
        self._open_watch()

    def _open_watch(self) -> None:
        """Request a topic-list watch now."""
        raise NotImplementedError

    def _cancel_watch_timer(self) -> None:
        if self._watch_timer is not None:
            self._watch_timer.cancel()
            self._watch_timer = None
