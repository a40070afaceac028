"""The attachment of a producer or consumer to its broker, renewed after each lost connection."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from client.exceptions import AlreadyClosed, NotConnected, PulsarException
from client.patience import attachment_may_pass, is_refusal
from limiter.backoff import Backoff
from limiter.clock import clock_sleep

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.connection.cnx import ClientCnx
    from client.pulsar_client import PulsarClient

logger = logging.getLogger(__name__)

REOPEN_SECONDS = 0.1
"""Delay from the broker's CLOSE_PRODUCER or CLOSE_CONSUMER to the next lookup, in seconds."""


class Attach(Protocol):
    """Interface (typing Protocol) of a function that attaches a producer or consumer."""

    async def __call__(self, cnx: ClientCnx) -> None:
        """Send PRODUCER or SUBSCRIBE on a connection, and then the pending messages or commands.

        Called again after each lost connection. If it returns, the producer or consumer is
        registered in ``cnx.attached``; if it raises, it is not.

        Raises:
            PulsarException: Attaching failed; the handler decides on a retry.
        """


class ConnectionHandler:
    """A loop that looks up and attaches to a topic's broker, again after each lost connection.

    Args:
        client: Client that looks up brokers and connects to them.
        topic: Full name of the topic.
        attach: Function that sends PRODUCER or SUBSCRIBE.
        final: Errors after which attaching is not retried, such as TopicTerminated for a producer.
            All other errors are retried without limit, until the client ends.
        on_given_up: Function called with the error that ended the retries.
        backoff: Delays between attempts.

    Attributes:
        cnx: The current connection, or None.
        reconnections: Number of reconnections.

    Source: upstream ConnectionHandler.
    """

    def __init__(
        self,
        client: PulsarClient,
        topic: str,
        attach: Attach,
        *,
        on_given_up: Callable[[PulsarException], None],
        final: tuple[type[PulsarException], ...] = (),
        backoff: Backoff | None = None,
    ) -> None:
        self._client = client
        self.topic = topic
        self._attach = attach
        self._final: tuple[type[PulsarException], ...] = (AlreadyClosed, *final)
        self._on_given_up = on_given_up
        self._clock = client.clock
        self._backoff = backoff or Backoff(0.1, 60.0)
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._assigned_url: str | None = None
        self._told: type[PulsarException] | None = None
        self._attaching = self._lost_meanwhile = False
        self.cnx: ClientCnx | None = None
        self.reconnections = 0

    async def open(
        self, retry_seconds: float, *, due: float | None = None, bounds_attempts: bool = True
    ) -> None:
        """Attach the producer or consumer for the first time; retry until the timeout expires.

        Args:
            retry_seconds: The timeout in seconds.
            due: Time at which the timeout ends, if the timeout started before the call.
            bounds_attempts: Whether the timeout also ends a running attempt; False for a producer
                that waits for exclusive access.

        Raises:
            PulsarException: A permanent error of an attempt; only transient errors are retried.
            Timeout: The timeout expired; its cause is the last error.
        """
        self._attaching = True
        try:
            await self._client.patience.until(
                self._attach_once,
                f"{self.topic} could not be attached to",
                retry_seconds,
                attachment_may_pass,
                due=due,
                bounds_attempts=bounds_attempts,
            )
        finally:
            self._attaching = False

    async def _attach_once(self) -> None:
        if self._closed:
            raise AlreadyClosed(f"{self.topic}: the producer or consumer was closed")
        url, self._assigned_url = self._assigned_url, None
        cnx = await (
            self._client.connection_of(self.topic)
            if url is None
            else self._client.connection_by_url(url)
        )
        self._lost_meanwhile = False
        await self._attach(cnx)
        # The attachment may have ended before the task resumed.
        if cnx.closed or self._lost_meanwhile:
            raise NotConnected(f"{cnx.peer} closed the connection, the producer or the consumer")
        self.cnx = cnx
        self._backoff.reset()

    def lost(self) -> None:
        """Attach the producer or consumer again after its connection was lost."""
        self.cnx = None
        self._attach_again(self._backoff.next())

    def closed_by_broker(self, assigned_url: str | None) -> None:
        """Attach the producer or consumer again after the broker closed it.

        Args:
            assigned_url: The broker that serves the topic next, contacted immediately. If None, the
                topic is looked up after a short delay.
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
            if delay:
                await clock_sleep(self._clock, delay)
            while not self._closed:
                try:
                    await self._attach_once()
                except self._final as error:
                    self._on_given_up(error)
                    return
                except Exception as error:  # noqa: BLE001 - the only retry loop
                    self._tell(error)
                    await self._client.patience.delay(self._backoff.next(), error)
                else:
                    self._told = None
                    self.reconnections += 1
                    return
        finally:
            self._attaching, self._task = False, None

    def _tell(self, error: Exception) -> None:
        """Log why attaching the producer or consumer failed.

        Each kind of refusal is logged once as a warning.
        """
        text = "%s: attaching failed, and is tried again: %s"
        if not isinstance(error, PulsarException):
            logger.error(text, self.topic, error, exc_info=error)
        elif type(error) is self._told or (attachment_may_pass(error) and not is_refusal(error)):
            logger.info(text, self.topic, error)
        else:
            logger.warning(text, self.topic, error)
            self._told = type(error)

    async def close(self) -> None:
        """Stop attaching, and wait for the running attempt to end; further calls do nothing."""
        if (task := self.stop()) is not None:
            await asyncio.wait([task])

    def stop(self) -> asyncio.Task[None] | None:
        """Stop attaching; return the cancelled task of a running attempt, or None."""
        self._closed = True
        task, self.cnx = self._task, None
        if task is None or task is asyncio.current_task():
            return None
        task.cancel()
        return task
