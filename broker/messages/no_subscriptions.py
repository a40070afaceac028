"""The subscriptions of a topic that nobody can subscribe to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import proto.PulsarApi_pb2 as pb
from broker.messages.position import LATEST, Position
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.messages.entry import Entry
    from broker.messages.topic import Topic, TopicSubscription


class NoSubscriptions:
    """No subscriptions, ever."""

    consumer_count = 0

    def __init__(self, topic: Topic) -> None:
        self._topic = topic

    async def open(self, _: pb.CommandSubscribe) -> NoReturn:
        """Nobody can subscribe yet."""
        raise RequestError(pb.NotAllowedError, "non-persistent topics have no consumers yet")

    def __iter__(self) -> Iterator[TopicSubscription]:
        return iter(())

    def __len__(self) -> int:
        return 0

    @property
    def slowest(self) -> Position:
        """Behind everything: nobody needs an entry."""
        return LATEST

    def publish(self, entry: Entry) -> None:
        """Nobody hears it."""

    def entries_added(self) -> None:
        """Nobody is told."""

    def close_consumers(self) -> None:
        """There are none."""

    def terminated(self) -> None:
        """Nobody is told."""

    def save(self) -> None:
        """There is nothing to keep."""

    def policies_changed(self) -> None:
        """Nothing depends on policies."""

    def clear_backlogs(self) -> None:
        """There are none."""
