"""The schedule of the Go client."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from client.discovery.actions import GiveUp
from client.discovery.backoff import GoBackoff
from client.discovery.schedule import DiscoverySchedule, Removal

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.discovery.actions import Action, Failure
    from client.discovery.schedule import DiscoveryOptions
    from limiter.clock import Clock


class GoSchedule(DiscoverySchedule):
    """A schedule listing the whole namespace at each tick of the period, with quick retries.

    After any refusal the request is retried after 0.1 s, 0.2 s and so on, until the operation
    timeout; then a first listing fails the subscription, and a poll is abandoned. Ticks do not
    move: a tick during a poll makes the next poll follow immediately.
    """

    family: ClassVar[str] = "go"
    removal: ClassVar[Removal] = Removal.UNSUBSCRIBE

    def __init__(
        self,
        options: DiscoveryOptions,
        clock: Clock,
        random: Callable[[], float],
        perform: Callable[[Action], None],
    ) -> None:
        super().__init__(options, clock, random, perform)
        self._backoff: GoBackoff | None = None
        self._give_up_at = self._tick_at = 0.0

    def _failed(self, failure: Failure) -> None:
        now = self._clock.now()
        if self._backoff is None:
            self._backoff = GoBackoff(self._random)
        delay = self._backoff.next()
        if now + delay < self._give_up_at:
            self._retry_in(delay)
            return
        self._backoff = None
        if self.topics_hash is None:
            self._perform(GiveUp(failure))
        else:
            self._next_tick()

    def _retry_in(self, seconds: float) -> None:
        self._poll_in(seconds)

    def _list(self) -> None:
        if self._backoff is None and not self._asking:  # a new request, not a retry
            self._give_up_at = self._clock.now() + self._options.operation_timeout_seconds
        super()._list()

    def subscribed(self) -> None:
        """See DiscoverySchedule."""
        if not self._closed:
            self._tick_at = self._clock.now()
            self._next_tick()

    def _first_listed(self) -> None:
        self._backoff = None

    def _poll_listed(self) -> None:
        self._backoff = None
        self._next_tick()

    def _next_tick(self) -> None:
        """Poll at the next tick; immediately after a missed tick, as a ticker keeps one."""
        period, now = self._options.period_seconds, self._clock.now()
        self._tick_at += period
        if self._tick_at < now:
            missed = math.floor((now - self._tick_at) / period)
            self._tick_at += missed * period
        self._poll_in(max(0.0, self._tick_at - now))
