"""Estimates of the heap memory that a topic list will need (``floodgateSizeEstimate``)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker.listing.lister import NO_PROPERTIES
from limiter.memory.size_estimate import (
    FIRST_ESTIMATE_BYTES,
    PROPOSAL_ESTIMATE_BYTES,
    ResultHolder,
    SizeEstimate,
    SizeGuess,
    TopicListSizeResultCache,
    charged_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from broker.listing.lister import TopicLister
    from broker.stores.store import Mode
    from broker.topic_lists.sequence import TopicListing
    from proto.names import NamespaceName


class ListingEstimates:
    """Estimates how much heap memory a topic list will need, before the topics are listed.

    A plug-in lists a namespace differently for each set of properties: their sizes are cached
    separately. Policy ``last`` keys guesses by namespace and mode only, as shipped: a selective
    list and the full list share a guess.

    Bound: 10,000 cached sizes.

    Args:
        policy: How sizes are estimated (floodgateSizeEstimate).
        lister: Knows the sizes of lists whose namespaces are in memory.
        anyone_resets: See limiter.memory.size_estimate.SizeGuess.

    Attributes:
        exact: True if a list that is in memory is charged with its true size from the start.
    """

    def __init__(self, policy: SizeEstimate, lister: TopicLister, *, anyone_resets: bool) -> None:
        self._policy = policy
        self._lister = lister
        self._anyone_resets = anyone_resets
        self._sizes = TopicListSizeResultCache()
        self.exact = policy is SizeEstimate.EXACT

    def of(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str] = NO_PROPERTIES
    ) -> ListingEstimate:
        """Return the estimated heap memory of the topic list that a request asks for."""
        holder = self._sizes.holder(self._key(namespace, mode, properties))
        known_bytes = partial(self._lister.known_bytes, namespace, mode, properties)
        return ListingEstimate(self._policy, holder, known_bytes, anyone_resets=self._anyone_resets)

    def expected_bytes(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str] = NO_PROPERTIES
    ) -> int | None:
        """Return the probable heap memory of a list in bytes; None if unknown."""
        known = self._lister.known_bytes(namespace, mode, properties)
        if known is not None:
            return known
        return self._sizes.holder(self._key(namespace, mode, properties)).last_size_bytes

    def _key(self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str]) -> Hashable:
        if self._policy is SizeEstimate.LAST or not properties:
            return (namespace, mode)
        return (namespace, mode, frozenset(properties.items()))


class ListingEstimate(SizeGuess):
    """The estimated heap memory of a requested topic list, replaced by the list's actual size."""

    __slots__ = ("_known_bytes", "_policy")

    def __init__(
        self,
        policy: SizeEstimate,
        holder: ResultHolder,
        known_bytes: Callable[[], int | None],
        *,
        anyone_resets: bool,
    ) -> None:
        super().__init__(holder, anyone_resets=anyone_resets)
        self._policy = policy
        self._known_bytes = known_bytes

    async def size(self) -> int:
        """Return the number of heap bytes to reserve for the topic list.

        Under the policy ``last`` this may wait until a concurrent request has determined the size.
        """
        if self._policy is SizeEstimate.PROPOSAL:
            return PROPOSAL_ESTIMATE_BYTES
        if self._policy is SizeEstimate.LAST:
            return await super().size()
        known = self._known_bytes()
        if known is None:
            known = self._holder.last_size_bytes
        return FIRST_ESTIMATE_BYTES if known is None else known

    def listed(self, listing: TopicListing) -> int:
        """Return the heap bytes of a topic list, and remember the number for later estimates."""
        size_bytes = charged_bytes(self._policy, listing.estimated_bytes, len(listing))
        self.actual(size_bytes)
        return size_bytes

    def refused_before(self, size_bytes: int) -> bool:
        """Return True if a size of the list is remembered already; then remember ``size_bytes``.

        As shipped, a refused size becomes the estimate, and later requests stay unanswered.
        """
        before = self._holder.last_size_bytes is not None
        self.actual(size_bytes)
        return before
