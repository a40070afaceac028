"""Topics that were made without a client: by REST, or as partitions.

A real broker loads a topic that REST makes, and deletes it when nobody uses it. Here it is only a
name until a client comes; so it is noted, and deleted in the same way. An imported topic never is.
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
"""Topics that are noted, and partitioned ones."""


class MadeTopics:
    """The topics that were made since this broker started, and were not loaded yet.

    Bound: MOST_TOPICS, and as many partitioned ones; of more the oldest is forgotten, and stays.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unused_since: dict[str, float] = {}
        self._partitioned: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._unused_since) + len(self._partitioned)

    def add(self, name: TopicName) -> None:
        """Note a topic that nobody has used yet."""
        _bounded(self._unused_since)
        self._unused_since[str(name)] = self._clock.now()

    def add_partitioned(self, name: TopicName) -> None:
        """Note a partitioned topic, whose partitions may be deleted once they were used."""
        _bounded(self._partitioned)
        self._partitioned[str(name)] = None

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, TopicName):
            return False
        return str(name) in self._unused_since or str(name.partitioned_name) in self._partitioned

    def loaded(self, name: TopicName) -> None:
        """Forget a topic that is in use now."""
        self._unused_since.pop(str(name), None)

    async def deleted(self, name: TopicName) -> None:
        """Forget a topic that is gone."""
        self._unused_since.pop(str(name), None)
        self._partitioned.pop(str(name), None)

    def clear(self) -> None:
        """Forget all."""
        self._unused_since.clear()
        self._partitioned.clear()

    async def forget(self, namespaces: Iterable[NamespaceName]) -> None:
        """Forget the topics of namespaces that are gone."""
        gone = frozenset(map(str, namespaces))
        for noted in (self._unused_since, self._partitioned):
            async for name in in_turns(tuple(noted)):
                if namespace_of(name) in gone:
                    noted.pop(name, None)

    def unused(self) -> Iterator[tuple[TopicName, float]]:
        """Yield the topics that nobody has used, and the clock's time at which they were made."""
        for name, since in tuple(self._unused_since.items()):
            if name in self._unused_since:
                yield TopicName.parse(name), since


def _bounded(noted: dict[str, float] | dict[str, None]) -> None:
    if len(noted) >= MOST_TOPICS:
        del noted[next(iter(noted))]
