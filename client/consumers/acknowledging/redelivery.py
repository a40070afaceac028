"""Entries that are to be sent again: not acknowledged in time, or refused by the program."""

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
    """Has entries sent again: not acknowledged in time, or refused."""

    def __call__(self, entries: list[Place], *, timed_out: bool) -> None:
        """Ask the broker."""


class Redelivery:
    """The entries that the program has, with the ack timeout, and those that it refused.

    Args:
        clock: Where time comes from.
        options: The timeout and the delays.
        redeliver: Has them sent again.

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
        """True if there is an ack timeout."""
        return self._timeout_seconds > 0

    @property
    def unacknowledged(self) -> int:
        """Entries that the ack timeout runs for."""
        return len(self._unacked)

    @property
    def refused(self) -> int:
        """Entries that were negatively acknowledged, and not sent again yet."""
        return len(self._refused)

    def taken(self, entry: Place) -> None:
        """Let the ack timeout run for an entry that the program has a message of."""
        self._unacked.add(entry, self._timeout_seconds)

    def refuse(self, entry: Place, redelivery_count: int) -> None:
        """Have an entry sent again when its delay is over."""
        delay = self._delay_seconds
        if self._backoff is not None:
            delay = self._backoff.next(redelivery_count) / 1_000
        self._unacked.remove(entry)
        self._refused.add(entry, delay)

    def forget(self, entry: Place) -> None:
        """Forget an entry: it is acknowledged, or sent again."""
        self._unacked.remove(entry)
        self._refused.remove(entry)

    def forget_up_to(self, entry: Place) -> None:
        """Forget an entry and those before it."""
        for times in (self._unacked, self._refused):
            if len(times):
                for earlier in [one for one in times if one <= entry]:
                    times.remove(earlier)

    def clear(self) -> None:
        """Forget all: they come again."""
        self._unacked.clear()
        self._refused.clear()


def _step(seconds: float) -> float:
    return min(max(seconds / _STEPS, _LEAST_STEP_SECONDS), _LONGEST_STEP_SECONDS)
