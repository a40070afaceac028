"""Listings of a namespace for watches, admitted by the heap limit before names are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.errors import illegal_argument, too_large
from broker.stores.changes import StoreError
from limiter.clock import clock_sleep
from limiter.errors import PermitAcquireError, PermitTooLargeError
from limiter.memory.dual_limiter import LimitType
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from broker.listing.estimates import ListingEstimate, ListingEstimates
    from broker.listing.lister import TopicLister
    from broker.patterns.filter import PatternFilter
    from broker.stores.store import MetadataStore
    from broker.watches.registry import WatchRegistry
    from broker.watches.rules import WatchProfile
    from broker.watches.sender import WatchSender
    from limiter.clock import Clock
    from limiter.memory.response_memory import ResponseMemory
    from proto.names import NamespaceName
    from server.connection.served_connection import ServedConnection

PERSISTENT = pb.CommandGetTopicsOfNamespace.PERSISTENT


@dataclass(frozen=True, slots=True)
class WatchContext:
    """The broker's parts used by watches."""

    store: MetadataStore
    lister: TopicLister
    estimates: ListingEstimates
    pattern_filter: PatternFilter
    memory: ResponseMemory
    clock: Clock


class NamespaceListings:
    """Lists namespaces for watches."""

    def __init__(
        self, context: WatchContext, profile: WatchProfile, registry: WatchRegistry
    ) -> None:
        self._context = context
        self._profile = profile
        self._registry = registry

    async def list(self, namespace: NamespaceName, sender: WatchSender) -> None:
        """List a namespace, requesting its permit until granted or the watch ends.

        Raises:
            RequestError: The estimate exceeds the heap limit, or the store cannot be read.
        """
        while not sender.closed:
            estimate = self._context.estimates.of(namespace, PERSISTENT)
            try:
                await self._list_once(namespace, sender.cnx, estimate)
            except PermitAcquireError:
                self._registry.totals.retries += 1
                await clock_sleep(self._context.clock, sender.backoff.next())
            except PermitTooLargeError as error:
                raise limit_exceeded(
                    error, "heap estimate", LimitType.HEAP_MEMORY, self._profile
                ) from None
            except StoreError as error:
                raise RequestError(pb.MetadataError, str(error)) from None
            else:
                sender.backoff.reset()
                return
            finally:
                estimate.failed()

    async def _list_once(
        self, namespace: NamespaceName, cnx: ServedConnection, estimate: ListingEstimate
    ) -> None:
        reserved = await estimate.size()
        key = (namespace, PERSISTENT, "watch")
        async with self._context.memory.heap(key, reserved, cnx, str(namespace)) as heap:
            listing = await self._context.lister.list_topics(namespace, PERSISTENT)
            await heap.resize(estimate.actual(listing))
            if not self._profile.lists_for_each_request:
                watched = self._registry.namespace(namespace)
                if not watched.is_read:
                    self._registry.check_room(listing.estimated_bytes)
                await watched.read()


def limit_exceeded(
    error: PermitTooLargeError, what: str, limit_type: LimitType, profile: WatchProfile
) -> RequestError:
    """Return the refusal of a request over a limit."""
    if profile.java_errors:
        return illegal_argument(error)
    return too_large(error, what, limit_type)
