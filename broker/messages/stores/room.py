"""Limits on stored bytes per topic, per namespace and per process, and a store's statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, NoReturn

from broker.messages.errors import MessageStoreFullError

if TYPE_CHECKING:
    from collections.abc import Callable

SCARCE_PART = 0.9
"""Capacity is scarce when the stored bytes exceed this part of the process's limit."""
ENTRY_COST_BYTES = 64
"""The bytes of memory of an entry in addition to its data: digest, size, and Python object
overhead."""

_MEGABYTE_BYTES = 1024 * 1024


class StoreBounds(NamedTuple):
    """The most bytes that a topic, a namespace and the process may store; 0 is no limit.

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
    """The number and bytes of the stored entries of one or more topics.

    Attributes:
        entries: Number of entries.
        data_bytes: Bytes of the entries.
        charged_bytes: Bytes including overhead; compared with bounds.
        topics: The number of topics whose entries are counted here.
    """

    __slots__ = ("charged_bytes", "data_bytes", "entries", "topics")

    def __init__(self) -> None:
        self.entries = 0
        self.data_bytes = 0
        self.charged_bytes = 0
        self.topics = 0

    def charge(self, entries: int, data_bytes: int) -> None:
        """Count stored entries and their bytes; negative numbers uncount entries."""
        self.entries += entries
        self.data_bytes += data_bytes
        self.charged_bytes += data_bytes + entries * ENTRY_COST_BYTES


class StoreRoom:
    """The capacity that the stored entries of all topics take, and its limits.

    Attributes:
        bounds: The limits of stored bytes.
        taken: Capacity taken by all topics.
        namespaces: Capacity taken by each namespace with topics.
        refused: Entries refused for lack of capacity.
        on_scarce: Called when capacity is nearly exhausted, and again each time that the stored
            bytes grow by another 2 % of the limit.
    """

    def __init__(self, bounds: StoreBounds) -> None:
        self.bounds = bounds
        self.taken = RoomTaken()
        self.namespaces: dict[str, RoomTaken] = {}
        self.refused = 0
        self.on_scarce: Callable[[], object] | None = None
        self.scarce_above = 0

    def look(self) -> None:
        """If capacity is scarce, ask for the deletion of messages that no subscription needs."""
        bound, taken = self.bounds.process, self.taken.charged_bytes
        least = int(bound * SCARCE_PART)
        self.scarce_above = max(least, taken + bound // 50)
        if bound and taken > least:
            self.tell_scarce()

    def tell_scarce(self) -> None:
        """Ask for the deletion of unneeded messages, as capacity is scarce or the disk is full."""
        if self.on_scarce is not None:
            self.on_scarce()

    def of_topic(self, name: str) -> TopicRoom:
        """Return a new object that counts the capacity taken by one topic."""
        namespace = name.partition("://")[2].rpartition("/")[0]
        return TopicRoom(name, namespace, self)

    def figures(self) -> StoreFigures:
        """Return the statistics that a store in memory and a store in a database both have."""
        taken = self.taken
        return StoreFigures(
            entries=taken.entries,
            data_bytes=taken.data_bytes,
            charged_bytes=taken.charged_bytes,
            bounds=self.bounds,
            refused=self.refused,
        )

    def refuse(self, whose: str, bound: int, key: str) -> NoReturn:
        """Raise the error for an entry that would exceed a limit.

        Raises:
            MessageStoreFullError: Always.
        """
        megabytes = bound / _MEGABYTE_BYTES
        raise MessageStoreFullError(
            f"the messages of {whose} take the {megabytes:g} MB that {key} allows; raise it, or "
            "let consumers acknowledge some"
        )


class TopicRoom:
    """The capacity that the stored entries of one topic take.

    Attributes:
        taken: The capacity that the topic's entries take.
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
        """Count a new entry of the given size, or refuse it if a limit would be exceeded.

        Raises:
            MessageStoreFullError: The entry would exceed a limit.
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
        """Count stored entries without checking limits; negative numbers uncount entries."""
        if self._has_left:
            return  # The deleted topic's capacity is already released.
        for taken in (self.taken, self._of_namespace, self._all):
            taken.charge(entries, data_bytes)

    def refused(self) -> None:
        """Count an entry that was refused because the store is full."""
        self._room.refused += 1

    def leave(self) -> None:
        """Stop counting the topic's entries, because the topic is deleted."""
        self.charge(-self.taken.entries, -self.taken.data_bytes)
        self._has_left = True
        self._of_namespace.topics -= 1
        if not self._of_namespace.topics:
            del self._room.namespaces[self._namespace]


class WriteFigures:
    """Counts and durations of a database's transactions since opening.

    Attributes:
        transactions: The number of transactions; each stores the writes of one event-loop turn, or
            the writes made during the previous transaction.
        written_bytes: Bytes of the stored entries.
        seconds: Total duration of all transactions.
        longest_seconds: Duration of the longest transaction.
        failures: The number of failed transactions, including those retried later.
    """

    def __init__(self) -> None:
        self.transactions = 0
        self.written_bytes = 0
        self.seconds = 0.0
        self.longest_seconds = 0.0
        self.failures = 0

    def wrote(self, size_bytes: int, seconds: float) -> None:
        """Count a completed transaction, with its bytes and duration."""
        self.transactions += 1
        self.written_bytes += size_bytes
        self.seconds += seconds
        self.longest_seconds = max(self.longest_seconds, seconds)


class StoreFigures(NamedTuple):
    """The contents and statistics of a message store at one moment.

    Attributes:
        entries: Stored entries.
        data_bytes: Bytes of the entries.
        charged_bytes: Bytes of the entries including overhead; this number is compared with limits.
        bounds: The limits on stored bytes; 0 is no limit.
        refused: The number of entries refused for lack of capacity.
        file_bytes: Bytes of the database's files; like all following numbers, 0 for a store in
            memory.
        recent_bytes: Bytes of entries also in memory.
        unwritten_bytes: Bytes waiting to be written.
        fetched_entries: Entries read from the database.
        writing: Statistics of the transactions; None for a store in memory.
    """

    entries: int
    data_bytes: int
    charged_bytes: int
    bounds: StoreBounds
    refused: int
    file_bytes: int = 0
    recent_bytes: int = 0
    unwritten_bytes: int = 0
    fetched_entries: int = 0
    writing: WriteFigures | None = None
