"""A listener to database notifications, and tasks that fetch the changes it missed.

The listener reconnects whenever its connection is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

from broker.stores.changes import StoreError
from broker.stores.postgresql.connections import FAILURES
from limiter.backoff import Backoff
from limiter.clock import clock_sleep, deadline
from limiter.tasks import ended

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from broker.stores.postgresql.connections import Connection
    from limiter.clock import Clock

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 10.0
"""Interval between checks of a silent connection."""
ANSWER_SECONDS = 5.0
"""Time limit of a check."""
LONGEST_RETRY_SECONDS = 5.0
"""Longest delay between two attempts to connect."""


class NotificationListener:
    """Receives database notifications, and reconnects whenever its connection is lost.

    Notifications sent without a connection are lost: ``connected_again`` is called after each
    reconnection and must look for changes.

    Args:
        connect: Opens a separate connection, or raises StoreError.
        channels: Functions by channel, called with the payload of each notification.
        connected_again: Called after each reconnection.
        clock: For timeouts and delays.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Connection]],
        channels: Mapping[str, Callable[[str], None]],
        connected_again: Callable[[], None],
        clock: Clock,
    ) -> None:
        self._connect = connect
        self._channels = channels
        self._connected_again = connected_again
        self._clock = clock
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        """True while the listener has a database connection."""
        return self._connection is not None

    async def open(self) -> None:
        """Connect to the database, and reconnect from now on when the connection is lost.

        Raises:
            StoreError: The database is unreachable.
        """
        await self._listen()
        self._task = asyncio.get_running_loop().create_task(self._keep())

    async def close(self) -> None:
        """Stop listening for notifications, and close the connection."""
        await ended(self._task)
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def _listen(self) -> None:
        connection = await self._connect()
        try:
            for channel, callback in self._channels.items():
                await connection.add_listener(channel, _receiver(callback))
        except BaseException:
            connection.terminate()
            raise
        self._connection = connection

    async def _keep(self) -> None:
        while self._connection is not None:
            await self._until_lost(self._connection)
            logger.warning("the connection to the topics' database is lost; connecting again")
            self._connection.terminate()
            self._connection = None
            await self._reconnect()
            logger.info("connected to the topics' database again")
            self._connected_again()

    async def _reconnect(self) -> None:
        backoff = Backoff(most_seconds=LONGEST_RETRY_SECONDS)
        while True:
            with contextlib.suppress(StoreError, *FAILURES):
                return await self._listen()
            await clock_sleep(self._clock, backoff.next())

    async def _until_lost(self, connection: Connection) -> None:
        lost = asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        while not (connection.is_closed() or lost.is_set()):
            with contextlib.suppress(TimeoutError):
                async with deadline(self._clock, HEARTBEAT_SECONDS):
                    await lost.wait()
                    return
            try:
                async with deadline(self._clock, ANSWER_SECONDS):
                    await connection.execute("SELECT 1")
            except FAILURES:
                return


def _receiver(callback: Callable[[str], None]) -> Callable[[Connection, int, str, str], None]:
    return lambda _connection, _process, _channel, payload: callback(payload)


KeyT = TypeVar("KeyT", bound=Hashable)


class ResyncTasks(Generic[KeyT]):
    """Tasks that bring out-of-date values up to date: at most one task for each key.

    A request made during a running attempt is followed by another attempt.

    Args:
        resync: Brings one key up to date, or raises StoreError.
        clock: Time source.
    """

    def __init__(self, resync: Callable[[KeyT], Awaitable[None]], clock: Clock) -> None:
        self._resync = resync
        self._clock = clock
        self._tasks: dict[KeyT, asyncio.Task[None]] = {}
        self._requested: set[KeyT] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def request(self, key: KeyT) -> None:
        """Start to bring a key up to date, again if an attempt is running."""
        self._requested.add(key)
        if key not in self._tasks:
            work = self._run(key)
            self._tasks[key] = asyncio.get_running_loop().create_task(work)

    async def close(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, key: KeyT) -> None:
        backoff = Backoff(most_seconds=LONGEST_RETRY_SECONDS)
        try:
            while key in self._requested:
                self._requested.discard(key)
                try:
                    await self._resync(key)
                except StoreError:
                    self._requested.add(key)
                    await clock_sleep(self._clock, backoff.next())
                except Exception:
                    # Without a new request the key would stay out of date.
                    logger.exception("catching up with %s failed; it is tried again", key)
                    self._requested.add(key)
                    await clock_sleep(self._clock, backoff.next())
        finally:
            del self._tasks[key]
