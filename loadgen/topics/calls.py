"""Calls of a server's admin REST API: retried, in parallel, with errors as sentences."""

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
    """Repeats failed calls of the REST API, with random waits that become longer.

    Calls are repeated after status 429, after the errors of a busy or restarting server (500 and
    above, except 501), after timeouts and after broken connections. Other refusals are final, and
    so is a connection that cannot be made.

    Attributes:
        waits_seconds: The longest wait before each retry; the shortest wait is half as long.
        sleep: Waits for a number of seconds; tests replace it.
        count: The number of retries so far.
    """

    waits_seconds: Sequence[float] = (0.2, 0.5, 1, 2, 5, 10)
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    count: int = 0
    _chance: random.Random = field(default_factory=random.Random, repr=False)

    async def call(self, attempt: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Return the result of a REST call, repeating it while the server is busy.

        Raises:
            AdminError: The server refuses the call for good, or still after all retries.
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
    """Run ``count`` instances of a coroutine in parallel; the first error cancels all of them."""
    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(count):
                tasks.create_task(work())
    except ExceptionGroup as group:
        raise group.exceptions[0] from None


@contextmanager
def admin_errors(what: str, where: str = "the broker") -> Iterator[None]:
    """Convert errors of the admin client to LoadgenError, naming what was attempted and where.

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
