"""Calls of a server's admin REST API, with retries, in parallel, and with errors as sentences."""

from __future__ import annotations

import asyncio
import random
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar

from client.admin.errors import (
    AdminDisconnectedError,
    AdminError,
    AdminRefusedError,
    AdminTimeoutError,
    AdminUnreachableError,
)
from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
    from typing import Any

ResultT = TypeVar("ResultT")

CALL_SECONDS = 120.0
_PASSING = {HTTPStatus.TOO_MANY_REQUESTS, *range(500, 600)} - {HTTPStatus.NOT_IMPLEMENTED}


@dataclass
class Retries:
    """Repeats failed REST calls, after waits that grow and are random.

    Only 429 and the errors of a busy or restarting server (500 and above) are retried; all other
    refusals are final, and so is a failed connection.

    Attributes:
        waits_seconds: The longest wait before each retry; the shortest is half as long.
        sleep: Waits; replaced in tests.
        count: Number of retries.
    """

    waits_seconds: Sequence[float] = (0.2, 0.5, 1, 2, 5, 10)
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    count: int = 0
    _chance: random.Random = field(default_factory=random.Random, repr=False)

    async def call(self, attempt: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Return the result of a REST call, repeating it while the server is busy.

        Raises:
            AdminError: The server refuses for good, or every time.
        """
        for longest in self.waits_seconds:
            try:
                return await attempt()
            except AdminRefusedError as error:
                if error.status not in _PASSING:
                    raise
            except (AdminDisconnectedError, AdminTimeoutError):
                pass
            self.count += 1
            await self.sleep(longest * (0.5 + self._chance.random() / 2))
        return await attempt()


async def side_by_side(count: int, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run ``count`` instances of a coroutine in parallel; the first error cancels all."""
    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(count):
                tasks.create_task(work())
    except ExceptionGroup as group:
        raise group.exceptions[0] from None


@contextmanager
def admin_errors(what: str, where: str = "the broker") -> Iterator[None]:
    """Convert errors of the admin client to LoadgenError, with what was attempted and where.

    Raises:
        LoadgenError: The admin client failed.
    """
    try:
        yield
    except AdminError as error:
        said = str(error)
        if isinstance(error, AdminRefusedError):
            said = f"{what} at {where} was refused with HTTP {error.status}: {error.reason}"
        elif isinstance(error, AdminTimeoutError):
            said = f"{what} took too long; is the server busy?"
        elif isinstance(error, AdminUnreachableError):
            said = f"{error}; is the server running?"
        raise LoadgenError(said) from error
