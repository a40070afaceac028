"""The schemas of topics: what a store keeps of them, and how one in memory does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from proto.names import NamespaceName


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """One version of a topic's schema.

    Attributes:
        version: 0, 1, 2... of its topic, those that were deleted included.
        kind: Its type as the REST API calls it; "AVRO".
        data: The definition; empty for most kinds.
        properties: The client's own.
        stored_at: In ms since 1970.
        deleted: True for the mark that a deletion leaves: those before it are in force no more.
    """

    version: int
    kind: str
    data: bytes
    properties: Mapping[str, str] = field(default_factory=dict)
    stored_at: int = 0
    deleted: bool = False

    @property
    def size_bytes(self) -> int:
        """Bytes, or characters, of what the client gave."""
        texts = (text for pair in self.properties.items() for text in pair)
        return len(self.data) + sum(map(len, texts))


class TopicSchemas(Protocol):
    """The part of a store that keeps schemas, by the topic's name ``tenant/namespace/topic``.

    They go with their namespace. Topics that have no message yet may have schemas.
    """

    async def of(self, topic: str) -> Sequence[StoredSchema]:
        """Return all versions of a topic, in order; none for a topic without a schema."""

    async def add(self, topic: str, schema: StoredSchema) -> bool:
        """Add a version; false when it is there, because somebody else added it first."""

    async def delete(self, topic: str) -> None:
        """Forget all versions of a topic, so that its next one is 0."""


class MemoryTopicSchemas:
    """Schemas that end with the process. See TopicSchemas.

    Bound: that of SchemaRegistry, for each topic.
    """

    def __init__(self) -> None:
        self._topics: dict[str, list[StoredSchema]] = {}

    async def of(self, topic: str) -> Sequence[StoredSchema]:
        """Return all versions of a topic, in order."""
        return tuple(self._topics.get(topic, ()))

    async def add(self, topic: str, schema: StoredSchema) -> bool:
        """Add a version; false when it is there."""
        known = self._topics.setdefault(topic, [])
        if schema.version != len(known):
            return False
        known.append(schema)
        return True

    async def delete(self, topic: str) -> None:
        """Forget all versions of a topic."""
        self._topics.pop(topic, None)

    def delete_namespace(self, namespace: NamespaceName) -> None:
        """Forget the schemas of a namespace."""
        prefix = f"{namespace}/"
        for topic in [name for name in self._topics if name.startswith(prefix)]:
            del self._topics[topic]
