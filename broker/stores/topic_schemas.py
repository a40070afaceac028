"""Topic schemas: the store interface, and an in-memory implementation."""

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
        version: 0, 1, 2... within the topic, deleted versions included.
        kind: Type in the REST API's spelling; "AVRO".
        data: The definition; empty for most kinds.
        properties: Properties set by the client.
        stored_at: In ms since 1970.
        deleted: True for a deletion mark: earlier versions are no longer effective.
    """

    version: int
    kind: str
    data: bytes
    properties: Mapping[str, str] = field(default_factory=dict)
    stored_at: int = 0
    deleted: bool = False

    @property
    def size_bytes(self) -> int:
        """Size of the client's data and properties in bytes, or characters."""
        texts = (text for pair in self.properties.items() for text in pair)
        return len(self.data) + sum(map(len, texts))


class TopicSchemas(Protocol):
    """A store's schemas, by topic name ``tenant/namespace/topic``.

    Deleting a namespace deletes its schemas. Topics without messages may have schemas.
    """

    async def of(self, topic: str) -> Sequence[StoredSchema]:
        """Return all versions of a topic, in order; none for a topic without a schema."""

    async def add(self, topic: str, schema: StoredSchema) -> bool:
        """Add a version; false if present, because another caller added it first."""

    async def delete(self, topic: str) -> None:
        """Delete all versions of a topic; the next version is 0."""


class MemoryTopicSchemas:
    """Schemas lost when the process ends. See TopicSchemas.

    Bound: that of SchemaRegistry, for each topic.
    """

    def __init__(self) -> None:
        self._topics: dict[str, list[StoredSchema]] = {}

    async def of(self, topic: str) -> Sequence[StoredSchema]:
        """Return all versions of a topic, in order."""
        return tuple(self._topics.get(topic, ()))

    async def add(self, topic: str, schema: StoredSchema) -> bool:
        """Add a version; false if present."""
        known = self._topics.setdefault(topic, [])
        if schema.version != len(known):
            return False
        known.append(schema)
        return True

    async def delete(self, topic: str) -> None:
        """Delete all versions of a topic."""
        self._topics.pop(topic, None)

    def delete_namespace(self, namespace: NamespaceName) -> None:
        """Delete the schemas of a namespace."""
        prefix = f"{namespace}/"
        for topic in [name for name in self._topics if name.startswith(prefix)]:
            del self._topics[topic]
