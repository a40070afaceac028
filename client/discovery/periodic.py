"""Polls at a fixed period after each outcome, as in Java and C++."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.discovery.actions import GiveUp, Unanswered
from client.discovery.backoff import UnreachableRetries
from client.discovery.schedule import DiscoverySchedule

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.discovery.actions import Action, Failure
    from client.discovery.schedule import DiscoveryOptions
    from limiter.clock import Clock


class PeriodicSchedule(DiscoverySchedule):
    """A schedule of polls a period after each outcome; failures change nothing.

    A refused or lost first listing fails the subscription. Only while no server is reachable, the
    request is retried until the operation timeout.
    """

    def __init__(
        self,
        options: DiscoveryOptions,
        clock: Clock,
        random: Callable[[], float],
        perform: Callable[[Action], None],
    ) -> None:
        super().__init__(options, clock, random, perform)
        self._unreachable = UnreachableRetries(options.operation_timeout_seconds, random)

    def subscribed(self) -> None:
        """See DiscoverySchedule."""
        if not self._closed:
            self._poll_in(self._options.period_seconds)

    def listed(self, topics_hash: str) -> None:
        """See DiscoverySchedule."""
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
