"""Entries pending redelivery: ack timeout expired, or negatively acknowledged."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from client.consumers.acknowledging.due_times import DueTimes

if TYPE_CHECKING:
    from client.consumers.options import ConsumerOptions
    from client.messages.message_id import Place
    from limiter.clock import Clock

_STEPS = 10
_LEAST_STEP_SECONDS, _LONGEST_STEP_SECONDS = 0.01, 1.0


class Redeliver(Protocol):
    """A callback requesting the redelivery of entries."""

    def __call__(self, entries: list[Place], *, timed_out: bool) -> None:
        """Request redelivery; ``timed_out`` distinguishes the ack timeout from negative acks."""


class Redelivery:
    """Deadlines of entries: ack timeouts and negative acknowledgements.

    Args:
        clock: The source of time.
        options: The timeout and the delays.
        redeliver: Called with the due entries.

    Source: upstream UnAckedMessageTracker, NegativeAcksTracker.
    """

    def __init__(self, clock: Clock, options: ConsumerOptions, redeliver: Redeliver) -> None:
        self._timeout_seconds = (options.unacked_messages_timeout_ms or 0) / 1_000
        self._backoff = options.negative_ack_backoff
        self._delay_seconds = options.negative_ack_redelivery_delay_ms / 1_000
        shortest = self._delay_seconds
        if self._backoff is not None:
            shortest = self._backoff.min_delay_ms / 1_000
        self._refused = DueTimes(clock, _step(shortest), partial(redeliver, timed_out=False))
        self._unacked = DueTimes(
            clock, _step(self._timeout_seconds), partial(redeliver, timed_out=True)
        )

    @property
    def watches(self) -> bool:
        """True with an ack timeout."""
        return self._timeout_seconds > 0

    @property
    def unacknowledged(self) -> int:
        """Number of entries with a running ack timeout."""
        return len(self._unacked)

    @property
    def refused(self) -> int:
        """Number of negatively acknowledged entries pending redelivery."""
        return len(self._refused)

    def taken(self, entry: Place) -> None:
        """Start the ack timeout of an entry handed to the program."""
        self._unacked.add(entry, self._timeout_seconds)

    def refuse(self, entry: Place, redelivery_count: int) -> None:
        """Schedule an entry's redelivery."""
        delay = self._delay_seconds
        if self._backoff is not None:
            delay = self._backoff.next(redelivery_count) / 1_000
        self._unacked.remove(entry)
        self._refused.add(entry, delay)

    def forget(self, entry: Place) -> None:
        """Forget an entry: acknowledged, or redelivered."""
        self._unacked.remove(entry)
        self._refused.remove(entry)

    def forget_up_to(self, entry: Place) -> None:
        """Forget the entries up to and including an entry."""
        for times in (self._unacked, self._refused):
            if len(times):
                for earlier in [one for one in times if one <= entry]:
                    times.remove(earlier)

    def clear(self) -> None:
        """Forget all entries: the broker redelivers them."""
        self._unacked.clear()
        self._refused.clear()


def _step(seconds: float) -> float:
    return min(max(seconds / _STEPS, _LEAST_STEP_SECONDS), _LONGEST_STEP_SECONDS)
