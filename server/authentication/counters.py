"""The outcomes of authentication that an operator sees, counted as upstream's metrics have them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

EXPIRING_MINUTES = (
    5, 10, 60, 240, 1_440, 10_080, 20_160, 43_200, 129_600, 259_200, 388_800, 525_600,
)  # fmt: skip
"""Buckets of the time that a token still has."""


@dataclass
class AuthenticationCounters:
    """The counts of one process.

    Bound: one count for each provider, and for each with each reason.

    Attributes:
        successes: Credentials that were found good, by provider and method.
        failures: Those that were not, by provider, method and reason.
        expired_tokens: Tokens that were refused because their time is over.
        expiring: Good tokens by the time they have, for each of EXPIRING_MINUTES and above.
        expiring_minutes: The sum of these times.

    Source: upstream AuthenticationMetrics and AuthenticationMetricsToken.
    """

    successes: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    expired_tokens: int = 0
    expiring: list[int] = field(default_factory=lambda: [0] * (len(EXPIRING_MINUTES) + 1))
    expiring_minutes: float = 0.0

    def expires_in(self, minutes: float) -> None:
        """Count a good token by the time that it has."""
        self.expiring[bisect_left(EXPIRING_MINUTES, minutes)] += 1
        self.expiring_minutes += minutes
