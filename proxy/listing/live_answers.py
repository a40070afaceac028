"""Topic lists that are still on their way to clients: their bytes are not fetched again.

An answer lives as long as somebody holds a reference to its bytes: an outbound entry, or a
request for the same list that waits for the broker's word that it is still right. It is asked
for that word by the hash in the request (CommandGetTopicsOfNamespace.topics_hash), as pattern
consumers ask. Equal hashes are taken for equal lists: a CRC32C over the joined names is the
protocol's own contract, and every consumer that gives its hash relies on it.

Source: PIP-145 (the hash of a topic list). Profile pulsar and private buffers remember nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from limiter.memory.dual_limiter import LimitType

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, SharedOwner
    from proto.topics_response import TopicsAnswer

SMALLEST_LIVE_BYTES = 4_096
"""A smaller answer is fetched again: that costs less than to remember it."""


class LiveAnswer:
    """An answer on its way: its bytes, charged once as direct memory, and who holds them.

    Args:
        live: All answers on their way.
        key: The request's; a client's own hash left out.
        answer: The bytes.
        owner: Holds their direct memory; everybody they are sent to has joined it.

    Attributes:
        topics_hash: The hash of the list; None if the answer cannot be asked about.
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
        """The number of entries and requests that hold its bytes."""
        return self.owner.holders[LimitType.DIRECT_MEMORY].references

    def join(self, owner: Hashable) -> None:
        """Add a reference of ``owner``. It is one of direct memory: the heap was given back."""
        self._live.direct.shared.join(self.owner.holders[LimitType.DIRECT_MEMORY], owner)

    def joined_by(self, owners: Iterable[Hashable]) -> Self:
        """Add a reference of each; return this answer."""
        for owner in owners:
            self.join(owner)
        return self

    def leave(self, owner: Hashable) -> None:
        """Drop a reference of ``owner``; with the last one the answer is forgotten."""
        self.owner.leave(owner)
        self._live.forget_if_left(self)

    def left_by(self, owners: Iterable[Hashable]) -> None:
        """Drop a reference of each; an answer that nobody holds any more is forgotten."""
        for owner in owners:
            self.owner.leave(owner)
        self._live.forget_if_left(self)

    def or_another(self, answer: TopicsAnswer, own_hash: str | None) -> TopicsAnswer | None:
        """Return what is right by the answer of a broker that was asked with this one's hash.

        Args:
            answer: What came: the word that this one is right, or another list.
            own_hash: Of the list that the client has already.

        Returns:
            The bytes of this one; those that came, if the client would have got them for its own
            hash; else None: a word about a list that nobody has, or the list that the client has.
        """
        tail = answer.tail()
        if tail is None:
            return None
        if tail.changed:
            return answer if tail.topics_hash != own_hash else None
        confirmed = not answer.has_names and tail.topics_hash == self.topics_hash
        return self.answer if confirmed else None

    def equals(self, answer: TopicsAnswer) -> bool:
        """Return True if an answer that was fetched in full has the same list."""
        tail = answer.tail()
        if tail is None or not tail.changed or answer.rest_bytes != self.answer.rest_bytes:
            return False
        return tail.topics_hash == self.topics_hash


class LiveAnswers:
    """The newest answer to each question, while it is on its way to somebody.

    Bound: one a key, forgotten with its last reference; its bytes are those that outbound
    entries hold anyway, and that the limiter bounds.

    Args:
        limiter: The proxy's.
        remembers: Whether answers are remembered at all.

    Attributes:
        direct: The budget that the bytes are charged to.
        reused_total: How often an answer was given to another flight's clients.
    """

    def __init__(self, limiter: AsyncDualMemoryLimiter, *, remembers: bool) -> None:
        self.direct = limiter.semaphore(LimitType.DIRECT_MEMORY)
        self.reused_total = 0
        self._remembers = remembers
        self._newest: dict[Hashable, LiveAnswer] = {}

    def __len__(self) -> int:
        return len(self._newest)

    def newest(self, key: Hashable, other_than: str | None = None) -> LiveAnswer | None:
        """Return the newest answer that somebody still holds, if it has another hash than this."""
        live = self._newest.get(key)
        usable = live is not None and live.references and live.topics_hash != other_than
        return live if usable else None

    def to_send(
        self, key: Hashable, answer: TopicsAnswer, owner: SharedOwner, kept: LiveAnswer | None
    ) -> LiveAnswer:
        """Return the bytes to send: those that are on their way already, where they are the same.

        They may have been fetched by a flight for clients with another hash.

        Args:
            key: What was asked.
            answer: What the broker answered.
            owner: Holds the direct memory of the answer, if it was fetched.
            kept: The answer on its way that the broker has confirmed.
        """
        live = kept or self.newest(key)
        if live is not None and (live is kept or live.equals(answer)):
            self.reused_total += 1
            return live
        live = LiveAnswer(self, key, answer, owner)
        self._remember(live)
        return live

    def _remember(self, live: LiveAnswer) -> None:
        """Remember an answer that went on its way, if it may serve others and did not leave yet."""
        large = live.answer.command_bytes >= SMALLEST_LIVE_BYTES
        if self._remembers and large and live.topics_hash is not None and live.references:
            self._newest[live.key] = live

    def forget_left(self, key: Hashable) -> None:
        """Forget the answer to a question if nobody holds it any more."""
        live = self._newest.get(key)
        if live is not None:
            self.forget_if_left(live)

    def forget_if_left(self, live: LiveAnswer) -> None:
        """Forget an answer that nobody holds any more."""
        if not live.references and self._newest.get(live.key) is live:
            del self._newest[live.key]
