"""Topics created without a client: by REST, or as partitions.

A real broker loads a topic created by REST, and deletes the topic when unused. Here the topic is
only a name until the first client; noting the name allows the same deletion. Imported topics are
never deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proto.names import TopicName, namespace_of
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from limiter.clock import Clock
    from proto.names import NamespaceName

MOST_TOPICS = 20_000
"""Most noted topics; the same number of partitioned topics."""


class MadeTopics:
    """Topics created since the broker's start and never loaded.

    Bound: MOST_TOPICS topics, and as many partitioned topics; beyond, the oldest is forgotten and
    never deleted.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unused_since: dict[str, float] = {}
        self._partitioned: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._unused_since) + len(self._partitioned)

    def add(self, name: TopicName) -> None:
        """Note an unused topic."""
        _bounded(self._unused_since)
        self._unused_since[str(name)] = self._clock.now()

    def add_partitioned(self, name: TopicName) -> None:
        """Note a partitioned topic, whose partitions may be deleted after use."""
        _bounded(self._partitioned)
        self._partitioned[str(name)] = None

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, TopicName):
            return False
        return str(name) in self._unused_since or str(name.partitioned_name) in self._partitioned

    def loaded(self, name: TopicName) -> None:
        """Forget a topic now in use."""
        self._unused_since.pop(str(name), None)

    async def deleted(self, name: TopicName) -> None:
        """Forget a deleted topic."""
        self._unused_since.pop(str(name), None)
        self._partitioned.pop(str(name), None)

    def clear(self) -> None:
        """Forget all."""
        self._unused_since.clear()
        self._partitioned.clear()

    async def forget(self, namespaces: Iterable[NamespaceName]) -> None:
        """Forget the topics of deleted namespaces."""
        gone = frozenset(map(str, namespaces))
        for noted in (self._unused_since, self._partitioned):
            async for name in in_turns(tuple(noted)):
                if namespace_of(name) in gone:
                    noted.pop(name, None)

    def unused(self) -> Iterator[tuple[TopicName, float]]:
        """Yield the unused topics, and the clock's time of creation."""
        for name, since in tuple(self._unused_since.items()):
            if name in self._unused_since:
                yield TopicName.parse(name), since


def _bounded(noted: dict[str, float] | dict[str, None]) -> None:
    if len(noted) >= MOST_TOPICS:
        del noted[next(iter(noted))]
