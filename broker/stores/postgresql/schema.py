"""Table definitions of a PostgreSQL store, in a schema of its own, and limits on row sizes.

Names, keys and values are bytea: any UTF-8 fits, NUL included, and compares bytewise under every
database collation. Foreign keys are absent: every writer locks the namespace's row, and a check for
each of a million rows would cost more than the rows.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from broker.stores.changes import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker.stores.changes import TopicChanges
    from broker.stores.postgresql.connections import Connection
    from broker.stores.property_rows import PropertyRows

SCHEMA_VERSION = 1
_CREATION_LOCK = 0x666C6F6F64
"""Brokers starting together create the tables one after the other (an arbitrary number)."""
_TABLES = """
CREATE SCHEMA IF NOT EXISTS floodgate;
CREATE TABLE floodgate.marks (name text PRIMARY KEY, value bigint NOT NULL);
CREATE TABLE floodgate.namespaces (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    tenant bytea NOT NULL,
    version bigint NOT NULL,
    bundles integer NOT NULL);
CREATE INDEX namespaces_by_tenant ON floodgate.namespaces (tenant);
CREATE TABLE floodgate.topics (
    namespace bigint NOT NULL, name bytea NOT NULL, PRIMARY KEY (namespace, name));
CREATE TABLE floodgate.partitioned (
    namespace bigint NOT NULL, name bytea NOT NULL, partitions integer NOT NULL,
    PRIMARY KEY (namespace, name));
CREATE TABLE floodgate.properties (
    namespace bigint NOT NULL, name bytea NOT NULL, key bytea NOT NULL, value bytea NOT NULL,
    PRIMARY KEY (namespace, name, key));
CREATE INDEX properties_by_value ON floodgate.properties (namespace, key, value, name);
CREATE TABLE floodgate.changes (
    namespace bigint NOT NULL, version bigint NOT NULL, complete boolean NOT NULL,
    added bytea[] NOT NULL, removed bytea[] NOT NULL,
    bases bytea[] NOT NULL, partitions integer[] NOT NULL,
    PRIMARY KEY (namespace, version));
CREATE TABLE floodgate.tenants (
    name bytea PRIMARY KEY, roles text NOT NULL, clusters text NOT NULL);
CREATE TABLE floodgate.configuration (key bytea PRIMARY KEY, value bytea NOT NULL);
INSERT INTO floodgate.marks VALUES ('first_version', 0), ('schema', 1);
"""
_LATER_TABLES = """
CREATE TABLE IF NOT EXISTS floodgate.message_policies (
    name bytea NOT NULL, key text NOT NULL, value text NOT NULL, PRIMARY KEY (name, key));
"""
"""Tables added later; brokers of earlier versions still work beside them."""
_SCHEMAS = """
CREATE TABLE IF NOT EXISTS floodgate.schemas (
    namespace text COLLATE "C" NOT NULL, topic bytea NOT NULL, version bigint NOT NULL,
    kind text NOT NULL, data bytea NOT NULL, properties bytea NOT NULL,
    stored_at bigint NOT NULL, deleted boolean NOT NULL,
    PRIMARY KEY (namespace, topic, version));
"""


class UnknownSchemaError(Exception):
    """The database's tables were made by an incompatible version of Floodgate.

    The text is one sentence.
    """


async def make_tables(connection: Connection) -> None:
    """Create those tables that the database does not have.

    Raises:
        UnknownSchemaError: The tables belong to another version.
    """
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _CREATION_LOCK)
        if await connection.fetchval("SELECT to_regclass('floodgate.marks') IS NULL"):
            await connection.execute(_TABLES)
        if await connection.fetchval("SELECT to_regclass('floodgate.message_policies') IS NULL"):
            await connection.execute(_LATER_TABLES)
        query = "SELECT value FROM floodgate.marks WHERE name = 'schema'"
        found = await connection.fetchval(query)
        if found != SCHEMA_VERSION:
            raise UnknownSchemaError(
                f"its schema floodgate has version {found}, this broker knows {SCHEMA_VERSION}; "
                "use another database"
            )
        # Upgrade a database of an earlier Floodgate.
        await connection.execute(_SCHEMAS)


_COLUMNS = {
    "topics": ("namespace", "name"),
    "partitioned": ("namespace", "name", "partitions"),
    "properties": ("namespace", "name", "key", "value"),
}


async def copy_rows(connection: Connection, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    """Insert rows of topics, partition counts or properties with COPY; none may exist yet."""
    await connection.copy_records_to_table(
        table, schema_name="floodgate", columns=_COLUMNS[table], records=rows
    )


MAX_ROW_BYTES = 2_600
"""Largest index entry: a name, or a name with one property's key and value."""
ROWS_PER_STATEMENT = 10_000
"""Rows written by one statement of a large change."""
_SHOWN_CHARACTERS = 80

T = TypeVar("T")


def batched(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Split values into lists of at most ``size`` values each."""
    remaining = iter(values)
    while batch := list(islice(remaining, size)):
        yield batch


def check_names(changes: TopicChanges) -> None:
    """Raise an error if a name is too long for an index; called before anything is written."""
    for part in batched(changes.added, ROWS_PER_STATEMENT):
        longest = max(part, key=len)
        _check_size(longest, len(longest))
    for base in changes.partitioned:
        _check_size(base.encode(), len(base.encode()))


def property_records(number: int, rows: PropertyRows) -> Iterator[tuple[int, bytes, bytes, bytes]]:
    """Yield the rows of the properties table; a property too long for an index is an error."""
    for name, key, value in rows.triples():
        key_bytes, value_bytes = key.encode(), value.encode()
        _check_size(name, len(name) + len(key_bytes) + len(value_bytes))
        yield number, name, key_bytes, value_bytes


def _check_size(name: bytes, size_bytes: int) -> None:
    if size_bytes > MAX_ROW_BYTES:
        shown = name.decode()[:_SHOWN_CHARACTERS]
        raise StoreError(
            f"{shown}...: a name, with the key and value of a property, may have "
            f"{MAX_ROW_BYTES:,} bytes in a PostgreSQL store, this has {size_bytes:,}; shorten it"
        )
