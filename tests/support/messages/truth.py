"""The truth about one topic that is asked over the wire, and may lose what no one promised.

The model of ``model.py`` knows all that a broker does. Here only that counts which a client was
told: a message with a receipt is owed until an acknowledgement of it was sent; it is gone when that
was answered; and whether a broker that died has still kept that is unknown until it was saved.
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
    """The fate of a message that is not owed."""

    ASKED = "its acknowledgement was sent"
    GONE = "its acknowledgement was answered"
    UNKNOWN = "it may come or not"


@dataclass(slots=True)
class Fate:
    """The state of a message.

    Attributes:
        epoch: In which it came to this state.
        at: When, in seconds of the caller's clock.
        kept: Not even a kill undoes it.
    """

    state: State
    epoch: int
    at: float = 0.0
    kept: bool = False


@dataclass
class Wrong:
    """Faults that were found, as sentences."""

    missing: list[str] = field(default_factory=list)
    came_back: list[str] = field(default_factory=list)
    out_of_order: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    not_zero: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class Truth:
    """All that is known of one topic with one subscription.

    An epoch ends when all consumers have left: what comes in the next one is what was left. In an
    epoch nothing is said of an acknowledged message that comes again: it may have been under way.

    Attributes:
        sizes: Messages in each entry, by the number of the entry.
        places: Where an entry with a receipt is.
        fates: Of all messages that are not owed.
        seen: What came in this epoch.
        retained: Acknowledged entries can be sought again.
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
        """The type of its subscription."""
        return SubType.SubType.Name(self.kind)

    # -- publishing ---------------------------------------------------------------------------

    def publish(self, size: int) -> int:
        """Note that an entry is sent; return its number."""
        self.sizes.append(size)
        return len(self.sizes) - 1

    def receipted(self, number: int, place: Position) -> None:
        """Note that the broker has an entry."""
        self.places[number] = place

    def producer_left(self, under_way: Iterable[int]) -> None:
        """Note that entries without a receipt may be stored behind those of the next producer."""
        self._loose.update(under_way)

    # -- what comes ---------------------------------------------------------------------------

    def messages(self, number: int, places: Iterable[int] | None = None) -> list[Message]:
        """Return messages of an entry; all without places."""
        return [(number, at) for at in (range(self.sizes[number]) if places is None else places)]

    def is_owed(self, number: int) -> bool:
        """Tell whether a message of an entry is neither acknowledged nor unknown."""
        return any(one not in self.fates for one in self.messages(number))

    def is_whole(self, number: int) -> bool:
        """Tell whether none of an entry's messages is acknowledged or unknown."""
        return all(one not in self.fates for one in self.messages(number))

    def delivered(self, number: int, places: Iterable[int]) -> int:
        """Check an entry that came in this epoch; return how many of its messages came again."""
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
        """Check an entry that comes for the first time: none before it was left out."""
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
        """Note entries that must come again in this epoch."""
        # Of those that may come late nobody knows whether they were acknowledged with others.
        self._given_back.update(set(numbers) - self._loose)

    # -- acknowledging ------------------------------------------------------------------------

    def asked(self, messages: Iterable[Message]) -> list[Message]:
        """Note that an acknowledgement is sent; return what it may change."""
        changed = []
        for one in messages:
            fate = self.fates.get(one)
            if (fate is None or fate.state is State.UNKNOWN) and one[0] not in self._loose:
                self.fates[one] = Fate(State.ASKED, self.epoch)
                changed.append(one)
        return changed

    def answered(self, messages: Iterable[Message], at: float) -> None:
        """Note that an acknowledgement was answered."""
        for one in messages:
            if self.fates[one].state is State.ASKED:
                self.fates[one] = Fate(State.GONE, self.epoch, at)

    def unanswered(self, messages: Iterable[Message]) -> None:
        """Note that an acknowledgement will never be answered."""
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
        """Note that the broker has saved its cursors: a clean stop, or an unload."""
        for fate in self.fates.values():
            fate.kept |= fate.state is State.GONE

    def killed(self, saved_until: float) -> None:
        """Note a kill: what was acknowledged since a time may come again."""
        for fate in self.fates.values():
            if fate.state is State.GONE and (fate.kept or fate.at < saved_until):
                fate.kept = True
            else:
                fate.state = State.UNKNOWN

    def target(self, chosen: float) -> int | None:
        """Return the number of an entry that can be sought; None if there is none.

        Args:
            chosen: From 0 to 1: from the first to the last.
        """
        there = sorted(self.places)
        if not self.retained:
            # What is acknowledged may be dropped, up to the first entry that is not.
            first = next((at for at, one in enumerate(there) if self.is_owed(one)), len(there))
            del there[:first]
        there = [one for one in there if one not in self._loose]
        return there[int(chosen * len(there))] if there else None

    def sought(self, target: int) -> None:
        """Note that a SEEK was answered: all is left from an entry on, and nothing before it."""
        for number in range(len(self.sizes)):
            for one in self.messages(number):
                fate = self.fates.get(one)
                if number in self._loose or fate == Fate(State.UNKNOWN, self.epoch):
                    # Who sent it or its acknowledgement has left: it may come behind the SEEK.
                    self.fates[one] = Fate(State.UNKNOWN, self.epoch)
                elif number < target:
                    self.fates[one] = Fate(State.GONE, self.epoch, kept=True)
                elif self.retained:
                    self.fates.pop(one, None)
                elif fate is not None:
                    self.fates[one] = Fate(State.UNKNOWN, self.epoch)

    def seek_cut_short(self, target: int) -> None:
        """Note that a SEEK was not answered: it may have happened."""
        for number in range(len(self.sizes)):
            for one in self.messages(number):
                if (number < target) != (one in self.fates):
                    self.fates[one] = Fate(State.UNKNOWN, self.epoch)

    # -- the end ------------------------------------------------------------------------------

    def awaited(self) -> list[Message]:
        """Return what must come in this epoch and has not yet."""
        awaited = [
            one
            for number in self.places
            for one in self.messages(number)
            if one not in self.fates and one not in self.seen
        ]
        again = [number for number in self._given_back if self.is_owed(number)]
        return awaited + [(number, 0) for number in again]

    def check_all_came(self) -> None:
        """Note what is missing now."""
        self.wrong.missing += [f"{self.name} {one}" for one in self.awaited()]
