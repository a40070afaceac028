"""The schedule of clients that ask a single time, or on the beat, and never try again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.discovery.actions import GiveUp, ListTopics
from client.discovery.schedule import DiscoverySchedule

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.discovery.actions import Action, Failure
    from client.discovery.schedule import DiscoveryOptions
    from limiter.clock import Clock, TimerHandle


class OnceSchedule(DiscoverySchedule):
    """Asks for all listings of a beat in one go; a refusal changes nothing.

    Args:
        options: Its pattern and properties are sent along with each question.
        clock: Where time comes from.
        perform: Has a request made.
        listings_each: Listings of one beat.
        repeat_seconds: From one beat to the next, whatever became of it; 0: there is only one.
        pattern: Sent along; None asks for the whole namespace.

    Attributes:
        due: The beat's moment on the clock; before the start, None: when it starts.
        beats: How many came behind the first.
    """

    family = "once"

    def __init__(
        self,
        options: DiscoveryOptions,
        clock: Clock,
        perform: Callable[[Action], None],
        *,
        listings_each: int,
        repeat_seconds: float,
        pattern: str | None,
    ) -> None:
        super().__init__(options, clock, lambda: 0.5, perform)
        self._listings_each = listings_each
        self._repeat_seconds = repeat_seconds
        self._pattern = pattern
        self._left = listings_each  # of the first beat
        self._failure: Failure | None = None
        self._timer: TimerHandle | None = None
        self.due: float | None = None
        self.beats = 0

    @property
    def complete(self) -> bool:
        """True when all of the first listings were answered, or a later one was."""
        return self._left <= 0 and self._failure is None

    def start(self) -> None:
        """See DiscoverySchedule."""
        if self.due is None:
            self.due = self._clock.now()
        self._beat(self.due)

    def _beat(self, due: float) -> None:
        if self._closed:
            return
        self.due = due
        if self._repeat_seconds:
            later = due + self._repeat_seconds
            self._timer = self._clock.call_at(later, self._again, later)
        self.listings += self._listings_each
        for _ in range(self._listings_each):
            self._perform(ListTopics(self._pattern, None, self._options.properties))

    def _again(self, due: float) -> None:
        self.beats += 1
        self._beat(due)

    def listed(self, topics_hash: str) -> None:
        """See DiscoverySchedule."""
        self.topics_hash = topics_hash
        self._ended(None)

    def list_failed(self, failure: Failure) -> None:
        """See DiscoverySchedule."""
        self._ended(failure)

    def _ended(self, failure: Failure | None) -> None:
        self._left -= 1
        if self._left < 0:
            self._failure = failure
            return
        if self._failure is None:
            self._failure = failure
        if self._left == 0 and self._failure is not None:
            self._perform(GiveUp(self._failure))

    def close(self) -> None:
        """See DiscoverySchedule."""
        super().close()
        if self._timer is not None:
            self._timer.cancel()
