"""A request for a listing, and the key for sharing memory with equal requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.listing.lister import NO_PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    import proto.PulsarApi_pb2 as pb
    from broker.stores.store import Mode
    from proto.names import NamespaceName
    from proto.transport.connection import Connection


@dataclass(frozen=True, slots=True)
class ListingRequest:
    """A request served in a task.

    Attributes:
        command: The command.
        namespace: The command's namespace.
        name: ``tenant/namespace``.
        properties: The relevant properties.
        pattern: The client's pattern, if the broker must apply it.
        cnx: The client's connection.
    """

    command: pb.CommandGetTopicsOfNamespace
    namespace: NamespaceName
    name: str
    properties: Mapping[str, str]
    pattern: str | None
    cnx: Connection

    @property
    def key(self) -> Hashable:
        """The key for sharing heap with equal requests."""
        return heap_key(self.name, self.command.mode, self.properties, self.pattern)


def heap_key(
    namespace: str,
    mode: Mode,
    properties: Mapping[str, str] = NO_PROPERTIES,
    pattern: str | None = None,
) -> Hashable:
    """Return the key under which requests share one heap reservation.

    The result of a pattern is private to requests with the pattern: no other reservation covers it.
    """
    return (namespace, mode, frozenset(properties.items()) if properties else None, pattern)
