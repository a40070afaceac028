"""The service that creates, enlarges and deletes topics, for the REST API and for clients.

Conditions are part of the change (``TopicChanges.absent`` and ``present``), so that of two
concurrent creations of a topic one succeeds, even on two brokers sharing a store. Every change is
as durable as the store before the answer.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from broker.errors import Refusal, RefusedError
from broker.stores.changes import (
    NamespaceMissingError,
    TopicChangedError,
    TopicChanges,
    TopicExistsError,
    TopicMissingError,
    TopicState,
)
from broker.topics.properties import add_partitions, addition, property_rows
from broker.topics.rules import (
    TRIES,
    TopicRules,
    already_exists,
    check_count,
    check_growth,
    check_name,
    check_new_partitioned,
    check_not_a_partition,
    check_number,
    check_partition,
    check_room,
    in_changes,
    is_partitioned,
    no_namespace,
    no_such_partition,
    not_found,
    not_partitioned,
    overtaken,
    partition_name,
    partition_names,
    partitions_around,
)
from proto.names import PARTITION_SEPARATOR
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from broker.stores.store import MetadataStore, NamespaceSnapshot
    from proto.names import NamespaceName, TopicName


class TopicService:
    """Creates topics, adds partitions to them, and deletes topics.

    Source: upstream PersistentTopicsBase, BrokerService.checkMaxTopicsPerNamespace.
    """

    def __init__(self, store: MetadataStore, rules: Callable[[NamespaceName], TopicRules]) -> None:
        self._store = store
        self._rules = rules
        self._deleted: list[Callable[[TopicName], Awaitable[None]]] = []
        self._made: list[Callable[[TopicName, int], None]] = []

    def on_made(self, callback: Callable[[TopicName, int], None]) -> None:
        """Register a callback, called with each created topic unless a client's use created it.

        The callback receives the topic and its number of partitions, 0 for none.
        """
        self._made.append(callback)

    def on_deleted(self, callback: Callable[[TopicName], Awaitable[None]]) -> None:
        """Register a function that deletes the data of a deleted topic outside of the store."""
        self._deleted.append(callback)

    # -- topics without partitions ------------------------------------------------------------

    async def create(self, topic: TopicName, properties: Mapping[str, str]) -> None:
        """Create a topic without partitions, or a missing partition of a partitioned topic.

        Raises:
            RefusedError: The namespace is missing, the topic exists, the name is an impossible
                partition's, or there are too many topics.
            StoreError: The store failed.
        """
        check_name(topic)
        if PARTITION_SEPARATOR in topic.local_name:
            snapshot = await self._snapshot(topic)
            check_number(topic, snapshot)
            if self._lazy(topic) and partitions_around(topic, snapshot) is not None:
                await self._create(topic, {})  # A lookup counts as the first use.
                raise already_exists()
        await self._create(topic, properties)
        self._tell_made(topic, 0)

    def _tell_made(self, topic: TopicName, partitions: int) -> None:
        for callback in self._made:
            callback(topic, partitions)

    async def create_for_client(self, topic: TopicName) -> None:
        """Create a topic or partition when a producer or consumer first uses it.

        An invalid partition name is an ordinary name here (recorded).

        Raises:
            RefusedError: As ``create``.
            StoreError: The store failed.
        """
        check_name(topic)
        await self._create(topic, {})

    async def _create(self, topic: TopicName, properties: Mapping[str, str]) -> None:
        base = topic.partitioned_name if topic.partition_index >= 0 else None
        if base is not None:
            check_partition(topic, base, await self._snapshot(topic))
        rules = self._rules(topic.namespace)
        if rules.max_topics > 0 and (topic.persistent or not rules.counts_persistent_only):
            snapshot = await self._snapshot(topic)
            if snapshot.contains(topic):
                raise already_exists()
            check_room(topic, snapshot, 1, rules)
        await self._make(topic, base, properties)

    async def _make(
        self, topic: TopicName, base: TopicName | None, properties: Mapping[str, str]
    ) -> None:
        name = str(topic)
        changes = TopicChanges(
            [name.encode()],
            properties=property_rows([name.encode()], properties),
            absent=[name],
            creates_namespace=False,
        )
        if base is not None:
            # An addition to the partitioned topic inherits its properties.
            there = str(base)
            changes = replace(changes, present=[there], partitioned={there: 1}, adds_only=True)
        try:
            await self._apply(topic, changes)
        except TopicMissingError:
            raise no_such_partition(topic, base or topic) from None

    async def check_there(self, topic: TopicName) -> None:
        """Raise an error if a topic cannot be deleted, as it is missing or partitioned.

        Raises:
            RefusedError: The topic is missing, or is a partitioned topic.
            StoreError: The store failed.
        """
        snapshot = await self._store.snapshot(topic.namespace)
        if snapshot is not None and str(topic) in snapshot.partitioned:
            raise is_partitioned(topic)
        there = snapshot is not None and snapshot.holds(str(topic).encode())
        if not there and not self._lazy(topic):
            raise not_found(topic)

    async def delete(self, topic: TopicName) -> None:
        """Delete a topic without partitions, or a single partition.

        Raises:
            RefusedError: See ``check_there``.
            StoreError: The store failed.
        """
        await self.check_there(topic)
        name = str(topic)
        changes = TopicChanges((), [name.encode()], present=[name], creates_namespace=False)
        if not await self._applied(topic, changes) and not self._lazy(topic):
            raise not_found(topic)
        await self._forget(topic)

    # -- partitioned topics -------------------------------------------------------------------

    async def create_partitioned(
        self, topic: TopicName, partitions: int, properties: Mapping[str, str]
    ) -> None:
        """Create a partitioned topic and its partitions, all with the same properties.

        Raises:
            RefusedError: The namespace is missing, the topic exists, the name ends like a
                partition's, or there are too few or too many partitions or topics.
            StoreError: The store failed.
        """
        check_name(topic)
        check_new_partitioned(topic, self._rules(topic.namespace))
        refusal = Refusal.PRECONDITION_FAILED
        await self._create_partitioned(topic, partitions, properties, refusal)

    async def _create_partitioned(
        self,
        topic: TopicName,
        partitions: int,
        properties: Mapping[str, str],
        too_many: Refusal,
    ) -> None:
        if await self._store.policies(topic.namespace) is None:
            raise no_namespace()
        check_count(partitions, self._rules(topic.namespace))
        await self._check_room(topic, partitions, too_many)
        made = 0 if self._lazy(topic) else partitions
        first, *rest = in_changes(range(made), len(properties))
        name, names = str(topic), partition_names(topic, first)
        rows = property_rows([name.encode(), *names], properties)
        await self._apply(
            topic,
            TopicChanges(
                names, (), {name: partitions}, rows, absent=[name], creates_namespace=False
            ),
        )
        self._tell_made(topic, partitions)
        await add_partitions(self._store, topic, rest, TopicState(name, partitions, properties))

    async def grow(self, topic: TopicName, partitions: int) -> None:
        """Increase a topic's number of partitions; new ones get the topic's properties.

        Raises:
            RefusedError: The topic is not partitioned, already has more, or there are too many
                partitions or topics.
            StoreError: The store failed.
        """
        check_not_a_partition(topic)
        seen = await self._state(topic)
        while True:
            check_growth(topic, seen.partitions, partitions, self._rules(topic.namespace))
            if partitions == seen.partitions:
                return
            if not self._rules(topic.namespace).counts_persistent_only:
                more = partitions - seen.partitions
                await self._check_room(topic, more, Refusal.PRECONDITION_FAILED)
            try:
                await self._grow(topic, seen, partitions)
            except TopicChangedError as error:
                seen = error.found
            except (TopicMissingError, NamespaceMissingError):
                seen = TopicState(str(topic), 0, {})
            else:
                return

    async def _state(self, topic: TopicName) -> TopicState:
        snapshot = await self._store.snapshot(topic.namespace)
        count = snapshot.partitioned.get(str(topic), 0) if snapshot is not None else 0
        properties = await self._store.properties(topic.namespace, str(topic)) if count else {}
        return TopicState(str(topic), count, properties)

    async def _grow(self, topic: TopicName, seen: TopicState, partitions: int) -> None:
        """Increase a topic's number of partitions, if the topic is still in the given state.

        Raises:
            TopicChangedError, TopicMissingError, NamespaceMissingError: The state has changed.
        """
        # Upstream looks up the first partition, which creates it.
        new = range(1) if self._lazy(topic) else range(seen.partitions, partitions)
        first, *rest = in_changes(new, len(seen.properties))
        await self._store.apply(
            topic.namespace,
            replace(addition(topic, first, seen), partitioned={seen.name: partitions}),
        )
        await add_partitions(self._store, topic, rest, replace(seen, partitions=partitions))

    async def create_missing(self, topic: TopicName) -> None:
        """Create those partitions of a partitioned topic that do not exist.

        Raises:
            RefusedError: There are too many topics.
            StoreError: The store failed.
        """
        snapshot = await self._snapshot(topic)
        async for index in in_turns(range(snapshot.partitioned.get(str(topic), 0))):
            name = partition_name(topic, index)
            if not snapshot.holds(name.encode()):
                try:
                    await self._make_missing(type(topic).parse(name), topic)
                except RefusedError as error:
                    if error.refusal is not Refusal.CONFLICT:  # A concurrent creation.
                        raise

    async def _make_missing(self, partition: TopicName, topic: TopicName) -> None:
        if not self._rules(topic.namespace).counts_persistent_only:
            await self._check_room(partition, 1, Refusal.PRECONDITION_FAILED)
        await self._make(partition, topic, {})
        self._tell_made(partition, 0)

    def _lazy(self, topic: TopicName) -> bool:
        """Return True if a topic's partitions are created only when they are first used."""
        return self._rules(topic.namespace).lazy_non_persistent and not topic.persistent

    async def delete_partitioned(self, topic: TopicName) -> None:
        """Delete a partitioned topic and all its partitions.

        Raises:
            RefusedError: The topic is missing, or has no partitions.
            StoreError: The store failed.
        """
        check_not_a_partition(topic)
        for _ in range(TRIES):
            snapshot = await self._store.snapshot(topic.namespace)
            count = snapshot.partitioned.get(str(topic)) if snapshot is not None else None
            if snapshot is None or count is None:
                raise not_partitioned(topic, snapshot)
            if await self._delete_partitioned(topic, snapshot, count):
                await self._forget(topic)
                return
        raise overtaken(topic)

    async def delete_without_partitions(self, topic: TopicName) -> None:
        """Delete a partitioned topic if none of its partitions exists.

        Raises:
            StoreError: The store failed.
        """
        snapshot = await self._store.snapshot(topic.namespace)
        count = snapshot.partitioned.get(str(topic), 0) if snapshot is not None else 0
        if snapshot is None or not count:
            return
        async for index in in_turns(range(count)):
            if snapshot.holds(partition_name(topic, index).encode()):
                return
        # A partition may be created meanwhile; the condition covers the first change's partitions.
        absent = [partition_name(topic, index) for index in in_changes(range(count))[0]]
        changes = TopicChanges(
            partitioned={str(topic): 0},
            absent=absent,
            present=[str(topic)],
            creates_namespace=False,
        )
        if await self._applied(topic, changes):
            await self._forget(topic)

    async def _forget(self, topic: TopicName) -> None:
        for callback in self._deleted:
            await callback(topic)

    async def _delete_partitioned(
        self, topic: TopicName, snapshot: NamespaceSnapshot, count: int
    ) -> bool:
        properties = await self._store.properties(topic.namespace, str(topic))
        first, *rest = in_changes(range(count), len(properties))
        for indices in reversed(rest):
            names = partition_names(topic, indices)
            changes = TopicChanges((), names, present=[str(topic)], creates_namespace=False)
            if not await self._applied(topic, changes):
                return False
            await asyncio.sleep(0)
        # Concurrent growth creates the following partition.
        following = partition_name(topic, count)
        changes = TopicChanges(
            (),
            partition_names(topic, first),
            {str(topic): 0},
            absent=[] if snapshot.exists(following) else [following],
            present=[str(topic)],
            creates_namespace=False,
        )
        return await self._applied(topic, changes)

    # -- queries ------------------------------------------------------------------------------

    async def partitions(self, topic: TopicName, *, create: bool) -> int:
        """Return a topic's number of partitions; 0 if the topic is not partitioned.

        Args:
            topic: A topic, a partitioned topic or a partition.
            create: Whether to create a missing topic, if allowed. A topic without partitions is not
                created yet: its first producer creates it, as with a missing partition.

        Raises:
            RefusedError: The namespace or the topic does not exist.
            StoreError: The store failed.
        """
        snapshot = await self._snapshot(topic)
        count = snapshot.partitioned.get(str(topic), 0)
        if count or snapshot.contains(topic):
            return count
        own = partitions_around(topic, snapshot)
        if own is not None:
            if create and topic.partition_index < own:
                return 0  # Created on first use, even without automatic creation (recorded).
            raise not_found(topic)
        rules = self._rules(topic.namespace)
        if not create or not rules.auto_creation:
            raise not_found(topic)
        return await self._auto_create(topic, rules.auto_partitions)

    async def _auto_create(self, topic: TopicName, partitions: int) -> int:
        if not partitions or topic.partition_index >= 0:
            return 0
        check_name(topic)
        try:
            await self._create_partitioned(topic, partitions, {}, Refusal.CONFLICT)
        except RefusedError:
            snapshot = await self._snapshot(topic)
            if not snapshot.contains(topic):
                raise
            # A concurrent client won: its topic counts.
            return snapshot.partitioned.get(str(topic), 0)
        return partitions

    # -- shared steps -------------------------------------------------------------------------

    async def _snapshot(self, topic: TopicName) -> NamespaceSnapshot:
        snapshot = await self._store.snapshot(topic.namespace)
        if snapshot is None:
            raise no_namespace()
        return snapshot

    async def _check_room(self, topic: TopicName, more: int, refusal: Refusal) -> None:
        rules = self._rules(topic.namespace)
        if rules.max_topics > 0:
            check_room(topic, await self._snapshot(topic), more, rules, refusal)

    async def _apply(self, topic: TopicName, changes: TopicChanges) -> None:
        try:
            await self._store.apply(topic.namespace, changes)
        except NamespaceMissingError:
            raise no_namespace() from None
        except TopicExistsError:
            raise already_exists() from None

    async def _applied(self, topic: TopicName, changes: TopicChanges) -> bool:
        """Apply a change to the store; return False if a condition of the change is not met."""
        try:
            await self._store.apply(topic.namespace, changes)
        except (TopicExistsError, TopicMissingError, NamespaceMissingError):
            return False
        return True
