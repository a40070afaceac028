"""Calls of an operator's listing plug-in, with a time limit and a check of each answer.

A failed call affects only the request for which it was made.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import TYPE_CHECKING

from broker.columns import EXTRA
from broker.configuration.plugin_keys import CLASS_KEY
from broker.plugins.errors import UnusableAnswerError
from broker.topic_lists.sequence import TopicListing
from limiter.clock import Clock, LoopClock, deadline
from limiter.extras import SERVERS, extra
from server.configuration.loaded_class import told
from server.tasks.cooperative import Steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.plugins.plugin import PulsarResourcesExtended
    from broker.stores.store import Mode
    from proto.names import NamespaceName

logger = logging.getLogger(__name__)

TIMEOUT_KEY = "floodgateResourcesTimeoutMs"
MAX_OVERDUE_CALLS = 100
"""Most abandoned calls still running; above, requests fail without a call."""


class ResourcesError(Exception):
    """A plug-in did not answer, or answered something unusable; the text names the plug-in."""


class _NotAwaitable:
    """A wrapper of a value that a plug-in returned instead of an awaitable."""

    def __init__(self, value: object) -> None:
        self._type = type(value).__name__

    def __str__(self) -> str:
        return self._type


class ResourceCalls:
    """Calls of an operator's listing plug-in, each with a time limit.

    Attributes:
        under_way: Calls in flight.
        failures_total: Calls that raised, timed out, or returned an unusable answer.
    """

    def __init__(
        self,
        resources: PulsarResourcesExtended,
        name: str,
        timeout_seconds: float,
        clock: Clock | None = None,
    ) -> None:
        with extra(EXTRA, SERVERS, f"{CLASS_KEY}={name}"):
            from broker.plugins.result import listing_of_names
        self._listing_of_names = listing_of_names
        self._resources = resources
        self._name = f"{CLASS_KEY}={name}"
        self._timeout_seconds = timeout_seconds
        self._clock: Clock = clock or LoopClock()
        self._given_up: set[asyncio.Task[object]] = set()
        self._logged: set[str] = set()
        self._steps = Steps()
        self.under_way = 0
        self.failures_total = 0

    @property
    def overdue(self) -> int:
        """Number of calls of the plug-in that still run although their time limit has passed."""
        return sum(not call.done() for call in self._given_up)

    async def list_topics(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str]
    ) -> TopicListing:
        """Ask the plug-in for a list of topics; check and return its answer.

        Raises:
            ResourcesError: The plug-in raised, timed out, or returned no list of topics of the
                namespace and mode.
        """
        self.under_way += 1
        try:
            answer = await self._answer(namespace, mode, dict(properties))
            return await self._listing(answer, namespace, mode)
        finally:
            self.under_way -= 1

    async def _listing(self, answer: object, namespace: NamespaceName, mode: Mode) -> TopicListing:
        if isinstance(answer, TopicListing):
            return answer
        if isinstance(answer, _NotAwaitable):
            raise self._failed(f"answered with {answer} at once; write it as async def")
        try:
            return await self._listing_of_names(answer, namespace, mode, self._steps)
        except UnusableAnswerError as error:
            raise self._failed(f"answered {error}") from None
        except Exception as error:
            # The plug-in's own list class may raise anything on access.
            raise self._failed(f"answered what cannot be read: {told(error)}", error) from error

    async def _answer(
        self, namespace: NamespaceName, mode: Mode, properties: dict[str, str]
    ) -> object:
        await self._refuse_if_stuck()
        # In a separate task, a call that ignores cancellation delays no request.
        call = asyncio.get_running_loop().create_task(self._call(namespace, mode, properties))
        try:
            async with deadline(self._clock, self._timeout_seconds):
                await asyncio.wait((call,))
        except TimeoutError:
            limit = f"{self._timeout_seconds:g} s ({TIMEOUT_KEY})"
            raise self._failed(f"did not answer within {limit}") from None
        finally:
            self._give_up(call)
        if call.cancelled():
            raise self._failed("was cancelled by itself")
        return call.result()

    async def _call(
        self, namespace: NamespaceName, mode: Mode, properties: dict[str, str]
    ) -> object:
        try:
            answer: object = self._resources.list_topics_of_namespace(namespace, mode, properties)
            return await answer if inspect.isawaitable(answer) else _NotAwaitable(answer)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            raise self._failed(f"failed: {told(error)}", error) from error

    async def _refuse_if_stuck(self) -> None:
        if self.overdue >= MAX_OVERDUE_CALLS:
            await asyncio.sleep(0)  # Calls abandoned just now end in this turn.
        if self.overdue >= MAX_OVERDUE_CALLS:
            raise self._failed(f"is stuck: {self.overdue} calls still run after their time")

    def _give_up(self, call: asyncio.Task[object]) -> None:
        if not call.done():
            self._given_up.add(call)
            call.add_done_callback(self._ended)
            call.cancel()

    def _ended(self, call: asyncio.Task[object]) -> None:
        self._given_up.discard(call)
        if not call.cancelled():
            call.exception()  # no request waits for the call any more

    def _failed(self, what: str, error: BaseException | None = None) -> ResourcesError:
        """Count a failed call and return its error; log the first of each kind and its stack."""
        self.failures_total += 1
        kind = type(error).__name__ if error is not None else what[:20]
        if kind not in self._logged and len(self._logged) < MAX_OVERDUE_CALLS:
            self._logged.add(kind)
            logger.warning("%s %s", self._name, what, exc_info=error)
        return ResourcesError(f"{self._name} {what}")
