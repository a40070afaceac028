"""One watcher: a connection with one topic list watch, and the names it was told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import proto.PulsarApi_pb2 as pb
from limiter.clock import deadline
from loadgen.clients.answers import parse_answer
from loadgen.clients.connection import ClientConnection, request_frame
from loadgen.errors import LoadgenError
from loadgen.scenarios.watch_churn.watched_names import WatchedNames
from proto.frames import encode_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.clients.answer_stream import Listing
    from loadgen.clients.context import ClientContext
    from loadgen.scenario import ClientPlan
    from loadgen.scenarios.watch_churn.scenario import WatchChurnScenario

T = TypeVar("T")
WATCHER_ID = 1
_OPEN, _LIST = 1, 2
"""Request ids."""


def all_topics(namespace: str) -> str:
    """Return the pattern of all topics of a namespace; a proxy is asked for its broker, too."""
    return f"persistent://{namespace}/.*"


def watch_frame(namespace: str, pattern: str) -> bytes:
    """Return a WATCH_TOPIC_LIST."""
    asked = pb.CommandWatchTopicList(
        request_id=_OPEN,
        watcher_id=WATCHER_ID,
        namespace=namespace,
        topics_pattern=pattern,
    )
    return encode_command(
        pb.BaseCommand(type=pb.BaseCommand.WATCH_TOPIC_LIST, watchTopicList=asked)
    )


class Watcher(ClientConnection):
    """A watcher that is never connected again; its mutable state is what it was told.

    Args:
        shared: First answers by their hash: watchers of the same names keep them once.
        on_news: Called after each update, and when the connection is lost.
    """

    def __init__(
        self,
        plan: ClientPlan,
        context: ClientContext[WatchChurnScenario],
        shared: dict[str, frozenset[str]],
        on_news: Callable[[], None],
    ) -> None:
        super().__init__(plan, context)
        self.lost: str | None = None
        self.names = WatchedNames(frozenset(), "")
        self._shared = shared
        self._on_news = on_news
        self._answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._listing: asyncio.Future[frozenset[str]] | None = None

    async def open(self) -> None:
        """Open the watch.

        Raises:
            LoadgenError: The server refuses it, or does not answer.
        """
        namespace = self.plan.namespace.name
        pattern = self.context.scenario.pattern or all_topics(namespace)
        self.send(watch_frame(namespace, pattern))
        failure = await self._within(self._answer)
        if failure:
            raise LoadgenError(f"{namespace} cannot be watched: {failure}")

    async def list_names(self) -> frozenset[str]:
        """Return the names of its namespace as a listing has them.

        Raises:
            LoadgenError: There is no answer.
        """
        self._listing = asyncio.get_running_loop().create_future()
        self.send(request_frame(self.plan.namespace.name, self.context.scenario.pattern, _LIST))
        return await self._within(self._listing)

    def leave(self) -> None:
        """Close the connection; it is not lost then."""
        self._closed = True
        self.close()

    async def _within(self, answer: asyncio.Future[T]) -> T:
        seconds = self.context.scenario.timeout_seconds
        try:
            async with deadline(self.context.clock, seconds):
                return await answer
        except TimeoutError:
            namespace = self.plan.namespace.name
            raise LoadgenError(f"no answer about {namespace} within {seconds:g} s") from None

    def command_received(self, command: pb.BaseCommand) -> None:
        """Take the watch's first answer, or an update."""
        if command.type == pb.BaseCommand.WATCH_TOPIC_LIST_SUCCESS:
            success = command.watchTopicListSuccess
            names = frozenset(success.topic)
            shared = self._shared.setdefault(success.topics_hash, names)
            self.names = WatchedNames(shared if shared == names else names, success.topics_hash)
            self._end_opening("")
        elif command.type == pb.BaseCommand.WATCH_TOPIC_UPDATE:
            update = command.watchTopicUpdate
            self.names.update(
                update.new_topics,
                update.deleted_topics,
                update.topics_hash,
                self.context.time.seconds(),
            )
            self._on_news()

    def listing_received(self, listing: Listing) -> None:
        """Take the listing at the end."""
        if self._listing is not None and not self._listing.done():
            self._listing.set_result(frozenset(parse_answer(listing.body.data()).topics))

    def refusal_received(self, request_id: int, reason: str) -> None:
        """Take a refusal of the watch, or of the listing."""
        del request_id
        self._fail(reason)

    def bytes_received(self, nbytes: int) -> None:
        """Count bytes that were read."""
        self.context.counters.bytes += nbytes

    def ended(self, reason: str) -> None:
        """Note that it is told nothing more."""
        self.lost = reason
        self._fail(reason)
        self._on_news()

    def _fail(self, reason: str) -> None:
        self._end_opening(reason)
        if self._listing is not None and not self._listing.done():
            self._listing.set_exception(
                LoadgenError(f"{self.plan.namespace.name} cannot be listed: {reason}")
            )

    def _end_opening(self, reason: str) -> None:
        if not self._answer.done():
            self._answer.set_result(reason)
