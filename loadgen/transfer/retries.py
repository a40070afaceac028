"""Calls of the admin REST that are made again when the server has no time for them.

429 and the errors of a server that is too busy or restarts (500 and above) pass; everything else a
server refuses it would refuse again. A server that nobody answers for is not waited for.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from client.admin.errors import AdminDisconnectedError, AdminRefusedError, AdminTimeoutError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

ResultT = TypeVar("ResultT")

_TOO_MANY = 429
_FIRST_SERVER_ERROR = 500
_NOT_IMPLEMENTED = 501


@dataclass
class Retries:
    """Makes calls again, with waits that grow and differ.

    Attributes:
        waits_seconds: The longest wait before each further attempt; half of it at least is waited.
        sleep: Waits; another one in tests.
        count: How many calls were made again.
    """

    waits_seconds: Sequence[float] = (0.2, 0.5, 1, 2, 5, 10)
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    count: int = 0
    _chance: random.Random = field(default_factory=random.Random, repr=False)

    async def call(self, attempt: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Return what a call answers, at the latest the last time that it is made.

        Raises:
            AdminError: The server refuses for good, or every time.
        """
        for longest in self.waits_seconds:
            try:
                return await attempt()
            except (AdminRefusedError, AdminDisconnectedError, AdminTimeoutError) as error:
                if not passes(error):
                    raise
            self.count += 1
            await self.sleep(longest * (0.5 + self._chance.random() / 2))
        return await attempt()


def passes(error: Exception) -> bool:
    """Tell whether an error may be gone when the call is made again."""
    if not isinstance(error, AdminRefusedError):
        return True
    server = error.status >= _FIRST_SERVER_ERROR and error.status != _NOT_IMPLEMENTED
    return server or error.status == _TOO_MANY
