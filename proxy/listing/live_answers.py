"""Topic lists on their way to clients, which are reused instead of fetched again.

An answer lives while its bytes are referenced: by an outbound entry, or by a request for the same
list waiting for the broker's confirmation. The confirmation is requested by the hash in the request
(CommandGetTopicsOfNamespace.topics_hash), as pattern consumers do. Equal hashes mean equal lists: a
CRC32C over the joined names is the protocol's own contract, relied on by every consumer sending its
hash.

Source: PIP-145 (the hash of a topic list). Profile pulsar and private buffers cache no answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from limiter.memory.dual_limiter import LimitType

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, SharedOwner
    from proto.topics_response import TopicsAnswer

SMALLEST_LIVE_BYTES = 4_096
"""Smaller answers are fetched again: cheaper than caching."""


class LiveAnswer:
    """A topic list that is being sent to clients, charged only once as direct memory.

    Args:
        live: All answers still being sent.
        key: The request's key, without a client's own hash.
        answer: The bytes.
        owner: Holds the direct memory; joined by every recipient.

    Attributes:
        topics_hash: The hash of the list; None if the answer cannot be confirmed.
    """

    __slots__ = ("_live", "answer", "key", "owner", "topics_hash")

    def __init__(
        self, live: LiveAnswers, key: Hashable, answer: TopicsAnswer, owner: SharedOwner
    ) -> None:
        tail = answer.tail()
        self._live = live
        self.owner = owner
        self.key = key
        self.answer = answer
        self.topics_hash = tail.topics_hash if tail is not None and tail.changed else None

    @property
    def references(self) -> int:
        """Number of outbound entries and requests that still need the bytes."""
        return self.owner.holders[LimitType.DIRECT_MEMORY].references

    def join(self, owner: Hashable) -> None:
        """Add ``owner`` as a holder of the bytes' direct memory; no heap memory is held."""
        self._live.direct.shared.join(self.owner.holders[LimitType.DIRECT_MEMORY], owner)

    def joined_by(self, owners: Iterable[Hashable]) -> Self:
        """Add several holders of the bytes' direct memory; return this answer."""
        for owner in owners:
            self.join(owner)
        return self

    def leave(self, owner: Hashable) -> None:
        """Remove ``owner`` as a holder; the last one to leave also drops the cached answer."""
        self.owner.leave(owner)
        self._live.forget_if_left(self)

    def left_by(self, owners: Iterable[Hashable]) -> None:
        """Remove several holders; the last one to leave also drops the cached answer."""
        for owner in owners:
            self.owner.leave(owner)
        self._live.forget_if_left(self)

    def or_another(self, answer: TopicsAnswer, own_hash: str | None) -> TopicsAnswer | None:
        """Return the list to send, given the broker's reply whether this one is current.

        Args:
            answer: A confirmation of this answer, or a different list.
            own_hash: Hash of the client's current list.

        Returns:
            This answer's bytes after a confirmation; the received bytes, if the client's own hash
            would have produced them; else None: the confirmation of an unknown list, or the
            client's own list.
        """
        tail = answer.tail()
        if tail is None:
            return None
        if tail.changed:
            return answer if tail.topics_hash != own_hash else None
        confirmed = not answer.has_names and tail.topics_hash == self.topics_hash
        return self.answer if confirmed else None

    def equals(self, answer: TopicsAnswer) -> bool:
        """Return True if a completely received answer has the same list as this answer."""
        tail = answer.tail()
        if tail is None or not tail.changed or answer.rest_bytes != self.answer.rest_bytes:
            return False
        return tail.topics_hash == self.topics_hash


class LiveAnswers:
    """Cache of the newest answer to each request, as long as it is being sent to any client.

    Bound: one answer a key, dropped with its last reference; the bytes are held by outbound entries
    anyway, and bounded by the limiter.

    Args:
        limiter: The proxy's limiter.
        remembers: Whether answers are cached at all.

    Attributes:
        direct: The budget charged for the bytes.
        reused_total: Number of answers reused for another flight's clients.
    """

    def __init__(self, limiter: AsyncDualMemoryLimiter, *, remembers: bool) -> None:
        self.direct = limiter.semaphore(LimitType.DIRECT_MEMORY)
        self.reused_total = 0
        self._remembers = remembers
        self._newest: dict[Hashable, LiveAnswer] = {}

    def __len__(self) -> int:
        return len(self._newest)

    def newest(self, key: Hashable, other_than: str | None = None) -> LiveAnswer | None:
        """Return the newest answer being sent for ``key``, unless its hash is ``other_than``."""
        live = self._newest.get(key)
        usable = live is not None and live.references and live.topics_hash != other_than
        return live if usable else None

    def to_send(
        self, key: Hashable, answer: TopicsAnswer, owner: SharedOwner, kept: LiveAnswer | None
    ) -> LiveAnswer:
        """Return the answer to send: an equal one that is already being sent, or the given one.

        The bytes may have been fetched by a flight for clients with another hash.

        Args:
            key: The request's key.
            answer: The broker's answer.
            owner: Holds the direct memory of the answer, if fetched.
            kept: The answer confirmed by the broker.
        """
        live = kept or self.newest(key)
        if live is not None and (live is kept or live.equals(answer)):
            self.reused_total += 1
            return live
        live = LiveAnswer(self, key, answer, owner)
        self._remember(live)
        return live

    def _remember(self, live: LiveAnswer) -> None:
        """Cache an answer if it is large, is still being sent, and a broker can confirm it."""
        large = live.answer.command_bytes >= SMALLEST_LIVE_BYTES
        if self._remembers and large and live.topics_hash is not None and live.references:
            self._newest[live.key] = live

    def forget_left(self, key: Hashable) -> None:
        """Drop the cached answer for a key if no client needs its bytes any more."""
        live = self._newest.get(key)
        if live is not None:
            self.forget_if_left(live)

    def forget_if_left(self, live: LiveAnswer) -> None:
        """Drop an answer from the cache if no client needs its bytes any more."""
        if not live.references and self._newest.get(live.key) is live:
            del self._newest[live.key]
