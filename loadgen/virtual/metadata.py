"""How long listings take with a metadata store, for simulations of a real Pulsar.

A real Pulsar queries its metadata store for each listing, so many listings are in flight, each with
the small heap of a first estimate. A thread reads the names, once for all listings of a namespace
that arrive meanwhile. With the heap of the whole list, the pattern is matched and the answer made
for each request; then the answer waits for direct memory, held until written. Several threads of
small pools do this work for lists, and the connections' event loops for watches: together they have
the machine's cores.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

from limiter.single_flight import SingleFlight
from loadgen.virtual.processor import Threads
from proto.names import NamespaceName

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from broker.ownership.ownership import Owner
    from broker.service import BrokerService
    from broker.stores.snapshots.snapshot import NamespaceSnapshot
    from broker.topic_lists.block import Totals
    from broker.topic_lists.sequence import TopicListing
    from broker.watches.registry import Watch
    from loadgen.documents.service_times import ServiceTimes
    from loadgen.virtual.processor import Processor
    from proto.names import TopicName

_EVERYTHING = ".*"
_NAME_BYTES = 100
"""Length of a name in the service times."""


def take_time(broker: BrokerService, processor: Processor) -> None:
    """Make listings, watches and lookups of a simulated broker take their service times."""
    times = processor.times
    threads = Threads(processor, times.threads)
    if times.match_name or times.watch_name or times.answer_name:
        _let_patterns_cost(broker, threads, times)
        if broker.watches._profile.lists_for_each_request:
            _let_answers_cost(broker, threads, times)
    if times.list_wait or times.list_name:
        _let_store_wait(broker, threads, times)
    if times.first_lookup:
        _let_first_lookups_cost(broker, processor)


def _let_patterns_cost(broker: BrokerService, threads: Threads, times: ServiceTimes) -> None:
    # Shared by listings and watches.
    pattern_filter, watches = broker.watches._context.pattern_filter, broker.watches
    at_once, find_set, store = pattern_filter.filter, watches._find_set, broker.store.snapshot
    each_alone = watches._profile.lists_for_each_request

    async def match(pattern: str, names: Totals, name: float) -> None:
        if pattern.rpartition("://")[2] != _EVERYTHING:
            await threads.work(name * names.joined_bytes / _NAME_BYTES)

    async def matched(listing: TopicListing, pattern: str) -> TopicListing:
        kept = await at_once(listing, pattern)
        of_watches = "://" not in pattern
        if not (of_watches and each_alone):
            await match(pattern, listing.totals, times.match_name)
        return kept

    async def set_found(watch: Watch) -> None:
        await find_set(watch)
        # Watches of a pattern share a set here; a real Pulsar matches all names for each watch.
        if each_alone and (found := await store(watch.namespace.namespace)) is not None:
            await match(watch.pattern, found.persistent.totals, times.watch_name)

    pattern_filter.filter = matched  # type: ignore[method-assign]
    watches._find_set = set_found  # type: ignore[method-assign]


def _let_answers_cost(broker: BrokerService, threads: Threads, times: ServiceTimes) -> None:
    # Lists use the same memory.
    memory = broker.watches._context.memory
    granted = memory.direct

    async def direct(key: Hashable, size_bytes: int, *owner: Any) -> Callable[[], object]:  # noqa: ANN401 - as ResponseMemory's
        await threads.work(times.answer_name * size_bytes / _NAME_BYTES)
        return await granted(key, size_bytes, *owner)

    memory.direct = direct  # type: ignore[method-assign, assignment]


def _let_first_lookups_cost(broker: BrokerService, processor: Processor) -> None:
    at_once, owned = broker.ownership.acquire, set[NamespaceName]()

    async def acquire(topic: TopicName, *, authoritative: bool = False) -> Owner:
        if topic.namespace not in owned:
            owned.add(topic.namespace)
            processor.charge(processor.times.first_lookup)
        return await at_once(topic, authoritative=authoritative)

    broker.ownership.acquire = acquire  # type: ignore[method-assign]


def _let_store_wait(broker: BrokerService, threads: Threads, times: ServiceTimes) -> None:
    at_once, flights = broker.store.snapshot, SingleFlight[None]()
    # A real broker answers a lookup in 0.1 ms, for any number of topics.
    broker.lookup_handler._store = copy(broker.store)

    async def snapshot(namespace: NamespaceName) -> NamespaceSnapshot | None:
        found = await at_once(namespace)
        names = 0 if found is None else found.persistent.totals.joined_bytes / _NAME_BYTES
        # As upstream: later listings of a namespace join the query in flight.
        work = partial(threads.work, times.list_name * names, times.list_wait)
        await flights.join(namespace, work)
        return found

    broker.store.snapshot = snapshot  # type: ignore[method-assign]
