"""Tables of a SQLite file beside namespaces: tenants, configuration, policies, imports, schemas."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from broker.stores.changes import NamespaceNotEmptyError
from broker.stores.store import StoredSchema, TenantInfo, schema_key
from proto.names import NamespaceName, TopicName

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

INSIDE = "name > ? AND name < ?"
"""Condition for a tenant's namespaces, see ``inside``."""


class SqliteTables:
    """The tables of an open file, used by one thread."""

    _connection: sqlite3.Connection

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, values).fetchall()

    def _changed_rows(self, query: str, *values: object) -> int:
        return self._connection.execute(query, values).rowcount

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # A full disk has already rolled back; raise the original error.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    # -- tenants and configuration ------------------------------------------------------------

    def tenants(self) -> dict[str, TenantInfo]:
        """Return the tenants by name, in order."""
        rows = texts(self._rows("SELECT name, roles, clusters FROM tenants ORDER BY name"))
        return {name: TenantInfo.of_json(roles, clusters) for name, roles, clusters in rows}

    def tenant(self, name: str) -> TenantInfo | None:
        """Return a tenant; None if missing."""
        rows = texts(self._rows("SELECT roles, clusters FROM tenants WHERE name=?", name))
        return TenantInfo.of_json(*rows[0]) if rows else None

    def insert_tenant(self, name: str, info: TenantInfo) -> bool:
        """Add a tenant; false if present."""
        query = "INSERT OR IGNORE INTO tenants VALUES (?, ?, ?)"
        return self._changed_rows(query, name, *info.as_json()) == 1

    def update_tenant(self, name: str, info: TenantInfo) -> bool:
        """Replace a tenant's values; false if missing."""
        query = "UPDATE tenants SET roles=?, clusters=? WHERE name=?"
        return self._changed_rows(query, *info.as_json(), name) == 1

    def delete_tenant(self, name: str) -> bool:
        """Delete a tenant without namespaces; false if missing."""
        with self._transaction():
            if self._rows(f"SELECT 1 FROM namespaces WHERE {INSIDE} LIMIT 1", *inside(name)):
                raise NamespaceNotEmptyError
            return self._changed_rows("DELETE FROM tenants WHERE name=?", name) == 1

    def configuration(self) -> dict[str, str]:
        """Return the values set at run time."""
        return dict(texts(self._rows("SELECT key, value FROM configuration ORDER BY key")))

    def set_configuration(self, key: str, value: str | None) -> None:
        """Set or remove a value."""
        if value is None:
            self._changed_rows("DELETE FROM configuration WHERE key=?", key)
        else:
            self._changed_rows("INSERT OR REPLACE INTO configuration VALUES (?, ?)", key, value)

    def policy_documents(self, name: str | None) -> dict[str, dict[str, object]]:
        """Return policies by key, of all names or of one name.

        Raises:
            ValueError: A name or value is invalid.
        """
        query = "SELECT name, key, value FROM message_policies"
        rows = self._rows(query) if name is None else self._rows(f"{query} WHERE name=?", name)
        found: dict[str, dict[str, object]] = {}
        for of, key, value in texts(rows):
            if of not in found:
                TopicName.parse(of) if "://" in of else NamespaceName.parse(of)
            found.setdefault(of, {})[key] = json.loads(value)
        return found

    def set_policy(self, name: str, key: str, value: object | None) -> None:
        """Set or remove a policy."""
        if value is None:
            query = "DELETE FROM message_policies WHERE name=? AND key=?"
            self._changed_rows(query, name, key)
        else:
            query = "INSERT OR REPLACE INTO message_policies VALUES (?, ?, ?)"
            self._changed_rows(query, name, key, json.dumps(value))

    def delete_policies(self, names: Sequence[str]) -> None:
        """Delete all policies of some names."""
        rows = [(name,) for name in names]
        with self._transaction():
            self._connection.executemany("DELETE FROM message_policies WHERE name=?", rows)

    def has_imported(self, fingerprint: str) -> bool:
        """Tell whether an import is recorded."""
        return bool(self._rows("SELECT 1 FROM marks WHERE name=?", f"import {fingerprint}"))

    def remember_import(self, fingerprint: str) -> None:
        """Record an import."""
        self._changed_rows("INSERT OR IGNORE INTO marks VALUES (?, 1)", f"import {fingerprint}")

    def next_instance(self) -> int:
        """Count up, and return the number before."""
        with self._transaction():
            self._changed_rows("INSERT OR IGNORE INTO marks VALUES ('instances', 0)")
            before = int(self._rows("SELECT value FROM marks WHERE name='instances'")[0][0])
            self._changed_rows("UPDATE marks SET value=? WHERE name='instances'", before + 1)
        return before

    # -- schemas ------------------------------------------------------------------------------

    def schemas_of(self, topic: str) -> list[StoredSchema]:
        """Return all versions of a topic, in order."""
        query = (
            "SELECT version, kind, data, properties, stored_at, deleted FROM schemas"
            " WHERE namespace=? AND topic=? ORDER BY version"
        )
        return [StoredSchema.of_row(*row) for row in self._rows(query, *schema_key(topic))]

    def add_schema(self, topic: str, schema: StoredSchema) -> bool:
        """Add a version; false if present."""
        query = "INSERT OR IGNORE INTO schemas VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        return self._changed_rows(query, *schema_key(topic), *schema.as_row()) == 1

    def delete_schemas(self, topic: str) -> None:
        """Delete all versions of a topic."""
        self._changed_rows("DELETE FROM schemas WHERE namespace=? AND topic=?", *schema_key(topic))


def inside(tenant: str) -> tuple[str, str]:
    """Return the name bounds of a tenant's namespaces: 0 sorts directly after the slash."""
    return f"{tenant}/", f"{tenant}0"


def texts(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the rows if all values are texts: SQLite accepts any type in any column.

    Raises:
        TypeError: A value is not a text.
    """
    for row in rows:
        for value in row:
            if not isinstance(value, str):
                raise TypeError(f"{type(value).__name__} where a text belongs")
    return rows
