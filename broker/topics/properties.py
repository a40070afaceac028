"""Reading and changing of topic properties; partitions have the properties of their topic.

Partitions carry the properties of their partitioned topic, so that a listing by properties finds
them. Source: upstream PersistentTopicsBase.internalUpdatePropertiesAsync. Differs: upstream keeps a
partitioned topic's properties in its metadata only.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from broker.errors import Refusal, RefusedError
from broker.stores.changes import (
    NamespaceMissingError,
    TopicChangedError,
    TopicChanges,
    TopicMissingError,
    TopicState,
)
from broker.stores.name_locks import NameLocks
from broker.stores.properties import PropertyRows
from broker.topics.rules import in_changes, no_namespace, not_found, overtaken, partition_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker.stores.store import MetadataStore
    from proto.names import TopicName

MAX_PROPERTIES = 64
"""Properties of one topic."""
MAX_PROPERTY_BYTES = 2_560
"""UTF-8 bytes of a topic's name and of the key and the value of one of its properties, together.

The largest size for PostgreSQL's indexes with a partition's suffix; the bound of every store, so
that all accept the same properties. Differs: upstream has no bound.
"""


def property_rows(names: Sequence[bytes], properties: Mapping[str, str]) -> PropertyRows | None:
    """Return rows in which every name has the same properties; None if there are no properties."""
    return PropertyRows.same_for_all(names, properties) if properties else None


def check_properties(name: str, properties: Mapping[str, str]) -> None:
    """Raise an error if a topic's properties are too many, too large, or have a NUL character.

    Raises:
        RefusedError: A bound is exceeded.
    """
    if len(properties) > MAX_PROPERTIES:
        raise _refused(f"{len(properties)} properties: a topic may have {MAX_PROPERTIES}")
    for key, value in properties.items():
        size_bytes = len(f"{name}{key}{value}".encode())
        if size_bytes > MAX_PROPERTY_BYTES:
            raise _refused(
                f"the property {key[:40]!r} is too large: key, value and the topic's name have "
                f"{size_bytes:,} bytes together, and may have {MAX_PROPERTY_BYTES:,}"
            )
        if "\0" in key or "\0" in value:
            raise _refused(f"the property {key[:40]!r} has a NUL character: remove it")


class TopicProperties:
    """Reads, replaces and removes the properties of existing topics."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        # A change reads before writing: one change of a topic at a time, so that only other
        # brokers, and growth, can interfere.
        self._locks: NameLocks[TopicName] = NameLocks()

    async def of(self, topic: TopicName) -> Mapping[str, str]:
        """Return the properties of a topic.

        Raises:
            RefusedError: The topic does not exist, or cannot have properties.
            StoreError: The store failed.
        """
        await self._partitions(topic)
        return await self._store.properties(topic.namespace, str(topic))

    async def update(self, topic: TopicName, properties: Mapping[str, str]) -> None:
        """Add or replace properties of a topic.

        Raises:
            RefusedError: The topic does not exist, cannot have properties, or would have too many.
            StoreError: The store failed.
        """
        await self._change(topic, lambda kept: {**kept, **properties})

    async def remove(self, topic: TopicName, key: str) -> None:
        """Remove one property of a topic; a no-op if the topic does not have it.

        Raises:
            RefusedError: The topic does not exist, or cannot have properties.
            StoreError: The store failed.
        """
        await self._change(
            topic, lambda kept: {name: value for name, value in kept.items() if name != key}
        )

    async def _change(
        self, topic: TopicName, changed: Callable[[Mapping[str, str]], Mapping[str, str]]
    ) -> None:

        def first_rows(now: TopicState) -> PropertyRows:
            properties = changed(now.properties)
            check_properties(now.name, properties)
            first = in_changes(range(now.partitions), len(properties))[0]
            names = [now.name.encode(), *partition_names(topic, first)]
            return PropertyRows.same_for_all(names, properties)

        async with self._locks.of(topic):
            partitions = await self._partitions(topic)
            kept = await self._store.properties(topic.namespace, str(topic))
            seen = await self._set(topic, TopicState(str(topic), partitions, kept), first_rows)
            properties = changed(seen.properties)
            seen = replace(seen, properties=properties)
            for indices in in_changes(range(seen.partitions), len(properties))[1:]:
                await asyncio.sleep(0)
                names = partition_names(topic, indices)
                # A later change has seen this change, and wins.
                seen = await self._set(topic, seen, partial(_as_topic, names))

    async def _partitions(self, topic: TopicName) -> int:
        """Return a topic's number of partitions, after checking that it can have properties.

        Partitions have the same properties as their topic.
        """
        if not topic.persistent:
            reason = "Need to provide a persistent topic name"
            raise RefusedError(Refusal.NOT_ACCEPTABLE, reason)
        snapshot = await self._store.snapshot(topic.namespace)
        if snapshot is None or not snapshot.contains(topic):
            raise not_found(topic)
        return snapshot.partitioned.get(str(topic), 0)

    async def _set(
        self, topic: TopicName, seen: TopicState, rows: Callable[[TopicState], PropertyRows]
    ) -> TopicState:
        """Store properties computed from a topic's current state; return the state before.

        If another change was faster, this one is retried, without limit: each retry means progress
        of a competing change.
        """
        while True:
            changes = TopicChanges(
                properties=rows(seen), present=[seen.name], unchanged=seen, creates_namespace=False
            )
            try:
                await self._store.apply(topic.namespace, changes)
            except TopicChangedError as error:
                seen = error.found
            except NamespaceMissingError:
                raise no_namespace() from None
            except TopicMissingError:
                raise not_found(topic) from None
            else:
                return seen


def _as_topic(names: Sequence[bytes], topic: TopicState) -> PropertyRows:
    return PropertyRows.same_for_all(names, topic.properties)


def _refused(reason: str) -> RefusedError:
    return RefusedError(Refusal.PRECONDITION_FAILED, reason)


async def add_partitions(
    store: MetadataStore, topic: TopicName, parts: Sequence[range], seen: TopicState
) -> None:
    """Create those partitions that a topic's raised partition count includes, range by range.

    Raises:
        RefusedError: The topic was deleted, or recreated with fewer partitions.
        StoreError: The store failed.
    """
    for indices in parts:
        await asyncio.sleep(0)
        seen = await _add_part(store, topic, indices, seen)


async def _add_part(
    store: MetadataStore, topic: TopicName, indices: range, seen: TopicState
) -> TopicState:
    """Create a range of partitions with the topic's properties; return the topic's new state."""
    while True:
        try:
            await store.apply(topic.namespace, addition(topic, indices, seen))
        except TopicChangedError as error:
            seen = error.found
            if seen.partitions < indices.stop:
                raise overtaken(topic) from None
        except (TopicMissingError, NamespaceMissingError):
            raise overtaken(topic) from None
        else:
            return seen


def addition(topic: TopicName, indices: range, seen: TopicState) -> TopicChanges:
    """Return the change that creates partitions; it requires an unchanged topic state."""
    names = partition_names(topic, indices)
    return TopicChanges(
        names,
        properties=property_rows(names, seen.properties),
        present=[seen.name],
        unchanged=seen,
        creates_namespace=False,
    )
