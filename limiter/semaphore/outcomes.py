"""Reports to the observer of a semaphore: outcomes and waits of requests."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from limiter.permits.permit import AcquireOutcome

if TYPE_CHECKING:
    from collections.abc import Callable


MOST_LABELS = 20
"""Refusal labels counted separately; further labels count as ``other``."""


class Outcomes:
    """Reports each request once to an observer; requests without a wait in later batches.

    Attributes:
        untold_grants: Requests granted without a wait since the last report.
        refused: Requests refused by the policy, by the label of its reason.
    """

    __slots__ = ("_observer", "refused", "untold_grants")

    def __init__(self, observer: Callable[[AcquireOutcome, float, int], None] | None) -> None:
        self._observer = observer
        self.untold_grants = 0
        self.refused: Counter[str] = Counter()

    def count_reason(self, label: str) -> None:
        """Count a policy's refusal by reason; its outcome is reported separately."""
        known = label in self.refused or len(self.refused) < MOST_LABELS
        self.refused[label if known else "other"] += 1

    def tell(self, outcome: AcquireOutcome, waited_seconds: float = 0.0) -> None:
        """Report the outcome of a request."""
        self.tell_grants()
        if self._observer is not None:
            self._observer(outcome, waited_seconds, 1)

    def tell_grants(self) -> None:
        """Report all requests granted without a wait."""
        count, self.untold_grants = self.untold_grants, 0
        if count and self._observer is not None:
            self._observer(AcquireOutcome.GRANTED, 0.0, count)
