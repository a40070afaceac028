"""Keeps a producer or consumer attached to the broker that serves its topic."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol, TypeVar

import client.exceptions as named
from client.exceptions import (
    AlreadyClosed,
    ConnectError,
    NotConnected,
    PulsarException,
    ServerResponseError,
    Timeout,
)
from limiter.backoff import Backoff
from limiter.clock import clock_sleep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from client.connection.cnx import ClientCnx
    from client.pulsar_client import PulsarClient
    from limiter.clock import Clock

logger = logging.getLogger(__name__)
T = TypeVar("T")

REOPEN_SECONDS = 0.1
"""Seconds from a broker's CLOSE_PRODUCER or CLOSE_CONSUMER until the topic is looked up anew."""


class Attach(Protocol):
    """The producer's or consumer's part in attaching to a topic."""

    async def __call__(self, cnx: ClientCnx) -> None:
        """Send PRODUCER or SUBSCRIBE on a connection, and go on with what was under way.

        Called again after each loss. On return the connection serves the caller, whose id is in
        ``cnx.attached``; on an error it is not.

        Raises:
            PulsarException: It failed; whether it is tried again the handler decides.
        """


class ConnectionHandler:
    """Looks a topic up, connects, attaches, and does so again whenever the attachment is lost.

    Args:
        client: Looks up and connects.
        topic: Full name.
        attach: Sends PRODUCER or SUBSCRIBE.
        gives_up: Whether an error of a later attachment is final, as TopicTerminated for a
            producer; then ``on_given_up`` is called with it.
        on_given_up: Told that there will be no further attachment.
        backoff: How long to wait between attempts.

    Attributes:
        cnx: The connection it is attached to; None while it is not.
        reconnections: How often it was attached again.

    Source: upstream ConnectionHandler.
    """

    def __init__(
        self,
        client: PulsarClient,
        topic: str,
        attach: Attach,
        *,
        gives_up: Callable[[PulsarException], bool],
        on_given_up: Callable[[PulsarException], None],
        backoff: Backoff | None = None,
    ) -> None:
        self._client = client
        self.topic = topic
        self._attach = attach
        self._gives_up = gives_up
        self._on_given_up = on_given_up
        self._clock = client.clock
        self._backoff = backoff or Backoff(0.1, 60.0)
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._assigned_url: str | None = None
        self._attaching = self._lost_meanwhile = False
        self.cnx: ClientCnx | None = None
        self.reconnections = 0

    async def open(self, retry_seconds: float) -> None:
        """Attach for the first time; try again after errors that may pass, until time is up.

        Raises:
            PulsarException: The error of an attempt that will not pass.
            Timeout: Time was up; its cause is the last error.
        """
        self._attaching = True
        try:
            await try_until(
                self._attach_once,
                f"{self.topic} could not be attached to",
                self._clock,
                retry_seconds,
                self._backoff,
            )
        finally:
            self._attaching = False

    async def _attach_once(self) -> None:
        if self._closed:
            raise AlreadyClosed(f"{self.topic}: it was closed")
        url, self._assigned_url = self._assigned_url, None
        cnx = await (
            self._client.connection_of(self.topic)
            if url is None
            else self._client.connection_by_url(url)
        )
        self._lost_meanwhile = False
        await self._attach(cnx)
        # The answer came, and an end behind it, before this task could go on.
        if cnx.closed or self._lost_meanwhile:
            raise NotConnected(f"{cnx.peer} closed the connection, or what it served on it")
        self.cnx = cnx
        self._backoff.reset()

    def lost(self) -> None:
        """Attach again: the connection is gone."""
        self.cnx = None
        self._attach_again(self._backoff.next())

    def closed_by_broker(self, assigned_url: str | None) -> None:
        """Attach again: the broker closed the producer or consumer.

        Args:
            assigned_url: Where it is to go at once; None: look up, a moment later.
        """
        self.cnx, self._assigned_url = None, assigned_url
        self._attach_again(0.0 if assigned_url else REOPEN_SECONDS)

    def _attach_again(self, delay: float) -> None:
        self._lost_meanwhile = True
        if not self._closed and not self._attaching:
            self._attaching = True
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._until_attached(delay))

    async def _until_attached(self, delay: float) -> None:
        try:
            while not self._closed:
                if delay:
                    await clock_sleep(self._clock, delay)
                try:
                    await self._attach_once()
                except PulsarException as error:
                    if self._gives_up(error):
                        self._on_given_up(error)
                        return
                    logger.info("%s: attaching failed, and is tried again: %s", self.topic, error)
                    delay = self._backoff.next()
                except Exception:  # whatever it is, nobody else would ever attach again
                    logger.exception("%s: attaching failed, and is tried again", self.topic)
                    delay = self._backoff.next()
                else:
                    self.reconnections += 1
                    return
        finally:
            self._attaching, self._task = False, None

    async def close(self) -> None:
        """Attach no more; once more is harmless."""
        if (task := self.stop()) is not None:
            await asyncio.wait([task])

    def stop(self) -> asyncio.Task[None] | None:
        """Attach no more; return what was under way and was cancelled, if anything was."""
        self._closed = True
        task, self.cnx = self._task, None
        if task is None or task is asyncio.current_task():
            return None
        task.cancel()
        return task


async def try_until(
    attempt: Callable[[], Awaitable[T]],
    failure: str,
    clock: Clock,
    retry_seconds: float,
    backoff: Backoff,
) -> T:
    """Return what an attempt returns; try again after errors that may pass, until time is up.

    Args:
        attempt: Called for each.
        failure: What has not come about when time is up.
        clock: Where time comes from.
        retry_seconds: No attempt begins later.
        backoff: How long to wait between attempts.

    Raises:
        PulsarException: The error of an attempt that will not pass.
        Timeout: Time was up; its cause is the last error.
    """
    due = clock.now() + retry_seconds
    while True:
        try:
            return await attempt()
        except PulsarException as error:
            delay = backoff.next()
            if not may_pass(error):
                raise
            if clock.now() + delay >= due:
                raise Timeout(f"{failure} in {retry_seconds:g} s: {error}") from error
        await clock_sleep(clock, delay)


def may_pass(error: PulsarException) -> bool:
    """Tell whether an error of attaching may be gone at the next attempt.

    Source: upstream PulsarClientException.isRetriableError.
    """
    if isinstance(error, ServerResponseError):
        return not isinstance(error, _FINAL)
    return isinstance(error, ConnectError | NotConnected | Timeout)


_FINAL = (
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
    named.TooManyLookupRequestException,
    named.TopicNotFound,
    named.TopicTerminated,
)
