"""Reports to the observer of a semaphore: how requests ended, and how long they waited."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from limiter.permits.permit import AcquireOutcome

if TYPE_CHECKING:
    from collections.abc import Callable


MOST_LABELS = 20
"""Labels of a policy's reasons that are counted apart; all further ones are ``other``."""


class Outcomes:
    """Tells an observer of each request once; those that did not wait together, and later.

    Attributes:
        untold_grants: Requests that were granted without a wait since it was last told.
        refused: Requests that the policy refused, by the label of its reason.
    """

    __slots__ = ("_observer", "refused", "untold_grants")

    def __init__(self, observer: Callable[[AcquireOutcome, float, int], None] | None) -> None:
        self._observer = observer
        self.untold_grants = 0
        self.refused: Counter[str] = Counter()

    def count_reason(self, label: str) -> None:
        """Count a request that the policy refused; that it ended is told apart."""
        known = label in self.refused or len(self.refused) < MOST_LABELS
        self.refused[label if known else "other"] += 1

    def tell(self, outcome: AcquireOutcome, waited_seconds: float = 0.0) -> None:
        """Tell how one request ended."""
        self.tell_grants()
        if self._observer is not None:
            self._observer(outcome, waited_seconds, 1)

    def tell_grants(self) -> None:
        """Tell of all requests that waited for nothing."""
        count, self.untold_grants = self.untold_grants, 0
        if count and self._observer is not None:
            self._observer(AcquireOutcome.GRANTED, 0.0, count)
