"""Transfer of bundles to other brokers, and the release of deleted namespaces' bundles."""

from __future__ import annotations

import logging
from itertools import cycle
from typing import TYPE_CHECKING

from broker.ownership import tables
from broker.ownership.ownership import NotServedError
from limiter.clock import clock_sleep
from proto.excerpts import one_line
from server.configuration.addresses import NO_URLS, ServerUrls

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    import proto.PulsarApi_pb2 as pb
    from broker.ownership.ownership import Bundle
    from broker.stores.postgresql.connections import Connection
    from limiter.clock import Clock
    from proto.names import NamespaceName, TopicName

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.02
FORGET_SECONDS = 60.0
"""Longest wait for peers to close the topics of deleted namespaces, above a dead peer's lease."""
TELL_SECONDS = 1.0
"""Seconds between notifications of a deletion; a peer misses those while it is not connected."""
NAMED_IN_A_WARNING = 3
WAIT_SECONDS = 2.0
"""Longest wait for other brokers to take over bundles. Clients look up the topics of the remaining
bundles. """


async def hand_over(
    use: Callable[[], AbstractAsyncContextManager[Connection]],
    bundles: Sequence[Bundle],
    clock: Clock,
    heirs: Sequence[str] = (),
) -> dict[Bundle, ServerUrls]:
    """Offer bundles that have no owner to live brokers; return the bundles' new owners.

    Args:
        use: Borrows a connection to the database, or raises StoreError.
        bundles: The released bundles.
        clock: For delays.
        heirs: Ids of the brokers to offer the bundles to; all live brokers if empty.

    Returns:
        The addresses of the owners.

    Raises:
        StoreError: The database does not answer.
    """
    async with use() as connection:
        heirs = heirs or await tables.heirs(connection)
        for bundle, heir in zip(bundles, cycle(heirs), strict=False):
            await tables.offer(connection, bundle, heir)
    found: dict[Bundle, ServerUrls] = {}
    give_up = clock.now() + WAIT_SECONDS
    while heirs and len(found) < len(bundles):
        async with use() as connection:
            for bundle in bundles:
                if clock.now() >= give_up:
                    return found
                row = None if bundle in found else await tables.owner_of(connection, bundle)
                if row is not None and row.hashes == bundle.hashes:
                    found[bundle] = row.urls
        if len(found) < len(bundles):
            await clock_sleep(clock, LOOK_SECONDS)
    return found


async def have_forgotten(
    use: Callable[[], AbstractAsyncContextManager[Connection]],
    namespaces: Sequence[NamespaceName],
    broker: str,
    clock: Clock,
) -> None:
    """Make all live brokers release the bundles of deleted namespaces, and wait for the release.

    Args:
        use: Borrows a connection to the database, or raises StoreError.
        namespaces: The deleted namespaces.
        broker: Id of the broker that deleted the namespaces and has released their bundles.
        clock: For delays.

    Raises:
        StoreError: The database does not answer.
    """
    names, tell_at = list(map(str, namespaces)), clock.now()
    give_up = tell_at + FORGET_SECONDS
    async with use() as connection:
        if not await tables.are_remembered(connection, names):
            return
    while True:
        async with use() as connection:
            if clock.now() >= tell_at:
                await tables.tell_deleted(connection, names, broker)
                tell_at = clock.now() + TELL_SECONDS
            owner = await tables.owner_among(connection, names)
            if owner is None or clock.now() >= give_up:
                await tables.namespaces_deleted(connection, names)
                break
        await clock_sleep(clock, LOOK_SECONDS)
    if owner is not None:
        more = " and more" if len(names) > NAMED_IN_A_WARNING else ""
        text = ", ".join(names[:NAMED_IN_A_WARNING]) + more
        logger.warning("%s has not forgotten all of these deleted namespaces: %s", owner, text)


async def heir_at(connection: Connection, bundle: Bundle, address: str) -> str:
    """Return the id of the broker at an address, if it may own a bundle.

    Raises:
        NotServedError: No live broker has the address, or the bundle's messages are in another
            broker's database.
    """
    brokers = await tables.registrations(connection)
    for broker, (urls, store) in brokers.items():
        if address in (urls.service, urls.service_tls, urls.web_address):
            if await tables.fits(connection, bundle, store):
                return broker
            raise NotServedError(
                f"the messages of bundle {bundle} are in the database of its broker"
            )
    known = ", ".join(sorted(urls.any_service for urls, _ in brokers.values()))
    raise NotServedError(
        f"no live broker has the address {one_line(address)}; live brokers: {known}"
    )


def urls_of_topic(
    owners: Mapping[Bundle, ServerUrls],
) -> Callable[[TopicName], ServerUrls]:
    """Return a function that returns the addresses of the broker that owns a topic's bundle.

    The function returns NO_URLS if the bundle has no owner.
    """
    by_namespace: dict[NamespaceName, list[tuple[Bundle, ServerUrls]]] = {}
    for bundle, urls in owners.items():
        by_namespace.setdefault(bundle.namespace, []).append((bundle, urls))

    def urls_of(topic: TopicName) -> ServerUrls:
        bundles = by_namespace.get(topic.namespace, ())
        return next((urls for bundle, urls in bundles if bundle.holds(topic)), NO_URLS)

    return urls_of


def tell_new_owner(
    closed: pb.CommandCloseProducer | pb.CommandCloseConsumer, owner: ServerUrls
) -> None:
    """Write the addresses of a topic's new owner into a CLOSE command for the client.

    Without addresses, clients look the topic up.
    """
    if owner.service:
        closed.assignedBrokerServiceUrl = owner.service
    if owner.service_tls:
        closed.assignedBrokerServiceUrlTls = owner.service_tls
