"""A topic list watch: the client's side of WATCH_TOPIC_LIST, on one connection at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.exceptions import server_response_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.connection.cnx import ClientCnx

_NOBODY_ASKED = 2**64 - 1
"""A request id without a waiter."""


class TopicListWatch:
    """A watch of a namespace's topics matching a pattern; an AttachedWatch.

    Args:
        watcher_id: The watch's number, unique in the client.
        namespace: ``tenant/namespace``.
        on_update: Called with added and removed topics, in order, after ``open``.
        on_lost: Called after a lost connection.

    Attributes:
        cnx: The serving connection, or None.
    """

    def __init__(
        self,
        watcher_id: int,
        namespace: str,
        on_update: Callable[[pb.CommandWatchTopicUpdate], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._watcher_id = watcher_id
        self._namespace = namespace
        self._on_update = on_update
        self._on_lost = on_lost
        self._early: list[pb.CommandWatchTopicUpdate] | None = None
        self.cnx: ClientCnx | None = None

    async def open(
        self, cnx: ClientCnx, pattern: str, topics_hash: str | None
    ) -> pb.CommandWatchTopicListSuccess:
        """Request the watch, or again its list; ``opened`` follows after the list was applied.

        Raises:
            ServerResponseError: The broker refused; NotAllowedError if watches are not offered.
            The errors of :meth:`client.connection.cnx.ClientCnx.request`.
        """
        if cnx.server is None or not cnx.server.feature_flags.supports_topic_watchers:
            raise server_response_error(pb.NotAllowedError, f"{cnx.peer} offers no watches")

        def build(request_id: int) -> pb.BaseCommand:
            watch = pb.CommandWatchTopicList(
                request_id=request_id,
                watcher_id=self._watcher_id,
                namespace=self._namespace,
                topics_pattern=pattern,
            )
            if topics_hash is not None:
                watch.topics_hash = topics_hash
            return pb.BaseCommand(type=pb.BaseCommand.WATCH_TOPIC_LIST, watchTopicList=watch)

        # Updates may arrive before the answer is read.
        self._early = []
        cnx.attached.watches[self._watcher_id] = self
        self.cnx = cnx
        try:
            answer = await cnx.request(build)
        except BaseException:
            self._early = None
            self.close()
            raise
        return answer.watchTopicListSuccess

    def opened(self) -> None:
        """Deliver updates received since the answer, and all later updates."""
        early, self._early = self._early, None
        for update in early or ():
            self._on_update(update)

    def update_received(self, update: pb.CommandWatchTopicUpdate) -> None:
        """See AttachedWatch."""
        if self._early is not None:
            self._early.append(update)
        else:
            self._on_update(update)

    def connection_lost(self) -> None:
        """See AttachedWatch."""
        self.cnx = self._early = None
        self._on_lost()

    def close(self) -> None:
        """Close the watch, if open, without waiting for the answer."""
        cnx, self.cnx = self.cnx, None
        if cnx is None:
            return
        cnx.attached.watches.pop(self._watcher_id, None)
        if not cnx.closed:
            close = pb.CommandWatchTopicListClose(
                request_id=_NOBODY_ASKED, watcher_id=self._watcher_id
            )
            kind = pb.BaseCommand.WATCH_TOPIC_LIST_CLOSE
            cnx.send(pb.BaseCommand(type=kind, watchTopicListClose=close))
