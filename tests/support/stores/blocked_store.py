"""Holds a broker's listings exactly inside the store."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.service import BrokerService
    from broker.stores.store import Mode, NamespaceSnapshot
    from broker.topic_lists.sequence import TopicListing
    from proto.names import NamespaceName


class BlockedStore:
    """A store that counts requests and answers on command.

    Attributes:
        asked: The requested namespaces, in order.
        go_on: Set to release waiting and later listings.
    """

    def __init__(self, broker: BrokerService, *, blocked: bool = True) -> None:
        self._original = broker.store.snapshot
        self.asked: list[str] = []
        self.go_on = asyncio.Event()
        if not blocked:
            self.go_on.set()
        broker.store.snapshot = self._snapshot
        self._at_once = broker.store.listing_at_once
        broker.store.listing_at_once = self._nothing_at_once

    async def _snapshot(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        self.asked.append(str(namespace))
        await self.go_on.wait()
        return await self._original(namespace)

    def _nothing_at_once(self, namespace: NamespaceName, mode: Mode) -> TopicListing | None:
        """Answer no listing immediately, so that every listing is requested."""
        known = self._at_once(namespace, mode)
        return None if known is None or len(known) else known
