"""The truth about a topic over the wire, where unpromised messages may be lost.

Unlike the model of ``model.py``, only facts reported to a client count: a message with a receipt is
owed until its acknowledgement is sent, and gone once that is answered; after a broker's death an
acknowledgement is uncertain unless it was saved.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from broker.messages.position import Position
from tests.support.messages.model import ALONE, SubType

KEYS = 5

Message = tuple[int, int]
"""The number of an entry, and a place in its batch."""


class State(Enum):
    """The fate of a message that is no longer owed."""

    ASKED = "its acknowledgement was sent"
    GONE = "its acknowledgement was answered"
    UNKNOWN = "it may come or not"


@dataclass(slots=True)
class Fate:
    """The state of a message.

    Attributes:
        epoch: Of the last state change.
        at: Time of the change, in seconds of the caller's clock.
        kept: Survives a kill.
    """

    state: State
    epoch: int
    at: float = 0.0
    kept: bool = False


@dataclass
class Wrong:
    """Faults found, as sentences."""

    missing: list[str] = field(default_factory=list)
    came_back: list[str] = field(default_factory=list)
    out_of_order: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    not_zero: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class Truth:
    """All facts about a topic with one subscription.

    An epoch ends when all consumers have left: the next epoch begins with the remaining messages.
    Within an epoch a repeated acknowledged message is no fault: it may have been in flight.

    Attributes:
        sizes: Messages in each entry, by entry number.
        places: Positions of entries with a receipt.
        fates: Of all messages no longer owed.
        seen: Messages of this epoch.
        retained: Whether acknowledged entries remain seekable.
    """

    def __init__(self, kind: SubType.SubType.ValueType, topic: str, *, retained: bool) -> None:
        self.kind = kind
        self.topic = topic
        self.retained = retained
        self.epoch = 0
        self.sizes: list[int] = []
        self.places: dict[int, Position] = {}
        self.fates: dict[Message, Fate] = {}
        self.seen: set[Message] = set()
        self.wrong = Wrong()
        self._loose: set[int] = set()
        self._given_back: set[int] = set()
        self._last: dict[int, int] = {}

    @property
    def name(self) -> str:
        return SubType.SubType.Name(self.kind)

    # -- publishing ---------------------------------------------------------------------------

    def publish(self, size: int) -> int:
        """Note a sent entry; return its number."""
        self.sizes.append(size)
        return len(self.sizes) - 1

    def receipted(self, number: int, place: Position) -> None:
        self.places[number] = place

    def producer_left(self, under_way: Iterable[int]) -> None:
        """Note that entries without receipt may be stored after the next producer's."""
        self._loose.update(under_way)

    # -- deliveries ---------------------------------------------------------------------------

    def messages(self, number: int, places: Iterable[int] | None = None) -> list[Message]:
        """Return messages of an entry; all without places."""
        return [(number, at) for at in (range(self.sizes[number]) if places is None else places)]

    def is_owed(self, number: int) -> bool:
        """Tell whether a message of an entry is neither acknowledged nor unknown."""
        return any(one not in self.fates for one in self.messages(number))

    def is_whole(self, number: int) -> bool:
        """Return whether every message of an entry is owed."""
        return all(one not in self.fates for one in self.messages(number))

    def delivered(self, number: int, places: Iterable[int]) -> int:
        """Check a delivered entry; return its number of repeated messages."""
        came = self.messages(number, places)
        if not any(one in self.seen for one in self.messages(number)):
            self._check_order(number)
        for one in came:
            fate = self.fates.get(one)
            if fate is None or fate.epoch == self.epoch:
                continue
            if fate.state is State.GONE:
                kept = "for good" if fate.kept else "in this life"
                self.wrong.came_back.append(f"{self.name} {one}, acknowledged {kept}")
            elif fate.state is State.UNKNOWN:
                del self.fates[one]
        again = sum(one in self.seen for one in came)
        self.seen.update(came)
        self._given_back.discard(number)
        return again

    def _check_order(self, number: int) -> None:
        """Check a first delivery: no earlier entry was skipped."""
        if self.kind == SubType.Shared or number in self._loose:
            return
        groups = 1 if self.kind in ALONE else KEYS
        last = self._last.get(number % groups, number % groups - groups)
        self._last[number % groups] = max(last, number)
        left_out = [
            before
            for before in range(last + groups, number, groups)
            if before in self.places and before not in self._loose and self.is_owed(before)
        ]
        if number < last or left_out:
            what = f"behind {last}" if number < last else f"before {left_out[:3]}"
            self.wrong.out_of_order.append(f"{self.name} {number} {what}")

    def gave_back(self, numbers: Iterable[int]) -> None:
        """Note entries to be redelivered in this epoch."""
        # Late entries may have been acknowledged with others.
        self._given_back.update(set(numbers) - self._loose)

    # -- acknowledging ------------------------------------------------------------------------

    def asked(self, messages: Iterable[Message]) -> list[Message]:
        """Note a sent acknowledgement; return the messages it may change."""
        changed = []
        for one in messages:
            fate = self.fates.get(one)
            if (fate is None or fate.state is State.UNKNOWN) and one[0] not in self._loose:
                self.fates[one] = Fate(State.ASKED, self.epoch)
                changed.append(one)
        return changed

    def answered(self, messages: Iterable[Message], at: float) -> None:
        for one in messages:
            if self.fates[one].state is State.ASKED:
                self.fates[one] = Fate(State.GONE, self.epoch, at)

    def unanswered(self, messages: Iterable[Message]) -> None:
        """Note an acknowledgement that will never be answered."""
        for one in messages:
            if self.fates[one].state is State.ASKED:
                self.fates[one] = Fate(State.UNKNOWN, self.epoch)

    # -- turning points -----------------------------------------------------------------------

    def begin_epoch(self) -> None:
        """Begin anew: all consumers have left."""
        self.epoch += 1
        self.seen.clear()
        self._given_back.clear()
        self._last.clear()

    def saved(self) -> None:
        """Note that the broker saved its cursors: a clean stop, or an unload."""
        for fate in self.fates.values():
            fate.kept |= fate.state is State.GONE

    def killed(self, saved_until: float) -> None:
        """Note a kill: recent acknowledgements may be undone."""
        for fate in self.fates.values():
            if fate.state is State.GONE and (fate.kept or fate.at < saved_until):
                fate.kept = True
            else:
                fate.state = State.UNKNOWN

    def target(self, chosen: float) -> int | None:
        """Return the number of a seekable entry, or None.

        Args:
            chosen: From 0 to 1: from the first to the last.
        """
        there = sorted(self.places)
        if not self.retained:
            # Acknowledged entries may be dropped, up to the first unacknowledged one.
            first = next((at for at, one in enumerate(there) if self.is_owed(one)), len(there))
            del there[:first]
        there = [one for one in there if one not in self._loose]
        return there[int(chosen * len(there))] if there else None

    def sought(self, target: int) -> None:
        """Note an answered SEEK: everything from an entry on is owed, everything before is done."""
        for number in range(len(self.sizes)):
            for one in self.messages(number):
                fate = self.fates.get(one)
                if number in self._loose or fate == Fate(State.UNKNOWN, self.epoch):
                    # The sender has left: its message or acknowledgement may arrive after the SEEK.
                    self.fates[one] = Fate(State.UNKNOWN, self.epoch)
                elif number < target:
                    self.fates[one] = Fate(State.GONE, self.epoch, kept=True)
                elif self.retained:
                    self.fates.pop(one, None)
                elif fate is not None:
                    self.fates[one] = Fate(State.UNKNOWN, self.epoch)

    def seek_cut_short(self, target: int) -> None:
        """Note an unanswered SEEK: it may have happened."""
        for number in range(len(self.sizes)):
            for one in self.messages(number):
                if (number < target) != (one in self.fates):
                    self.fates[one] = Fate(State.UNKNOWN, self.epoch)

    # -- the end ------------------------------------------------------------------------------

    def awaited(self) -> list[Message]:
        """Return the messages due in this epoch."""
        awaited = [
            one
            for number in self.places
            for one in self.messages(number)
            if one not in self.fates and one not in self.seen
        ]
        again = [number for number in self._given_back if self.is_owed(number)]
        return awaited + [(number, 0) for number in again]

    def check_all_came(self) -> None:
        """Note the missing messages."""
        self.wrong.missing += [f"{self.name} {one}" for one in self.awaited()]
