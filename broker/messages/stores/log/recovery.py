"""Reads a log from its files: what it holds, what was torn off, and what is damaged."""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from broker.messages.managed_ledger import MessageStoreError
from broker.messages.stores.log.log_ledger import FoundEntries, LogLedger
from broker.messages.stores.log.records import (
    FORMAT_VERSION,
    OFFSET_BITS,
    DamagedBytes,
    EntryRecord,
    ItemKey,
    ItemRecord,
    StartRecord,
    SyncedRecord,
    scan,
)
from broker.messages.stores.log.segments import Segment, Segments, segment_name, segment_number
from broker.messages.stores.log.states import TopicState, UnreadableStateError, state_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.messages.stores.log.files import LogFiles
    from broker.messages.stores.log.records import Record
    from broker.messages.stores.log.states import State

logger = logging.getLogger(__name__)

MOST_ID = 1 << 62
"""No id that was ever given is larger; the wire has room for twice as much."""
NAMED_LOSSES = 10
"""Topics that lose something are named up to so many; the others are counted."""


class FoundItem(NamedTuple):
    """The last state of an item in the log."""

    segment: int
    size: int
    value: bytes | None


@dataclass
class FoundTopic:
    """A topic in the log.

    Attributes:
        key: Its item.
        name: Its full name.
        ledgers: Those with entries, and the open one.
        lost: Entries that are missing, in words; empty if none are.
    """

    key: ItemKey
    name: str
    ledgers: list[LogLedger]
    lost: str = ""


@dataclass
class Found:
    """All that a log holds.

    Attributes:
        segments: Its files, with what lives in them.
        items: The last state of every item, deletions included.
        states: What those say, of the store and of topics that are there.
        topics: The topics.
        highest_id: Of all ledgers and topics that left anything: none of them is given again.
        damage: Sentences about bytes that cannot be read and were once on disk for certain.
        cut: Bytes that were cut off, as the writing of them had not ended.
    """

    segments: Segments = field(default_factory=Segments)
    items: dict[ItemKey, FoundItem] = field(default_factory=dict)
    states: dict[ItemKey, State] = field(default_factory=dict)
    topics: list[FoundTopic] = field(default_factory=list)
    highest_id: int = 0
    damage: list[str] = field(default_factory=list)
    cut: int = 0


class _Suspect(NamedTuple):
    """A record behind damaged bytes: it counts if the disk had those bytes before."""

    offset: int
    size: int
    record: Record | DamagedBytes


