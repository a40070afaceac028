"""Message policies in a PostgreSQL store, with notifications of changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.stores.postgresql.driver import Connection

CHANNEL = "floodgate_policies"
MAX_NOTIFIED_CHARACTERS = 1_000
"""Longest name in a notification: PostgreSQL takes 8,000 bytes; "" stands for any name."""


async def read_policies(
    connection: Connection, name: str | None = None
) -> dict[str, dict[str, object]]:
    """Return policies by key, of all names or of one name."""
    query = "SELECT name, key, value FROM floodgate.message_policies"
    if name is None:
        rows = await connection.fetch(query)
    else:
        rows = await connection.fetch(f"{query} WHERE name = $1", name.encode())
    found: dict[str, dict[str, object]] = {}
    for of, key, value in rows:
        found.setdefault(of.decode(), {})[key] = json.loads(value)
    return found


async def write_policy(
    connection: Connection, name: str, key: str, value: object | None, sender: str
) -> None:
    """Set or remove a policy, and notify other brokers."""
    async with connection.transaction():
        if value is None:
            query = "DELETE FROM floodgate.message_policies WHERE name = $1 AND key = $2"
            await connection.execute(query, name.encode(), key)
        else:
            query = (
                "INSERT INTO floodgate.message_policies VALUES ($1, $2, $3)"
                " ON CONFLICT (name, key) DO UPDATE SET value = excluded.value"
            )
            await connection.execute(query, name.encode(), key, json.dumps(value))
        await _notify(connection, sender, name)


async def delete_policies(connection: Connection, names: Sequence[str], sender: str) -> None:
    """Delete all policies of some names, and notify other brokers."""
    async with connection.transaction():
        query = "DELETE FROM floodgate.message_policies WHERE name = ANY($1::bytea[])"
        await connection.execute(query, [name.encode() for name in names])
        await _notify(connection, sender, names[0] if len(names) == 1 else "")


async def _notify(connection: Connection, sender: str, name: str) -> None:
    told = name if len(name) <= MAX_NOTIFIED_CHARACTERS and "\0" not in name else ""
    await connection.execute("SELECT pg_notify($1, $2)", CHANNEL, f"{sender} {told}")
