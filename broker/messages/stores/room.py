"""The bounds of what is stored: a topic's, a namespace's and the process's."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, NoReturn

from broker.messages.managed_ledger import MessageStoreFullError

if TYPE_CHECKING:
    from collections.abc import Callable

SCARCE_PART = 0.9
"""Room is scarce when so much of the process's bound is taken."""
ENTRY_COST_BYTES = 64
"""What an entry costs beside its bytes: its figures, and the head of a Python object."""

_MEGABYTE_BYTES = 1024 * 1024


class StoreBounds(NamedTuple):
    """Most bytes that are stored; 0 is no bound.

    Attributes:
        topic: floodgateMessageStoreMaxTopicMB.
        namespace: floodgateMessageStoreMaxNamespaceMB.
        process: floodgateMessageStoreMaxMB.
    """

    topic: int = 0
    namespace: int = 0
    process: int = 0


NO_BOUNDS = StoreBounds()


class RoomTaken:
    """The room that entries take.

    Attributes:
        entries: How many there are.
        data_bytes: Their bytes.
        charged_bytes: With what they cost beside their bytes; compared with bounds.
        topics: Topics that share these figures.
    """

    __slots__ = ("charged_bytes", "data_bytes", "entries", "topics")

    def __init__(self) -> None:
        self.entries = 0
        self.data_bytes = 0
        self.charged_bytes = 0
        self.topics = 0

    def charge(self, entries: int, data_bytes: int) -> None:
        """Count entries; negative figures for those that were dropped."""
        self.entries += entries
        self.data_bytes += data_bytes
        self.charged_bytes += data_bytes + entries * ENTRY_COST_BYTES


class StoreRoom:
    """The room that the entries of all topics take.

    Attributes:
        bounds: Most bytes.
        taken: What all topics take.
        namespaces: What the topics of a namespace take, for namespaces with topics.
        refused: Entries for which no room could be made.
        on_scarce: Called when nearly all room is taken; again when 2 % more is.
    """

    def __init__(self, bounds: StoreBounds) -> None:
        self.bounds = bounds
        self.taken = RoomTaken()
        self.namespaces: dict[str, RoomTaken] = {}
        self.refused = 0
        self.on_scarce: Callable[[], object] | None = None
        self.scarce_above = 0

    def look(self) -> None:
        """Tell that room is scarce, if it is; the next time when there is less of it."""
        bound, taken = self.bounds.process, self.taken.charged_bytes
        least = int(bound * SCARCE_PART)
        self.scarce_above = max(least, taken + bound // 50)
        if bound and taken > least:
            self.tell_scarce()

    def tell_scarce(self) -> None:
        """Have messages dropped that nobody needs: room is nearly taken, or the disk is full."""
        if self.on_scarce is not None:
            self.on_scarce()

    def of_topic(self, name: str) -> TopicRoom:
        """Return the room of one topic, in which nothing is yet."""
        namespace = name.partition("://")[2].rpartition("/")[0]
        return TopicRoom(name, namespace, self)

    def refuse(self, whose: str, bound: int, key: str) -> NoReturn:
        """Say that a bound is reached.

        Raises:
            MessageStoreFullError: Always.
        """
        megabytes = bound / _MEGABYTE_BYTES
        raise MessageStoreFullError(
            f"the messages of {whose} take the {megabytes:g} MB that {key} allows; raise it, or "
            "let consumers acknowledge some"
        )


class TopicRoom:
    """The room that the entries of one topic take.

    Attributes:
        taken: What they take.
    """

    __slots__ = ("_all", "_has_left", "_name", "_namespace", "_of_namespace", "_room", "taken")

    def __init__(self, name: str, namespace: str, room: StoreRoom) -> None:
        self.taken = RoomTaken()
        self._name = name
        self._namespace = namespace
        self._room = room
        self._has_left = False
        self._all = room.taken
        self._of_namespace = room.namespaces.setdefault(namespace, RoomTaken())
        self._of_namespace.topics += 1

    def take(self, size_bytes: int) -> None:
        """Take the room of one entry.

        Raises:
            MessageStoreFullError: There is none.
        """
        cost = size_bytes + ENTRY_COST_BYTES
        topic, namespace, process = self._room.bounds
        if process and self._all.charged_bytes + cost > process:
            self._room.refuse("all topics", process, "floodgateMessageStoreMaxMB")
        if namespace and self._of_namespace.charged_bytes + cost > namespace:
            whose, key = f"namespace {self._namespace}", "floodgateMessageStoreMaxNamespaceMB"
            self._room.refuse(whose, namespace, key)
        if topic and self.taken.charged_bytes + cost > topic:
            whose, key = f"topic {self._name}", "floodgateMessageStoreMaxTopicMB"
            self._room.refuse(whose, topic, key)
        for taken in (self.taken, self._of_namespace, self._all):
            taken.entries += 1
            taken.data_bytes += size_bytes
            taken.charged_bytes += cost
        if process and self._all.charged_bytes > self._room.scarce_above:
            self._room.look()

    def charge(self, entries: int, data_bytes: int) -> None:
        """Count entries whatever the bounds are; negative figures for those that were dropped."""
        if self._has_left:
            return  # Entries of a deleted topic that are given up later had their room given back.
        for taken in (self.taken, self._of_namespace, self._all):
            taken.charge(entries, data_bytes)

    def refused(self) -> None:
        """Count an entry for which no room could be made."""
        self._room.refused += 1

    def leave(self) -> None:
        """Give back the room of all entries: the topic is deleted."""
        self.charge(-self.taken.entries, -self.taken.data_bytes)
        self._has_left = True
        self._of_namespace.topics -= 1
        if not self._of_namespace.topics:
            del self._room.namespaces[self._namespace]