class Recovery:
    """Reads all segments of a log, once.

    Blocks: for a thread.
    """

    def __init__(self, files: LogFiles) -> None:
        self.found = Found()
        self._files = files
        self._entries: dict[int, FoundEntries] = defaultdict(FoundEntries)
        self._synced: dict[int, int] = {}
        self._suspects: dict[int, list[_Suspect]] = {}

    def run(self, *, drop_damaged: bool) -> Found:
        """Return what the log holds.

        Args:
            drop_damaged: Go on without what cannot be read.

        Raises:
            MessageStoreError: Something cannot be read that was stored before.
            OSError: The files cannot be read.
        """
        for name in self._files.names():
            number = segment_number(name)
            if number is not None:
                self._read_segment(name, number)
        for number, suspects in self._suspects.items():
            self._judge(self.found.segments[number], suspects)
        for segment in list(self.found.segments):
            if not segment.size:
                self._remove_empty(segment)
        ids = (*self._entries, *(key.topic_id for key in self.found.items))
        self.found.highest_id = max((one for one in ids if one <= MOST_ID), default=0)
        self._read_states()
        self._make_topics()
        self._tell(drop_damaged=drop_damaged)
        return self.found

    def close(self) -> None:
        """Release the files: the log is not opened."""
        for segment in self.found.segments:
            if segment.file is not None:
                segment.file.close()

    # -- reading ------------------------------------------------------------------------------

    def _read_segment(self, name: str, number: int) -> None:
        file = self._files.open(name)
        data = file.pread(file.size(), 0)
        segment = self.found.segments.add(Segment(number, file, len(data)))
        suspects: list[_Suspect] = []
        for offset, size, record in scan(data):
            if suspects or isinstance(record, DamagedBytes):
                suspects.append(_Suspect(offset, size, record))
            else:
                self._take(segment.number, offset, size, record)
            if isinstance(record, SyncedRecord):
                # Marks are true wherever they stand.
                self._synced[record.segment] = max(
                    record.offset, self._synced.get(record.segment, 0)
                )
        if suspects:
            self._suspects[segment.number] = suspects

    def _take(self, segment: int, offset: int, size: int, record: Record) -> None:
        if isinstance(record, EntryRecord):
            place = segment << OFFSET_BITS | offset
            self._entries[record.ledger_id].add(record.entry_id, place, record.size, record.digest)
        elif isinstance(record, ItemRecord):
            self.found.segments[segment].keys.add(record.key)
            self.found.items[record.key] = FoundItem(segment, size, record.value)
        elif isinstance(record, StartRecord) and record.format_version != FORMAT_VERSION:
            raise MessageStoreError(
                f"the message log {self._files} has format {record.format_version}, and this "
                f"version reads format {FORMAT_VERSION}"
            )

    def _judge(self, segment: Segment, suspects: list[_Suspect]) -> None:
        """Tell a torn write from damage: what the disk had for certain cannot be torn."""
        first = suspects[0]
        if first.offset >= self._synced.get(segment.number, 0):
            cut = segment.size - first.offset
            self.found.cut += cut
            logger.warning(
                "message log: %d bytes cut off behind the last whole record of segment %d",
                cut,
                segment.number,
            )
            segment.size = first.offset
            if segment.file is not None:
                segment.file.truncate(first.offset)
                segment.file.sync()
            return
        segment.damaged = True
        for offset, size, record in suspects:
            if isinstance(record, DamagedBytes):
                self.found.damage.append(
                    f"segment {segment.number} has {size} damaged bytes from byte {offset} on"
                )
            else:
                self._take(segment.number, offset, size, record)

    def _remove_empty(self, segment: Segment) -> None:
        self.found.segments.remove(segment)
        if segment.file is not None:
            segment.file.close()
        self._files.unlink(segment_name(segment.number))

    # -- topics -------------------------------------------------------------------------------

    def _read_states(self) -> None:
        """Read the items; those of a topic that is gone mean nothing."""
        for key, item in self.found.items.items():
            topic = self.found.items.get(key.of_topic)
            if item.value is None or (key.topic_id and (topic is None or topic.value is None)):
                continue
            try:
                state = state_of(key, item.value)
            except UnreadableStateError as error:
                self.found.damage.append(
                    f"segment {item.segment} has a state that cannot be read: {error}"
                )
            else:
                if state is not None:
                    self.found.states[key] = state

    def _make_topics(self) -> None:
        names: set[str] = set()
        ledger_ids: set[int] = set()
        for key, state in self.found.states.items():
            if not isinstance(state, TopicState):
                continue
            own = {ledger_id for ledger_id, _, _ in state.ledgers}
            if state.name in names or own & ledger_ids:
                self.found.damage.append(f"{state.name} is there twice")
                continue
            names.add(state.name)
            ledger_ids |= own
            self.found.topics.append(self._topic(key, state))
        # Entries of ledgers that no topic names any more are dead.
        self._entries.clear()

    def _topic(self, key: ItemKey, state: TopicState) -> FoundTopic:
        topic = FoundTopic(key, state.name, [])
        losses = []
        for ledger_id, closed_at, expected in state.ledgers:
            entries = self._entries.pop(ledger_id, None) or FoundEntries()
            ledger, behind_a_gap = entries.ledger(ledger_id)
            ledger.closed_at = closed_at
            if closed_at:
                missing = expected - len(ledger)
                # What stands behind the end was never confirmed.
                ledger.confirmed = min(len(ledger), expected)
                ledger.cut()
            else:
                missing = behind_a_gap
            if missing > 0:
                losses.append(f"{missing} entries from {ledger_id}:{len(ledger)} on")
            if len(ledger) or not closed_at:
                topic.ledgers.append(ledger)
                self._count(ledger)
        topic.lost = ", ".join(losses)
        return topic

    def _count(self, ledger: LogLedger) -> None:
        """Count what stands in which segment."""
        if not len(ledger):
            return
        numbers = np.frombuffer(ledger.places, np.uint64) >> np.uint64(OFFSET_BITS)
        sizes = np.diff(np.array(ledger.ends(0, len(ledger)), np.int64), prepend=0)
        for number in np.unique(numbers).tolist():
            here = numbers == number
            self.found.segments.entries_added(
                ledger, number, int(here.sum()), int(sizes[here].sum())
            )

    # -- damage -------------------------------------------------------------------------------

    def _tell(self, *, drop_damaged: bool) -> None:
        """Say what is lost.

        Raises:
            MessageStoreError: It was stored before, and may not be dropped.
        """
        losses = [f"{topic.name} loses {topic.lost}" for topic in self.found.topics if topic.lost]
        if not self.found.damage and (self.found.cut or not losses):
            # A loss of power without fsync can tear more than the end.
            for sentence in _some(losses):
                logger.warning("message log: %s", sentence)
            return
        lost = [*_some(self.found.damage), *_some(losses)] or ["a segment is missing"]
        if not drop_damaged:
            raise MessageStoreError(
                f"the message log {self._files} is damaged: {'; '.join(lost)}; bring the files "
                "back, or set floodgateMessageStoreDropDamaged=true to start without what is lost"
            )
        for sentence in lost:
            logger.error("message log, dropped: %s", sentence)


def _some(sentences: list[str]) -> Iterator[str]:
    yield from sentences[:NAMED_LOSSES]
    if len(sentences) > NAMED_LOSSES:
        yield f"and {len(sentences) - NAMED_LOSSES} more"
