"""The tables of a PostgreSQL store, in a separate schema.

Names, keys and values are bytea: any UTF-8 fits, NUL included, and compares bytewise under every
database collation. Foreign keys are absent: every writer locks the namespace's row, and a check for
each of a million rows would cost more than the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.stores.postgresql import topic_schemas

if TYPE_CHECKING:
    from broker.stores.postgresql.driver import Connection

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


class UnknownSchemaError(Exception):
    """The tables belong to another version of Floodgate; one sentence."""


async def make_tables(connection: Connection) -> None:
    """Create missing tables.

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
        await connection.execute(topic_schemas.TABLE)
