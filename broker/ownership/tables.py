"""Database tables of live brokers and of owned bundles, and the queries on these tables.

Only the database's clock decides which brokers live: a broker's row has the end of the lease, and
the first peer to find the lease expired deletes the row and the ownership of the bundles. Every
owner has a row, so a broker without a row cannot renew.

Every transaction locks rows of brokers before rows of bundles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.bundles import BundleRange
from broker.ownership.ownership import Bundle, Owner
from server.configuration.addresses import ServerUrls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.stores.postgresql.connections import Connection

CHANNEL = "floodgate_ownership"
"""Channel of notifications: release a bundle; own a bundle, with the heir's id; forget a namespace,
with the id of the deleting broker."""
MEMORY_PREFIX = "memory-"
"""Prefix of the identity of a store of messages in a process's memory."""
DELETED = f"{MEMORY_PREFIX}deleted"
"""The store named in a bundle's row after its namespace was deleted: remaining messages are
void."""
_CREATION_LOCK = 0x6F776E6572
_TABLES = """
CREATE TABLE IF NOT EXISTS floodgate.brokers (
    id text PRIMARY KEY,
    service_url text NOT NULL,
    web_service_url text NOT NULL,
    store text NOT NULL,
    lease_until timestamptz NOT NULL);
ALTER TABLE floodgate.brokers
    ADD COLUMN IF NOT EXISTS service_url_tls text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS web_service_url_tls text NOT NULL DEFAULT '';
CREATE TABLE IF NOT EXISTS floodgate.bundles (
    namespace text COLLATE "C" NOT NULL,
    low bigint NOT NULL,
    high bigint NOT NULL,
    owner text,
    store text NOT NULL,
    PRIMARY KEY (namespace, low, high));
CREATE INDEX IF NOT EXISTS bundles_by_owner ON floodgate.bundles (owner);
"""
_URLS = "service_url, web_service_url, service_url_tls, web_service_url_tls"
"""The columns of a broker's addresses, in the order of ServerUrls."""
_OWNERS_URLS = ", ".join(f"o.{column}" for column in _URLS.split(", "))
_DEAD = "lease_until <= clock_timestamp()"
_OVERLAPPING = "namespace = $1 AND low < $3 AND high > $2"
_OWNED = "namespace = $1 AND low = $2 AND high = $3 AND owner = $4"


class Registration(NamedTuple):
    """The addresses and the message store of a broker, as other brokers see them.

    Attributes:
        urls: The broker's addresses.
        store: Identity of the broker's store of messages.
    """

    urls: ServerUrls
    store: str


class BundleRow(NamedTuple):
    """A bundle's row in the database, joined with the addresses of its owner.

    Attributes:
        hashes: The bundle's range, which may differ from the requested range.
        owner: Id of the owner, a live broker.
        store: Identity of the store with the bundle's messages; another than the owner's until the
            owner has deleted its old messages.
        urls: The owner's addresses.
    """

    hashes: BundleRange
    owner: str
    store: str
    urls: ServerUrls


async def make_tables(connection: Connection) -> None:
    """Create the tables of brokers and bundles, if they do not exist."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _CREATION_LOCK)
        await connection.execute(_TABLES)


# -- brokers --------------------------------------------------------------------------------------


async def register(
    connection: Connection, new: str, old: str, broker: Registration, lease_seconds: float
) -> None:
    """Insert a broker's row with a new lease, and delete its earlier rows.

    Args:
        connection: To the database.
        new: The broker's id from now on.
        old: The broker's earlier id in the same process; empty at the first registration.
        broker: The broker's addresses and store.
        lease_seconds: Duration of the lease.
    """
    # A store on disk is open in a single process at a time: the previous broker has ended.
    outlives = not broker.store.startswith(MEMORY_PREFIX)
    async with connection.transaction():
        await _bury(connection, "id = $1 OR ($2 AND store = $3)", old, outlives, broker.store)
        await connection.execute(
            f"INSERT INTO floodgate.brokers (id, {_URLS}, store, lease_until) "
            "VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp() + "
            "$7::double precision * interval '1 second')",
            new,
            *broker.urls,
            broker.store,
            lease_seconds,
        )


async def renew(connection: Connection, broker: str, lease_seconds: float) -> bool:
    """Extend a broker's lease; return False if the lease has expired or was removed."""
    done = await connection.execute(
        "UPDATE floodgate.brokers SET lease_until = clock_timestamp() + "
        "$2::double precision * interval '1 second' "
        "WHERE id = $1 AND lease_until > clock_timestamp()",
        broker,
        lease_seconds,
    )
    return done == "UPDATE 1"


