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
    """A change and the namespace it is of."""


class StoreError(Exception):
    """A store failed; one sentence for the operator."""


class TopicExistsError(Exception):
    """A full name that had to be absent exists: nothing was changed."""


class TopicMissingError(Exception):
    """A full name that had to be present does not exist: nothing was changed."""


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as it was read at some time.

    Attributes:
        name: Its full name.
        partitions: Number of partitions; 0 for a topic without.
        properties: All its properties.
    """

    name: str
    partitions: int
    properties: Mapping[str, str]


class TopicChangedError(Exception):
    """A topic is not as it was when the change was decided: nothing was changed.

    Attributes:
        found: The topic as it is.
    """

    def __init__(self, found: TopicState) -> None:
        super().__init__(f"{found.name} was changed")
        self.found = found


class NamespaceMissingError(Exception):
    """A namespace that had to exist does not: nothing was changed."""


class NamespaceNotEmptyError(Exception):
    """A namespace that was to be deleted holds user topics: nothing was changed."""


@dataclass(frozen=True, slots=True)
class TopicChanges:
    """Topics to add and remove in one namespace, all or nothing.

    Attributes:
        added: Full names as UTF-8; partitions of partitioned topics one by one.
        removed: Full names as UTF-8; a name that is also added is removed.
        partitioned: Partition counts of partitioned topics, by full base name; 0 forgets one.
        properties: Properties of some topics; they replace all that a topic had. A name may be
            that of a partitioned topic, too, whose partitions have properties of their own. None
            without any. Names removed, or forgotten by ``partitioned``, lose their properties.
        absent: Full names, of topics or partitioned topics, that must not be there before the
            change: otherwise TopicExistsError.
        present: Full names that must be there: otherwise TopicMissingError.
        unchanged: A topic that must still be as it was seen: otherwise TopicChangedError.
        creates_namespace: Whether a missing namespace is created; otherwise NamespaceMissingError.
        adds_only: Whether it only adds, as an import does: partition counts never shrink, and a
            topic or partitioned topic that exists keeps its properties. A new partition without
            any carries those of its partitioned topic, if that exists and is in ``partitioned``.
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
