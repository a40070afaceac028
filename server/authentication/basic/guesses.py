"""Bounds the hashing of wrong passwords per address.

A name that was right once is recognized by a cheaper digest, without this module. So a flood of
wrong passwords costs little, and excludes no legitimate user: not even a first login from the same
address, while the flood is below MOST_LATE simultaneous guesses and does not guess at the same
name.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from limiter.token_bucket import Rate

if TYPE_CHECKING:
    from limiter.clock import Clock

FREE_A_SECOND = 10.0
"""Wrong passwords of an address hashed per second and refused immediately; also the initial burst.
"""
OF_A_NAME_A_SECOND = 1.0
"""The same beyond that rate, for an existing name; unknown names get none."""
LATE_SECONDS = 0.1
"""Delay of every refusal for such an address, so that the time reveals nothing."""
MOST_LATE = 64
"""Delayed refusals of an address; further refusals are immediate, without hashing."""
MOST_COUNTED = 10_000
"""Counted addresses, and names of addresses; the oldest is evicted."""


class Guesses:
    """The wrong passwords of each address.

    Args:
        clock: The source of time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rates: dict[tuple[str, str], Rate] = {}
        self._late: dict[str, int] = {}

    def begin(self, address: str, name: str | None) -> Guess:
        """Return the permission to hash a password, or to refuse it without hashing.

        Args:
            address: The peer's address.
            name: The existing name; None for an unknown name.
        """
        rate = self._rate(address, "", FREE_A_SECOND)
        if rate.take():
            return Guess(self, address, rate)
        if name is None or self._late.get(address, 0) >= MOST_LATE:
            return Guess(self, address, None, late=True)
        rate = self._rate(address, name, OF_A_NAME_A_SECOND)
        return Guess(self, address, rate if rate.take() else None, late=True)

    async def wait(self, address: str, since: float) -> None:
        """Wait until a refusal of an address is due, unless too many wait."""
        waiting = self._late.get(address, 0)
        if waiting >= MOST_LATE or self._clock.now() >= since + LATE_SECONDS:
            return
        self._late[address] = waiting + 1
        due = asyncio.get_running_loop().create_future()
        timer = self._clock.call_at(since + LATE_SECONDS, _done, due)
        try:
            await due
        finally:
            timer.cancel()
            self._late[address] -= 1
            if not self._late[address]:
                del self._late[address]

    def now(self) -> float:
        """Return the time."""
        return self._clock.now()

    def _rate(self, address: str, name: str, a_second: float) -> Rate:
        found = self._rates.get((address, name))
        if found is None:
            found = self._rates[address, name] = Rate(a_second, self._clock)
            if len(self._rates) > MOST_COUNTED:
                del self._rates[next(iter(self._rates))]
        return found


class Guess:
    """A password to be checked.

    Attributes:
        may_be_hashed: False refuses the password without hashing.
    """

    def __init__(
        self, all_of_them: Guesses, address: str, rate: Rate | None, *, late: bool = False
    ) -> None:
        self._all = all_of_them
        self._address = address
        self._rate = rate
        self._late = late
        self._since = all_of_them.now()
        self.may_be_hashed = rate is not None

    def was_right(self) -> None:
        """Uncount the guess."""
        if self._rate is not None:
            self._rate.give_back()

    async def was_wrong(self) -> None:
        """Return when it may be refused."""
        if self._late:
            await self._all.wait(self._address, self._since)


def _done(due: asyncio.Future[None]) -> None:
    if not due.done():
        due.set_result(None)
