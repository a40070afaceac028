"""An admission policy: fair, but it refuses requests that would wait for more than ten seconds."""

from __future__ import annotations

from limiter import FairAdmission, PermitAcquireRefusedError, Waiter

MOST_SECONDS = 10.0


class ExpectedWait(FairAdmission):
    """Refuses the newest requests while the expected wait in the queue is too long."""

    def sheds(self) -> tuple[Waiter, PermitAcquireRefusedError] | None:
        """Return the newest request and the reason to refuse it; None if all requests may wait."""
        rate = self.view.drain_rate
        if rate is None or self.view.waiting_permits / rate <= MOST_SECONDS:
            return None
        new = (one for one in reversed(self.view.waiting) if one.previous is None)
        newest = next(new, None)
        if newest is None:
            return None
        text = f"The wait would be longer than {MOST_SECONDS:g} s"
        return newest, PermitAcquireRefusedError("expected_wait", text)
