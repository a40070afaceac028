"""How much heap a listing reserves before it is made (``floodgateSizeEstimate``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.estimate import (
    FIRST_ESTIMATE_BYTES,
    PROPOSAL_ESTIMATE_BYTES,
    ResultHolder,
    SizeEstimate,
    TopicListSizeResultCache,
)

if TYPE_CHECKING:
    from broker.listing import TopicLister
    from broker.stores.store import Mode
    from proto.names import NamespaceName


class ListingEstimates:
    """Estimates for listings of this broker.

    Bound: 10,000 remembered sizes.
    """

    def __init__(self, policy: SizeEstimate, lister: TopicLister) -> None:
        self._policy = policy
        self._lister = lister
        self._sizes = TopicListSizeResultCache()

    def of(self, namespace: NamespaceName, mode: Mode) -> ListingEstimate:
        """Return the estimate of one request."""
        return ListingEstimate(self._policy, self._lister, namespace, mode, self._sizes)


class ListingEstimate:
    """One request's estimate: asked before the listing, told the truth after it."""

    def __init__(
        self,
        policy: SizeEstimate,
        lister: TopicLister,
        namespace: NamespaceName,
        mode: Mode,
        sizes: TopicListSizeResultCache,
    ) -> None:
        self._policy = policy
        self._lister = lister
        self._namespace = namespace
        self._mode = mode
        self._holder: ResultHolder = sizes.holder((namespace, mode))

    async def size(self) -> int:
        """Return the bytes to reserve; under ``last`` this may wait for the first measurement."""
        if self._policy is SizeEstimate.PROPOSAL:
            return PROPOSAL_ESTIMATE_BYTES
        if self._policy is SizeEstimate.LAST:
            return await self._holder.size()
        known = self._lister.known_bytes(self._namespace, self._mode)
        if known is None:
            known = self._holder.last_size_bytes
        return FIRST_ESTIMATE_BYTES if known is None else known

    def actual(self, size_bytes: int) -> None:
        """Remember the true size."""
        self._holder.update_size(size_bytes)

    def failed(self) -> None:
        """Let those go on who wait for this request's measurement."""
        self._holder.reset_if_initializing()
