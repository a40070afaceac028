"""A topic list watch: the client's side of WATCH_TOPIC_LIST on one connection at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.exceptions import server_response_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.connection.cnx import ClientCnx

_NOBODY_ASKED = 2**64 - 1
"""A request id whose answer nobody waits for."""


class TopicListWatch:
    """Watches a namespace's topics that match a pattern; an AttachedWatch.

    Args:
        watcher_id: A number that no other watch of the client has.
        namespace: ``tenant/namespace``.
        on_update: Told of topics that came and went, in order, behind ``open``.
        on_lost: Told that the connection is gone.

    Attributes:
        cnx: The connection that serves it; None while none does.
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
        """Ask for the watch, or once more for its list; ``opened`` follows when that is applied.

        Raises:
            ServerResponseError: The broker refused; NotAllowedError if it offers no watches.
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

        # Before the answer is read here, updates may have come behind it.
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
        """Hand over what came behind the answer, and from now on what comes."""
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
        """End the watch, if there is one; nobody waits for the answer."""
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
