"""A broker's session: a lease in the database, which the broker renews before it expires.

A renewal counts from the moment before its request, and for less than the database grants: the
broker's lease ends earlier locally than for peers, regardless of the machines' clocks.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from typing import TYPE_CHECKING

from broker.ownership.tables import CHANNEL, Registration, leave, make_tables, register, renew
from broker.stores.changes import StoreError
from limiter.backoff import Backoff
from limiter.clock import clock_sleep, deadline
from limiter.tasks import ended

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.stores.postgresql.connections import Connection
    from limiter.clock import Clock, TimerHandle

logger = logging.getLogger(__name__)

RENEWALS = 3
"""Renewals of a lease before it would expire; two may fail."""
SAFE_PART = 0.9
"""The part of a lease that is used, as clocks may differ in speed by a tenth."""
READY_SECONDS = 5.0
"""Longest wait of a lookup for a new session."""
CLOSE_SECONDS = 5.0
LONGEST_RETRY_SECONDS = 2.0


class BrokerSession:
    """A broker's session in the database; after its expiry a new session replaces it.

    Args:
        connect: Opens a separate connection, or raises StoreError.
        failures: The exceptions of a lost connection.
        lease_seconds: metadataStoreSessionTimeoutMillis.
        clock: For timeouts and delays.
        elapsed: Returns elapsed seconds, including time in which the process was stopped.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Connection]],
        failures: tuple[type[BaseException], ...],
        lease_seconds: float,
        clock: Clock,
        elapsed: Callable[[], float],
    ) -> None:
        self._connect = connect
        self._failures: tuple[type[BaseException], ...] = (*failures, StoreError)
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._elapsed = elapsed
        self._id = ""
        self._last_id = ""
        self._valid_until = 0.0
        self._ready = asyncio.Event()
        self._over = asyncio.Event()
        self._timer: TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self.on_over: Callable[[], object] = lambda: None
        self.on_asked: Callable[[str], object] = lambda _: None
        self.ended_total = 0

    @property
    def id(self) -> str:
        """The id of the broker's session; empty without a session.

        The session may have expired since the last ``notice``.
        """
        return self._id

    def open(self, broker: Registration) -> None:
        """Start to keep a session: register, renew the lease, and register again if it ended."""
        self._task = asyncio.get_running_loop().create_task(self._keep(broker))

    async def ready(self) -> str:
        """Wait until the broker has a valid session; return its id.

        Raises:
            StoreError: No session began in time.
        """
        self.notice()
        try:
            async with deadline(self._clock, READY_SECONDS):
                await self._ready.wait()
        except TimeoutError:
            text = "this broker's lease in the topics' database is over, and cannot be renewed"
            raise StoreError(text) from None
        return self._id

    def notice(self) -> bool:
        """Return True if the session is valid; if its lease expired, end it and all ownership."""
        if self._id and self._elapsed() >= self._valid_until:
            logger.warning("this broker's lease on its bundles is over: it serves them no more")
            self._end()
        return bool(self._id)

    def _end(self) -> None:
        self._last_id, self._id = self._id, ""
        self._ready.clear()
        self._over.set()
        self.ended_total += 1
        self._disarm()
        self.on_over()

    async def close(self) -> None:
        """End the session in the database, so that other brokers can own its bundles at once."""
        await ended(self._task)
        self._disarm()
        own, self._id = self._id, ""
        self._ready.clear()
        if own:
            with contextlib.suppress(*self._failures):
                async with deadline(self._clock, CLOSE_SECONDS):
                    connection = await self._connect()
                    try:
                        await leave(connection, own)
                    finally:
                        connection.terminate()

    # -- renewals -----------------------------------------------------------------------------

    async def _keep(self, broker: Registration) -> None:
        backoff = Backoff(most_seconds=min(LONGEST_RETRY_SECONDS, self._lease_seconds / RENEWALS))
        while True:
            try:
                await self._while_connected(broker, backoff)
            except self._failures as error:
                logger.warning("the lease of this broker's bundles is not renewed: %s", error)
            await clock_sleep(self._clock, backoff.next())

    async def _while_connected(self, broker: Registration, backoff: Backoff) -> None:
        async with deadline(self._clock, self._lease_seconds / RENEWALS):
            connection = await self._connect()
        try:
            await make_tables(connection)
            await connection.add_listener(CHANNEL, self._told)
            while True:
                async with deadline(self._clock, self._lease_seconds / RENEWALS):
                    await self._renewed(connection, broker)
                if self._id:
                    backoff.reset()
                    await self._until_due()
        finally:
            connection.terminate()

    async def _until_due(self) -> None:
        """Wait until the next renewal of the lease is due, or the session has ended."""
        self._over.clear()
        with contextlib.suppress(TimeoutError):
            async with deadline(self._clock, self._lease_seconds / RENEWALS):
                await self._over.wait()

    def _told(self, *notification: object) -> None:
        self.on_asked(str(notification[-1]))

    async def _renewed(self, connection: Connection, broker: Registration) -> None:
        self.notice()
        before = self._elapsed()
        if not self._id:
            new = uuid.uuid4().hex
            await register(connection, new, self._last_id, broker, self._lease_seconds)
            self._begin(new, before)
            return
        current = self._id
        renewed = await renew(connection, current, self._lease_seconds)
        if self._id != current:
            return  # The session ended during the renewal.
        if renewed:
            self._valid(before)
        else:
            # A peer removed the broker: the bundles may have new owners.
            logger.warning("this broker was taken for dead: it serves its bundles no more")
            self._end()

    def _begin(self, new: str, before: float) -> None:
        self._id = new
        self._valid(before)
        if self.notice():
            self._ready.set()

    def _valid(self, before: float) -> None:
        """Extend the local lease, counted from the moment before the renewal was sent."""
        self._valid_until = before + SAFE_PART * self._lease_seconds
        self._disarm()
        left = self._valid_until - self._elapsed()
        self._timer = self._clock.call_at(self._clock.now() + max(0.0, left), self._look)

    def _look(self) -> None:
        """End the session if its lease has expired; otherwise check again in 1 ms.

        The clocks of the timer and of the lease may differ.
        """
        self._timer = None
        if self.notice():
            self._timer = self._clock.call_at(self._clock.now() + 0.001, self._look)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
