"""Calls of a listing plug-in: bounded in time, results checked, a failure costs one request."""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import TYPE_CHECKING

from broker.configuration.plugin_keys import CLASS_KEY
from broker.plugins.result import UnusableAnswerError, listing_of_names
from broker.topic_lists.listing import TopicListing
from limiter.clock import Clock, LoopClock, deadline
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
"""Most calls given up that still run: at that many no more are made until some end."""


class ResourcesError(Exception):
    """A plug-in that did not answer a request, or with nonsense; one sentence that names it."""


class _NotAwaitable:
    """The value that a plug-in returned where a coroutine was expected."""

    def __init__(self, value: object) -> None:
        self._type = type(value).__name__

    def __str__(self) -> str:
        return self._type


class ResourceCalls:
    """The calls of one plug-in, each bounded in time.

    Args:
        resources: The plug-in.
        name: pulsarResourcesExtendedClassName.
        timeout_seconds: Time limit of a call.
        clock: The source of time.

    Attributes:
        under_way: Calls that somebody waits for.
        failures_total: Calls that raised, took too long, or answered nonsense.
    """

    def __init__(
        self,
        resources: PulsarResourcesExtended,
        name: str,
        timeout_seconds: float,
        clock: Clock | None = None,
    ) -> None:
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
        """Calls that were given up and still run."""
        return sum(not call.done() for call in self._given_up)

    async def list_topics(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str]
    ) -> TopicListing:
        """Return the plug-in's listing.

        Raises:
            ResourcesError: It raised, took too long, or answered something that is no list of
                topics of this namespace and mode.
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
            return await listing_of_names(answer, namespace, mode, self._steps)
        except UnusableAnswerError as error:
            raise self._failed(f"answered {error}") from None
        except Exception as error:
            # A list of its own making may do anything when it is looked at.
            raise self._failed(f"answered what cannot be read: {told(error)}", error) from error

    async def _answer(
        self, namespace: NamespaceName, mode: Mode, properties: dict[str, str]
    ) -> object:
        await self._refuse_if_stuck()
        # A task of its own: whatever it does with a cancellation, nobody waits for it longer.
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
            await asyncio.sleep(0)  # Those that were given up just now end in this turn.
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
            call.exception()  # nobody waits for it any more

    def _failed(self, what: str, error: BaseException | None = None) -> ResourcesError:
        """Count a failure; the first of each kind is logged with its stack."""
        self.failures_total += 1
        kind = type(error).__name__ if error is not None else what[:20]
        if kind not in self._logged and len(self._logged) < MAX_OVERDUE_CALLS:
            self._logged.add(kind)
            logger.warning("%s %s", self._name, what, exc_info=error)
        return ResourcesError(f"{self._name} {what}")
