"""The queue of messages that a subscription delivers again, ahead of new messages."""

from __future__ import annotations

from collections import Counter, deque
from itertools import islice
from typing import TYPE_CHECKING

from broker.messages.position import Position
from broker.messages.subscriptions.place_map import PlaceMap
from broker.messages.subscriptions.position_set import PositionSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_FRONT = (-1, -1)
LOOKED_AT = 10_000
"""The largest number of positions checked in one step of a search."""
ASKED = 5
"""The number of positions that can be checked in the time of one check of a hash."""


class ReplayQueue:
    """The positions of entries to deliver again, sorted by ledger id and entry id.

    Each entry was returned by a consumer, was delayed, or was read when no consumer had permits.

    Source: upstream MessageRedeliveryController.
    """

    def __init__(self) -> None:
        self._positions = PositionSet()
        # Only Key_Shared positions with a hash; 0 means no hash.
        self._hashes = PlaceMap()
        self._with_hash: Counter[int] = Counter()
        self._looked_at = 0
        # Of the present search: where it goes on, the last checked, and the refused hashes.
        self._from = self._last = _FRONT
        self._refused: set[int] = set()
        self._is_changed = True

    def __len__(self) -> int:
        return len(self._positions)

    def __bool__(self) -> bool:
        return self._positions.count > 0

    def __contains__(self, position: object) -> bool:
        return position in self._positions

    def add(self, position: tuple[int, int], sticky_hash: int = 0) -> None:
        """Queue a position, with the hash of its key; 0 is no hash.

        A hash is also added to a position that is already queued without a hash.
        """
        self._positions.add(position)
        if sticky_hash and position not in self._hashes:
            self._hashes.put(position, sticky_hash)
            self._with_hash[sticky_hash] += 1
        if position < self._from:
            self._refused.add(sticky_hash)

    def add_all(self, positions: Iterable[tuple[int, int]]) -> None:
        """Queue positions whose entries have no key hash."""
        for position in positions:
            self.add(position)

    def first(self, most: int) -> list[Position]:
        """Return the lowest queued positions, which stay queued until removed."""
        return list(islice(self._positions, most))

    def changed(self) -> None:
        """Record that ``accepts`` may now accept positions that it refused in an earlier search."""
        self._is_changed = True

    @property
    def searching(self) -> bool:
        """True unless a search refused the whole queue, and nothing has changed since."""
        return self._is_changed or self._from != _FRONT

    def search(
        self, most: int, accepts: Callable[[int], bool], look_at: int = LOOKED_AT
    ) -> list[Position]:
        """Return the lowest positions that can be delivered now; they stay queued until removed.

        A search that finds nothing continues with the next call, however often ``changed`` is
        called: no position waits for ever behind those of a busy consumer. Hashes that the search
        has refused stay refused until its end; otherwise a later message of a key might overtake an
        earlier one.

        Args:
            most: The most positions to return.
            accepts: Returns True for a deliverable hash; called once per hash. Positions without a
                hash are deliverable.
            look_at: The approximate largest number of positions to check.
        """
        if not self.searching:
            return []
        if self._from == _FRONT:
            self._is_changed = False
            self._refused.clear()
        before = self._looked_at
        found = [Position(*pair) for pair in islice(self._deliverable(accepts, look_at), most)]
        if not found:
            self._from = self._last if self._looked_at - before >= look_at else _FRONT
        elif self._from == _FRONT or self._is_changed:
            self._from, self._is_changed = _FRONT, True
        return found

    def _deliverable(
        self, accepts: Callable[[int], bool], look_at: int
    ) -> Iterator[tuple[int, int]]:
        accepted, refused, hash_of = {0}, self._refused, self._hashes.get
        end = self._looked_at + look_at
        for pair in self._positions.pairs(self._from):
            if self._looked_at >= end:
                return
            self._looked_at += 1
            self._last = pair
            sticky_hash = hash_of(pair, 0)
            if sticky_hash in refused:
                continue
            if sticky_hash not in accepted:
                self._looked_at += ASKED
                (accepted if accepts(sticky_hash) else refused).add(sticky_hash)
            if sticky_hash in accepted:
                yield pair

    def take_looked_at(self) -> int:
        """Return the number of positions that searches have checked, and reset it to 0."""
        looked_at, self._looked_at = self._looked_at, 0
        return looked_at

    def remove(self, position: tuple[int, int]) -> bool:
        """Remove a position; return False if it is not queued."""
        if self._hashes:
            self._forget_hash(position)
        return self._positions.discard(position)

    def discard_through(self, position: Position) -> None:
        """Remove all positions up to and including the given position."""
        deque(self.discarded(position), maxlen=0)

    def discarded(self, position: Position) -> Iterator[tuple[int, int]]:
        """Remove all positions up to the given position, then forget their hashes in steps.

        Until the end ``contains_hash`` may return True for a removed hash.
        """
        self._positions.discard_through(position)
        for place in self._hashes.through(position):
            self._forget_hash(place)
            yield place

    def emptied(self) -> Iterator[None]:
        """Remove all positions of a queue that is no longer needed, in steps."""
        self._positions.clear()
        self._with_hash.clear()
        return self._hashes.emptied()

    def hash_of(self, position: tuple[int, int]) -> int:
        """Return the key hash of a queued position; 0 if it has none."""
        return self._hashes.get(position, 0)

    def contains_hash(self, sticky_hash: int) -> bool:
        """Return True if a message with a key hash is queued, so that later ones must wait."""
        return sticky_hash in self._with_hash

    def hashes(self) -> Iterator[int]:
        """Yield the key hash of each queued message, without repetition."""
        return iter(self._with_hash)

    def _forget_hash(self, position: tuple[int, int]) -> None:
        sticky_hash = self._hashes.pop(position, 0)
        if sticky_hash:
            self._with_hash[sticky_hash] -= 1
            if not self._with_hash[sticky_hash]:
                del self._with_hash[sticky_hash]
