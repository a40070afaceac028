"""Changes of a namespace, and the errors with which a store refuses them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from broker.stores.property_rows import PropertyRows
    from proto.names import NamespaceName

    NamespaceChanges: TypeAlias = tuple[NamespaceName, "TopicChanges"]
    """A change with its namespace."""


class StoreError(Exception):
    """A store failed; one sentence for the operator."""


class TopicExistsError(Exception):
    """A name required to be absent exists; no change was made."""


class TopicMissingError(Exception):
    """A name required to be present does not exist; no change was made."""


@dataclass(frozen=True, slots=True)
class TopicState:
    """The state of a topic at the time of reading.

    Attributes:
        name: Full name.
        partitions: Number of partitions; 0 for a topic without.
        properties: All properties.
    """

    name: str
    partitions: int
    properties: Mapping[str, str]


class TopicChangedError(Exception):
    """A topic differs from its state when the change was decided; no change was made.

    Attributes:
        found: The current state.
    """

    def __init__(self, found: TopicState) -> None:
        super().__init__(f"{found.name} was changed")
        self.found = found


class NamespaceMissingError(Exception):
    """A required namespace does not exist; no change was made."""


class NamespaceNotEmptyError(Exception):
    """A namespace to be deleted holds user topics; no change was made."""


@dataclass(frozen=True, slots=True)
class TopicChanges:
    """Topics to add and remove in one namespace, all or nothing.

    Attributes:
        added: Full names as UTF-8; partitions of partitioned topics one by one.
        removed: Full names as UTF-8; removal wins over addition of the same name.
        partitioned: Partition counts by full base name; 0 removes the entry.
        properties: New properties of some topics, replacing all earlier properties; None without
            any. The name of a partitioned topic is allowed; its partitions have separate
            properties. Names removed, here or by ``partitioned``, lose their properties.
        absent: Full names of topics or partitioned topics required to be missing before the change:
            otherwise TopicExistsError.
        present: Full names required to exist: otherwise TopicMissingError.
        unchanged: A topic state required to be current: otherwise TopicChangedError.
        creates_namespace: Whether a missing namespace is created; otherwise NamespaceMissingError.
        adds_only: Whether the change only adds, as an import does: partition counts never shrink,
            and existing topics and partitioned topics keep their properties. A new partition
            without properties inherits from its partitioned topic, if that exists and is in
            ``partitioned``.
    """

    added: Sequence[bytes] = ()
    removed: Sequence[bytes] = ()
    partitioned: Mapping[str, int] = field(default_factory=dict)
    properties: PropertyRows | None = None
    absent: Sequence[str] = ()
    present: Sequence[str] = ()
    unchanged: TopicState | None = None
    creates_namespace: bool = True
    adds_only: bool = False
