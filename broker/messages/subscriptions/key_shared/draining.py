"""Draining key hashes, which wait for unacknowledged messages of their previous consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from server.tasks.cooperative import in_parts

if TYPE_CHECKING:
    from collections.abc import Generator, Hashable, Iterable, Iterator

    from broker.messages.subscriptions.key_shared.ranges import MovedHashes

C = TypeVar("C", bound="Hashable")

FORGOTTEN_AT_ONCE = 1_000


class DrainingHash(NamedTuple):
    """A key hash that waits for its previous consumer, as shown in statistics.

    Attributes:
        sticky_hash: The hash.
        unacked: The number of entries pending at the previous consumer.
        blocked_attempts: The number of deliveries that the draining has delayed.
    """

    sticky_hash: int
    unacked: int
    blocked_attempts: int


class DrainingHashes(Generic[C]):
    """The pending entries of each key hash, and the hashes that wait for a previous consumer.

    Source: upstream DrainingHashesTracker.
    """

    def __init__(self) -> None:
        self._held: dict[int, dict[C, int]] = {}
        self._hashes: dict[C, set[int]] = {}
        # The previous consumer and the blocked attempts of each draining hash: plain values, for up
        # to 65,536 hashes.
        self._draining: dict[int, C] = {}
        self._attempts: dict[int, int] = {}
        self._cleared: dict[C, int] = {}

    def __len__(self) -> int:
        return len(self._draining)

    def __iter__(self) -> Iterator[int]:
        return iter(self._draining)

    def delivered(self, consumer: C, sticky_hash: int) -> None:
        """Count an entry with a key hash as delivered to a consumer."""
        held = self._held.setdefault(sticky_hash, {})
        if consumer in held:
            held[consumer] += 1
        else:
            held[consumer] = 1
            self._hashes.setdefault(consumer, set()).add(sticky_hash)

    def settled(self, consumer: C, sticky_hash: int) -> bool:
        """Count an entry with a key hash as acknowledged, or as returned by its consumer.

        Returns:
            True if waiting messages of the hash are now deliverable.
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
        """Start draining those moved hashes whose previous consumer has pending entries."""
        for first, last, source, _ in changes:
            if source is not None and source in self._hashes:
                for sticky_hash in self._between(source, first, last):
                    self._draining.setdefault(sticky_hash, source)

    def blocks(self, consumer: C, sticky_hash: int) -> bool:
        """Return True if a consumer may not receive messages of a hash yet.

        The hash is still draining from its previous consumer.
        """
        draining = self._draining.get(sticky_hash)
        if draining is None:
            return False
        if draining is consumer:
            # The hash returned to the consumer with the pending messages.
            self._drains_no_more(sticky_hash)
            return False
        self._attempts[sticky_hash] = self._attempts.get(sticky_hash, 0) + 1
        return True

    def source(self, sticky_hash: int) -> C | None:
        """Return the previous consumer of a draining hash; None if the hash is not draining."""
        return self._draining.get(sticky_hash)

    def lost(self, consumer: C) -> None:
        """Forget a removed consumer that has no pending entries left."""
        self._hashes.pop(consumer, None)
        self._cleared.pop(consumer, None)

    def emptied(self) -> Iterator[None]:
        """Forget all pending entries in steps, because the object is no longer needed."""
        for part in (self._held, self._hashes, self._draining, self._attempts):
            while part:
                for _ in range(min(len(part), FORGOTTEN_AT_ONCE)):
                    part.popitem()
                yield

    def of(self, consumer: C) -> Generator[None, None, list[DrainingHash]]:
        """Return the sorted hashes that drain from a consumer (drainingHashes), in steps.

        The length is drainingHashesCount; the sum of the entries is drainingHashesUnackedMessages.
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
        """Return the number of hashes that have finished draining from a consumer.

        Statistics show it as drainingHashesClearedTotal.
        """
        return self._cleared.get(consumer, 0)

    def _between(self, consumer: C, first: int, last: int) -> list[int]:
        """Return the hashes from ``first`` to ``last`` that have pending entries at a consumer."""
        hashes = self._hashes[consumer]
        if last - first < len(hashes):
            return [one for one in range(first, last + 1) if one in hashes]
        return [one for one in hashes if first <= one <= last]

    def _none_left(self, consumer: C, sticky_hash: int) -> bool:
        """Forget a hash whose entries have all left a consumer; return True if it was draining."""
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
