"""Tries again what failed and may pass, until time is up."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

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
    from collections.abc import Awaitable, Callable

    from limiter.clock import Clock

T = TypeVar("T")

_FIRST_SECONDS = 0.1
_SHARE = 10
"""A delay is at most this part of the time that there is, so that the last attempt is not early."""

_UNREACHED = (ConnectError, NotConnected, Timeout)

_WOKEN_AT_ONCE = 100
"""Attempts that begin in one turn of the loop: there may be thousands."""


class Patience:
    """Waits between attempts of one client.

    An attempt that reached no server is repeated at once when any connection of the client opens:
    of thousands that wait for one broker, the first to reach it wakes the others.

    Args:
        clock: Where time comes from.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[asyncio.Future[None], None] = {}

    def connection_opened(self) -> None:
        """Wake those who reached no server."""
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
        """Wait before the next attempt, or for ``waiter``; if no server was reached, for one."""
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
        """Return what an attempt returns, and try again after errors that may pass.

        Args:
            attempt: Called for each.
            failure: What has not come about when time is up.
            seconds: When it is.
            may_pass: Whether an error may be gone at the next attempt.
            due: When that is, if the time began to run before.
            bounds_attempts: Whether an attempt that is under way then is cancelled.

        Raises:
            PulsarException: The error of an attempt that will not pass, or a refusal that did not.
            Timeout: Time was up; its cause is the last error.
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
    """Wait for something until ``due``; what has begun and not ended then is cancelled."""
    with suppress(TimeoutError):
        async with deadline(clock, due - clock.now()):
            await part


def attachment_may_pass(error: PulsarException) -> bool:
    """Tell whether an error of a first attachment may be gone at the next attempt.

    Who is not known to the server is told so at the handshake, and who may not do something by the
    answer to that command. AuthenticationError of a command means that credentials have run out
    since, and AuthorizationError at the handshake is about a proxy's role: both may pass.

    Source: upstream PulsarClientException.isRetriableError, which gives up at TooManyRequests, too.
    """
    if isinstance(error, ServerResponseError):
        if isinstance(error, named.AuthenticationError | named.AuthorizationError):
            return error.at_handshake is isinstance(error, named.AuthorizationError)
        return not is_refusal(error)
    if isinstance(error, named.TooManyLookupRequestException):
        return True
    return isinstance(error, _UNREACHED) and not isinstance(error, TlsError)


def blip(error: PulsarException) -> bool:
    """Tell whether a request failed because its topic is on its way to another connection."""
    return isinstance(error, ConnectError | NotConnected | named.ServiceUnitNotReady)


def of_server(error: PulsarException) -> bool:
    """Tell whether an attached consumer's question was refused, or its topic is on its way."""
    return isinstance(error, ServerResponseError) or blip(error)


def is_refusal(error: BaseException) -> bool:
    """Tell whether an error has a name by which a program may want to catch it."""
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
