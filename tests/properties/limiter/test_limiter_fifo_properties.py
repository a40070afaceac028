"""A semaphore of policy fifo: strict order, and no permit lost or invented."""

from hypothesis import settings

from limiter.permits.permit import AcquireOutcome
from tests.properties.limiter.limiter_books import Ask
from tests.properties.limiter.limiter_history import LimiterHistory
from tests.support.examples import many


class FifoHistory(LimiterHistory):
    """As shipped: the oldest first, blocking all behind."""

    def check_grant(self, ask: Ask, *, waited: bool) -> None:
        assert 0 < self.available >= self.books.needed(ask)
        # Immediate grants happen only without waiters; a granted waiter was the oldest.
        assert self.was_oldest if waited else not self.books.asks

    def check_refusal(self, ask: Ask, outcome: AcquireOutcome) -> None:
        assert outcome.name not in ("QUEUE_FULL", "STALLED")

    def nobody_waits_in_vain(self) -> None:
        head = next(iter(self.books.asks.values()), None)
        contention = self.semaphore.contention.current()
        assert (contention is None) == (head is None)
        if head is not None and contention is not None:
            assert not 0 < self.available >= self.books.needed(head)
            assert contention.needed_permits == self.books.needed(head)
            assert contention.available_permits == self.available


TestFifoHistory = FifoHistory.TestCase
TestFifoHistory.settings = settings(max_examples=many(100), stateful_step_count=40, deadline=None)
