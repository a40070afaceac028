"""Changes of a namespace, and why a store refuses one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.stores.property_rows import PropertyRows


class StoreError(Exception):
    """A store cannot do what it was asked for; one sentence for the operator."""


class TopicExistsError(Exception):
    """A change asked for a name to be absent, and it is there: nothing was changed.

    Attributes:
        name: The full name.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} already exists")
        self.name = name


class TopicMissingError(Exception):
    """A change asked for a name to be present, and it is not there: nothing was changed.

    Attributes:
        name: The full name.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} does not exist")
        self.name = name


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as somebody saw it.

    Attributes:
        name: Its full name.
        partitions: How many it has; 0 for a topic without.
        properties: All of them.
    """

    name: str
    partitions: int
    properties: Mapping[str, str]


class TopicChangedError(Exception):
    """A change was for a topic as it was seen, and it is another by now: nothing was changed.

    Attributes:
        found: The topic as it is.
    """

    def __init__(self, found: TopicState) -> None:
        super().__init__(f"{found.name} was changed")
        self.found = found


class NamespaceMissingError(Exception):
    """A change was for an existing namespace only: nothing was changed."""


class NamespaceNotEmptyError(Exception):
    """A namespace that holds user topics was to be deleted: nothing was changed."""


@dataclass(frozen=True, slots=True)
class TopicChanges:
    """Topics to add and remove in one namespace, all or nothing.

    Attributes:
        added: Full names as UTF-8; partitions of partitioned topics one by one.
        removed: Full names as UTF-8; a name that is added, too, is gone.
        partitioned: Partition counts of partitioned topics, by full base name; 0 forgets one.
        properties: Properties of some topics; they replace all that a topic had. A name may be
            that of a partitioned topic, too, whose partitions have properties of their own. None
            without any. What is removed, or forgotten by ``partitioned``, loses its properties.
        absent: Full names, of topics or partitioned topics, that must not be there before the
            change: otherwise TopicExistsError.
        present: Full names that must be there: otherwise TopicMissingError.
        unchanged: A topic that must still be as it was seen: otherwise TopicChangedError.
        creates_namespace: Whether a missing namespace is made; otherwise NamespaceMissingError.
        adds_only: Whether it only adds, as an import does: partition counts never shrink, and what
            is there before, as a topic or a partitioned topic, keeps the properties it has, or has
            not. A new partition without any carries those of its partitioned topic, if that is
            there and in ``partitioned``.
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