async def leave(connection: Connection, broker: str) -> None:
    """Delete a broker's row at its shutdown, which ends its ownership of bundles."""
    async with connection.transaction():
        await _bury(connection, "id = $1", broker)


async def live_brokers(connection: Connection) -> Sequence[str]:
    """Return the web address of each broker with a valid lease, as ``host:port``."""
    query = f"SELECT {_URLS} FROM floodgate.brokers WHERE NOT {_DEAD}"
    rows = await connection.fetch(query)
    return sorted({ServerUrls(*map(str, row)).web_address for row in rows})


async def registrations(connection: Connection) -> dict[str, Registration]:
    """Return the addresses and message store of each live broker, by broker id."""
    query = f"SELECT id, store, {_URLS} FROM floodgate.brokers WHERE NOT {_DEAD}"
    rows = await connection.fetch(query)
    return {
        str(broker): Registration(ServerUrls(*map(str, urls)), str(store))
        for broker, store, *urls in rows
    }


async def _bury(connection: Connection, condition: str, *values: object) -> None:
    rows = await connection.fetch(
        f"DELETE FROM floodgate.brokers WHERE {condition} RETURNING id",
        *values,
    )
    if rows:
        await connection.execute(
            "UPDATE floodgate.bundles SET owner = NULL WHERE owner = ANY($1::text[])",
            [row[0] for row in rows],
        )


# -- bundles --------------------------------------------------------------------------------------


async def owner_of(connection: Connection, bundle: Bundle) -> BundleRow | None:
    """Return the live owner of a bundle, or of one that overlaps it; None without an owner."""
    row = await connection.fetchrow(
        f"SELECT b.low, b.high, o.id, b.store, {_OWNERS_URLS} "
        "FROM floodgate.bundles b JOIN floodgate.brokers o ON o.id = b.owner "
        "WHERE b.namespace = $1 AND b.low < $3 AND b.high > $2 "
        "AND o.lease_until > clock_timestamp() LIMIT 1",
        *_place(bundle),
    )
    if row is None:
        return None
    low, high, owner, store, *urls = row
    return BundleRow(BundleRange(low, high), owner, store, ServerUrls(*urls))


async def claim(connection: Connection, bundle: Bundle, broker: str) -> str | None:
    """Make a broker the owner of a bundle; return the store that has the bundle's messages.

    The bundle's row names this store until ``set_store``, so that a kill of the owner or a lost
    answer leaves it known. None if the broker cannot own the bundle: the bundle or an overlapping
    bundle has an owner, the messages are in another broker's store on disk, or the broker's lease
    has expired.
    """
    place = _place(bundle)
    async with connection.transaction():
        await _bury(connection, _DEAD)
        store = await connection.fetchval(
            "SELECT store FROM floodgate.brokers WHERE id = $1 FOR SHARE", broker
        )
        if store is None:
            return None
        # Claims in a namespace are sequential, so that owned bundles never overlap.
        await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 7))", place[0])
        taken = await connection.fetchval(
            f"SELECT 1 FROM floodgate.bundles WHERE {_OVERLAPPING} AND owner IS NOT NULL LIMIT 1",
            *place,
        )
        before = await _store_before(connection, bundle) or store
        if taken is not None or not (before == store or is_free(before)):
            return None
        await connection.execute(
            "INSERT INTO floodgate.bundles VALUES ($1, $2, $3, $4, $5) "
            "ON CONFLICT (namespace, low, high) DO UPDATE SET owner = $4, store = $5",
            *place,
            broker,
            before,
        )
        return before


async def _store_before(connection: Connection, bundle: Bundle) -> str:
    """Return the identity of the store that has a bundle's messages; empty if unknown.

    DELETED if the namespace was divided into other bundles.
    """
    query = f"SELECT low, high, store FROM floodgate.bundles WHERE {_OVERLAPPING}"
    rows = await connection.fetch(query, *_place(bundle))
    own = [str(store) for *edges, store in rows if BundleRange(*edges) == bundle.hashes]
    # Messages of different bundles belong to a deleted namespace.
    return own[0] if own else DELETED if rows else ""


def is_free(store: str) -> bool:
    """Return True if any broker may own a bundle whose messages are in the given store."""
    return not store or store.startswith(MEMORY_PREFIX)


async def set_store(connection: Connection, bundle: Bundle, broker: str, store: str) -> None:
    """Record the store of a bundle's messages from now on; a no-op if another broker owns it."""
    await connection.execute(
        f"UPDATE floodgate.bundles SET store = $5 WHERE {_OWNED}", *_place(bundle), broker, store
    )


async def release(connection: Connection, bundle: Bundle, broker: str) -> None:
    """End a broker's ownership of a bundle; a no-op if another broker owns it."""
    await connection.execute(
        f"UPDATE floodgate.bundles SET owner = NULL WHERE {_OWNED}", *_place(bundle), broker
    )


