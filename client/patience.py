"""Retries of operations until a timeout, and functions that wait for several tasks."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import client.exceptions as named
from client.connection.errors import TlsError
from client.exceptions import (
    ConnectError,
    NotConnected,
    PulsarException,
    ServerResponseError,
    Timeout,
)
from limiter.backoff import Backoff
from limiter.clock import deadline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable

    from limiter.clock import Clock

T = TypeVar("T")

_FIRST_SECONDS = 0.1
_SHARE = 10
"""Ratio of the timeout to the largest delay, so that the last attempt is late enough."""

_UNREACHED = (ConnectError, NotConnected, Timeout)

_WOKEN_AT_ONCE = 100
"""Maximum number of attempts started in one event-loop iteration, as thousands may wait."""


class Patience:
    """Retries of a client's operations, with delays between the attempts.

    Attempts without a reachable server are retried as soon as any connection of the client opens:
    with thousands waiting for a broker, the first success wakes the others.

    Args:
        clock: The source of time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[asyncio.Future[None], None] = {}

    def connection_opened(self) -> None:
        """Retry now those operations that wait because no server was reachable."""
        self._wake(list(self._waiting))

    def _wake(self, waiting: list[asyncio.Future[None]]) -> None:
        for waiter in waiting[:_WOKEN_AT_ONCE]:
            if not waiter.done():
                waiter.set_result(None)
        if left := waiting[_WOKEN_AT_ONCE:]:
            asyncio.get_running_loop().call_soon(self._wake, left)

    async def delay(
        self, seconds: float, *errors: BaseException, waiter: asyncio.Future[None] | None = None
    ) -> None:
        """Wait until the next attempt of an operation, or until ``waiter`` is done.

        If no server was reachable, the wait also ends when a connection opens.
        """
        waiter = waiter or asyncio.get_running_loop().create_future()
        if any(isinstance(error, _UNREACHED) for error in errors):
            self._waiting[waiter] = None
        try:
            async with deadline(self._clock, seconds):
                await waiter
        except TimeoutError:
            pass
        finally:
            self._waiting.pop(waiter, None)

    async def until(
        self,
        attempt: Callable[[], Awaitable[T]],
        failure: str,
        seconds: float,
        may_pass: Callable[[PulsarException], bool],
        *,
        due: float | None = None,
        bounds_attempts: bool = True,
    ) -> T:
        """Call ``attempt`` and return its result; retry after transient errors.

        Args:
            attempt: Coroutine function called for each attempt.
            failure: Text of the Timeout error.
            seconds: The timeout in seconds.
            may_pass: Function that returns True for a transient error, after which to retry.
            due: Time at which the timeout ends, if the timeout started before the call.
            bounds_attempts: Whether the deadline cancels a running attempt.

        Raises:
            PulsarException: A permanent error of an attempt, or a refusal at the deadline.
            Timeout: The timeout expired; its cause is the last error.
        """
        backoff = Backoff(_FIRST_SECONDS, max(_FIRST_SECONDS, seconds / _SHARE))
        due = self._clock.now() + seconds if due is None else due
        last: BaseException | None = None
        while (left := due - self._clock.now()) > 0:
            try:
                async with deadline(self._clock, left if bounds_attempts else None):
                    return await attempt()
            except PulsarException as error:
                if not may_pass(error):
                    raise
                last = error
            except TimeoutError:
                break
            left = due - self._clock.now()
            await self.delay(min(backoff.next(), left), last)
        if last is not None and is_refusal(last):
            raise last
        raise Timeout(f"{failure} in {seconds:g} s: {last or 'no answer came'}") from last


async def in_time(clock: Clock, due: float, part: Awaitable[object]) -> None:
    """Await ``part``, and cancel it if it has not ended at the time ``due``."""
    with suppress(TimeoutError):
        async with deadline(clock, due - clock.now()):
            await part


def attachment_may_pass(error: PulsarException) -> bool:
    """Return True if an error at a first attachment is transient, so that a retry may succeed.

    A broker refuses an unknown client at the handshake, and a client without permission in the
    response to its command. AuthenticationError of a command means expired credentials,
    AuthorizationError at the handshake concerns a proxy's role: both are transient.

    Source: upstream PulsarClientException.isRetriableError, which also gives up at TooManyRequests.
    """
    if isinstance(error, ServerResponseError):
        if isinstance(error, named.AuthenticationError | named.AuthorizationError):
            return error.at_handshake is isinstance(error, named.AuthorizationError)
        return not is_refusal(error)
    if isinstance(error, named.TooManyLookupRequestException):
        return True
    return isinstance(error, _UNREACHED) and not isinstance(error, TlsError)


def blip(error: PulsarException) -> bool:
    """Return True if a request failed only because its topic is moving to another broker."""
    return isinstance(error, ConnectError | NotConnected | named.ServiceUnitNotReady)


def of_server(error: PulsarException) -> bool:
    """Return True if a server refused a consumer's request, or if the topic is moving."""
    return isinstance(error, ServerResponseError) or blip(error)


def is_refusal(error: BaseException) -> bool:
    """Return True if an error is a specific refusal that applications may want to catch."""
    return isinstance(error, _REFUSALS)


_REFUSALS = (
    named.AuthenticationError,
    named.AuthorizationError,
    named.ConsumerAssignError,
    named.ConsumerBusy,
    named.IncompatibleSchema,
    named.InvalidTopicName,
    named.NotAllowedError,
    named.ProducerBlockedQuotaExceededError,
    named.ProducerBlockedQuotaExceededException,
    named.ProducerBusy,
    named.ProducerFenced,
    named.SubscriptionNotFound,
    named.TopicNotFound,
    named.TopicTerminated,
)


async def all_of(parts: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently until all have ended; then raise the first error.

    Cancellation cancels all of the coroutines, and waits for their ends.
    """
    coroutines = list(parts)
    if len(coroutines) == 1:
        return [await coroutines[0]]
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(one) for one in coroutines]
    if not tasks:
        return []
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise
    errors = [task.exception() for task in tasks if not task.cancelled()]
    for error in errors:
        if error is not None:
            raise error
    return [task.result() for task in tasks if not task.cancelled()]
