"""Messages delivered by a subscription before new messages."""

from __future__ import annotations

from collections import Counter, deque
from itertools import islice
from typing import TYPE_CHECKING

from broker.messages.position import Position
from broker.messages.subscriptions.place_map import PlaceMap
from broker.messages.subscriptions.position_set import PositionSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class ReplayQueue:
    """Positions to deliver again, in (ledger, entry) order.

    Each was returned by a consumer, was delayed, or was read without a ready consumer.

    Source: upstream MessageRedeliveryController.
    """

    def __init__(self) -> None:
        self._positions = PositionSet()
        # Only Key_Shared positions with a hash; 0 means no hash.
        self._hashes = PlaceMap()
        self._with_hash: Counter[int] = Counter()
        self._looked_at = 0

    def __len__(self) -> int:
        return len(self._positions)

    def __bool__(self) -> bool:
        return self._positions.count > 0

    def __contains__(self, position: object) -> bool:
        return position in self._positions

    def add(self, position: tuple[int, int], sticky_hash: int = 0) -> None:
        """Queue a position; a queued position without a hash gets the hash."""
        self._positions.add(position)
        if sticky_hash and position not in self._hashes:
            self._hashes.put(position, sticky_hash)
            self._with_hash[sticky_hash] += 1

    def add_all(self, positions: Iterable[tuple[int, int]]) -> None:
        """Queue positions without a hash."""
        add = self._positions.add
        for position in positions:
            add(position)

    def first(
        self, most: int, accepts: Callable[[int], bool] | None = None, search: int = 20_000
    ) -> list[Position]:
        """Return the first positions; they stay queued until removed.

        Args:
            most: The most positions to return.
            accepts: Returns True for a deliverable hash; called once per hash. Positions without a
                hash are always returned. None returns all.
            search: The most positions to check.
        """
        if accepts is None:
            return list(islice(self._positions, most))
        found: list[Position] = []
        answers: dict[int, bool] = {0: True}
        hash_of = self._hashes.get
        for pair in islice(self._positions.pairs(), search):
            if len(found) == most:
                break
            self._looked_at += 1
            sticky_hash = hash_of(pair, 0)
            answer = answers.get(sticky_hash)
            if answer is None:
                answer = answers[sticky_hash] = accepts(sticky_hash)
            if answer:
                found.append(Position(*pair))
        return found

    def take_looked_at(self) -> int:
        """Return and reset the number of checked positions."""
        looked_at, self._looked_at = self._looked_at, 0
        return looked_at

    def remove(self, position: tuple[int, int]) -> bool:
        """Remove a position; return False if not queued."""
        if self._hashes:
            self._forget_hash(position)
        return self._positions.discard(position)

    def discard_through(self, position: Position) -> None:
        """Remove all up to and including a position."""
        deque(self.discarded(position), maxlen=0)

    def discarded(self, position: Position) -> Iterator[tuple[int, int]]:
        """Remove all up to and including a position, and yield while forgetting hashes.

        Until the end ``contains_hash`` may return True for a removed hash.
        """
        self._positions.discard_through(position)
        for place in self._hashes.through(position):
            self._forget_hash(place)
            yield place

    def emptied(self) -> Iterator[None]:
        """Remove all positions of an unneeded queue in steps."""
        self._positions.clear()
        self._with_hash.clear()
        return self._hashes.emptied()

    def hash_of(self, position: tuple[int, int]) -> int:
        """Return the hash of a queued position; 0 without a hash."""
        return self._hashes.get(position, 0)

    def contains_hash(self, sticky_hash: int) -> bool:
        """Return True if a message of a hash is queued: later messages must wait behind."""
        return sticky_hash in self._with_hash

    def hashes(self) -> Iterator[int]:
        """Yield the hashes of queued messages, each once."""
        return iter(self._with_hash)

    def _forget_hash(self, position: tuple[int, int]) -> None:
        sticky_hash = self._hashes.pop(position, 0)
        if sticky_hash:
            self._with_hash[sticky_hash] -= 1
            if not self._with_hash[sticky_hash]:
                del self._with_hash[sticky_hash]
