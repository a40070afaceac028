"""The hashes that wait for their old consumer: it still holds unacknowledged messages of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from server.tasks.cooperative import in_parts

if TYPE_CHECKING:
    from collections.abc import Generator, Hashable, Iterable, Iterator

    from broker.subscriptions.key_shared.moved_hashes import MovedHashes

C = TypeVar("C", bound="Hashable")

FORGOTTEN_AT_ONCE = 1_000


class DrainingHash(NamedTuple):
    """A hash that drains, as statistics show it.

    Attributes:
        sticky_hash: The hash.
        unacked: Entries of it that the old consumer holds.
        blocked_attempts: How often a message of it had to wait.
    """

    sticky_hash: int
    unacked: int
    blocked_attempts: int


class DrainingHashes(Generic[C]):
    """Unacknowledged entries by hash, and the hashes that wait until a consumer has none left.

    Source: upstream DrainingHashesTracker.
    """

    def __init__(self) -> None:
        self._held: dict[int, dict[C, int]] = {}
        self._hashes: dict[C, set[int]] = {}
        # From whom a hash drains, and how often a message of it had to wait: plain values, as there
        # may be 65,536.
        self._draining: dict[int, C] = {}
        self._attempts: dict[int, int] = {}
        self._cleared: dict[C, int] = {}

    def __len__(self) -> int:
        return len(self._draining)

    def delivered(self, consumer: C, sticky_hash: int) -> None:
        """Note that a consumer holds one more entry of a hash."""
        held = self._held.setdefault(sticky_hash, {})
        if consumer in held:
            held[consumer] += 1
        else:
            held[consumer] = 1
            self._hashes.setdefault(consumer, set()).add(sticky_hash)

    def settled(self, consumer: C, sticky_hash: int) -> bool:
        """Note that it holds one fewer: acknowledged or given back.

        Returns:
            True if messages of this hash waited for that and may go out now.
        """
        held = self._held.get(sticky_hash, {})
        if consumer not in held:
            return False
        held[consumer] -= 1
        if held[consumer]:
            return False
        self._hashes[consumer].discard(sticky_hash)
        return self._none_left(consumer, sticky_hash)

    def moved(self, changes: Iterable[MovedHashes[C]]) -> None:
        """Let those of the moved hashes drain of which the old consumer holds something."""
        for first, last, source, _ in changes:
            if source is not None and source in self._hashes:
                for sticky_hash in self._between(source, first, last):
                    self._draining.setdefault(sticky_hash, source)

    def blocks(self, consumer: C, sticky_hash: int) -> bool:
        """Tell whether a message of a hash must wait before this consumer may have it."""
        draining = self._draining.get(sticky_hash)
        if draining is None:
            return False
        if draining is consumer:
            # The hash came back to the one that holds its messages.
            self._drains_no_more(sticky_hash)
            return False
        self._attempts[sticky_hash] = self._attempts.get(sticky_hash, 0) + 1
        return True

    def source(self, sticky_hash: int) -> C | None:
        """Return the consumer from which a hash drains; None if it does not."""
        return self._draining.get(sticky_hash)

    def lost(self, consumer: C) -> None:
        """Forget a consumer that is gone and holds nothing any more."""
        self._hashes.pop(consumer, None)
        self._cleared.pop(consumer, None)

    def emptied(self) -> Iterator[None]:
        """Forget what everyone holds, some in each step: nobody asks any more."""
        for part in (self._held, self._hashes, self._draining, self._attempts):
            while part:
                for _ in range(min(len(part), FORGOTTEN_AT_ONCE)):
                    part.popitem()
                yield

    def of(self, consumer: C) -> Generator[None, None, list[DrainingHash]]:
        """Return the hashes that drain from a consumer, in order (drainingHashes); in steps.

        Their number is drainingHashesCount, the sum of their entries
        drainingHashesUnackedMessages.
        """
        found: list[DrainingHash] = []
        for some in in_parts(sorted(self._hashes.get(consumer, ()))):
            found += [
                DrainingHash(one, self._held[one][consumer], self._attempts.get(one, 0))
                for one in some
                if self._draining.get(one) is consumer
            ]
            yield
        return found

    def cleared_total(self, consumer: C) -> int:
        """Return how many hashes have drained from it (drainingHashesClearedTotal)."""
        return self._cleared.get(consumer, 0)

    def _between(self, consumer: C, first: int, last: int) -> list[int]:
        """Return the hashes in a range of which a consumer holds something."""
        hashes = self._hashes[consumer]
        if last - first < len(hashes):
            return [one for one in range(first, last + 1) if one in hashes]
        return [one for one in hashes if first <= one <= last]

    def _none_left(self, consumer: C, sticky_hash: int) -> bool:
        """Forget that a consumer held a hash; True if the hash drained from it."""
        held = self._held[sticky_hash]
        del held[consumer]
        if not held:
            del self._held[sticky_hash]
        if self._draining.get(sticky_hash) is not consumer:
            return False
        self._drains_no_more(sticky_hash)
        self._cleared[consumer] = self._cleared.get(consumer, 0) + 1
        return True

    def _drains_no_more(self, sticky_hash: int) -> None:
        del self._draining[sticky_hash]
        self._attempts.pop(sticky_hash, None)