def _place(bundle: Bundle) -> tuple[str, int, int]:
    return str(bundle.namespace), bundle.hashes.low, bundle.hashes.high


async def ask_to_release(connection: Connection, bundle: Bundle) -> None:
    """Notify the owner of a bundle that it should release the bundle."""
    await _tell(connection, *_place(bundle))


async def _tell(connection: Connection, *words: object) -> None:
    await connection.execute("SELECT pg_notify($1, $2)", CHANNEL, " ".join(map(str, words)))


async def heirs(connection: Connection) -> Sequence[str]:
    """Return the ids of all live brokers; those that own the fewest bundles come first."""
    rows = await connection.fetch(
        "SELECT o.id FROM floodgate.brokers o LEFT JOIN floodgate.bundles b ON b.owner = o.id "
        "WHERE o.lease_until > clock_timestamp() GROUP BY o.id ORDER BY count(b.owner), o.id"
    )
    return [str(row[0]) for row in rows]


async def offer(connection: Connection, bundle: Bundle, broker: str) -> None:
    """Notify a broker that it may own a bundle which has no owner."""
    await _tell(connection, *_place(bundle), broker)


async def candidate(connection: Connection, bundle: Bundle) -> tuple[str, Owner] | None:
    """Return the broker that should own a bundle: the one with its messages or the fewest bundles.

    The broker that has the bundle's messages is preferred. None if that broker is not alive.
    """
    store = await _store_of(connection, bundle) or ""
    found = await connection.fetchrow(
        f"SELECT o.id, {_OWNERS_URLS} FROM floodgate.brokers o "
        "LEFT JOIN floodgate.bundles b ON b.owner = o.id "
        "WHERE o.lease_until > clock_timestamp() AND ($1 OR o.store = $2) "
        "GROUP BY o.id ORDER BY count(b.owner), o.id LIMIT 1",
        is_free(store),
        store,
    )
    if found is None:
        return None
    chosen, *urls = found
    return str(chosen), Owner(ServerUrls(*urls), here=False, decided=False)


async def tell_deleted(connection: Connection, namespaces: Sequence[str], broker: str) -> None:
    """Notify all other brokers that namespaces were deleted."""
    await connection.execute(
        "SELECT pg_notify($1, name || ' ' || $3) FROM unnest($2::text[]) AS name",
        CHANNEL,
        namespaces,
        broker,
    )


async def are_remembered(connection: Connection, namespaces: Sequence[str]) -> bool:
    """Return True if any bundle of the given namespaces has an owner or may have messages."""
    return bool(
        await connection.fetchval(
            "SELECT 1 FROM floodgate.bundles WHERE namespace = ANY($1::text[])"
            " AND (owner IS NOT NULL OR store <> $2) LIMIT 1",
            namespaces,
            DELETED,
        )
    )


async def owner_among(connection: Connection, namespaces: Sequence[str]) -> str | None:
    """Return the service URL of a live broker that owns a bundle of the deleted namespaces.

    None without such a broker.
    """
    row = await connection.fetchrow(
        f"SELECT {_OWNERS_URLS} FROM floodgate.bundles b JOIN floodgate.brokers o "
        "ON o.id = b.owner WHERE b.namespace = ANY($1::text[])"
        " AND NOT EXISTS (SELECT 1 FROM floodgate.namespaces n WHERE n.name = b.namespace)"
        " AND o.lease_until > clock_timestamp() LIMIT 1",
        namespaces,
    )
    return None if row is None else ServerUrls(*map(str, row)).any_service


async def namespaces_deleted(connection: Connection, namespaces: Sequence[str]) -> None:
    """Mark the stored messages of deleted namespaces as void, also those of dead brokers.

    A namespace recreated meanwhile keeps its messages.
    """
    async with connection.transaction():
        await _bury(connection, _DEAD)
        await connection.execute(
            "UPDATE floodgate.bundles b SET store = $2 WHERE namespace = ANY($1::text[])"
            " AND owner IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM floodgate.namespaces n WHERE n.name = b.namespace)",
            namespaces,
            DELETED,
        )


async def fits(connection: Connection, bundle: Bundle, store: str) -> bool:
    """Return True if a broker may own a bundle, given the broker's store of messages."""
    before = await _store_of(connection, bundle)
    return before is None or is_free(before) or before == store


async def _store_of(connection: Connection, bundle: Bundle) -> str | None:
    """Return the identity of the store that has a bundle's messages; None if it has no row."""
    query = "SELECT store FROM floodgate.bundles WHERE namespace = $1 AND low = $2 AND high = $3"
    store: str | None = await connection.fetchval(query, *_place(bundle))
    return store
