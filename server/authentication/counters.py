"""Counters of accepted and refused credentials, with the names of Pulsar's metrics."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

EXPIRING_MINUTES = (
    5, 10, 60, 240, 1_440, 10_080, 20_160, 43_200, 129_600, 259_200, 388_800, 525_600,
)  # fmt: skip
"""Buckets of a token's remaining minutes."""


@dataclass
class AuthenticationCounters:
    """Counts of the credentials that a process accepted and refused.

    Bound: a count for each provider, and for each provider with each reason.

    Attributes:
        successes: Accepted credentials, by provider and method.
        failures: Refused credentials, by provider, method and reason.
        expired_tokens: Tokens refused because they have expired.
        expiring: Accepted tokens by remaining minutes, for each of EXPIRING_MINUTES and above.
        expiring_minutes: The sum of the minutes until expiry of all accepted tokens.

    Source: upstream AuthenticationMetrics and AuthenticationMetricsToken.
    """

    successes: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    expired_tokens: int = 0
    expiring: list[int] = field(default_factory=lambda: [0] * (len(EXPIRING_MINUTES) + 1))
    expiring_minutes: float = 0.0

    def expires_in(self, minutes: float) -> None:
        """Count an accepted token in the histogram of remaining minutes until expiry."""
        self.expiring[bisect_left(EXPIRING_MINUTES, minutes)] += 1
        self.expiring_minutes += minutes
