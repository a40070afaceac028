"""The service that creates, grows and deletes topics, for REST and for clients.

Conditions travel with the change (``TopicChanges.absent`` and ``present``), so that of two who
create the same topic one succeeds, also on two brokers that share a store. Every change is as
durable as the store before it is answered.
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
from broker.topics.partitions import add_partitions, addition
from broker.topics.properties import property_rows
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
    """The service that creates, changes and deletes topics.

    Source: upstream PersistentTopicsBase, BrokerService.checkMaxTopicsPerNamespace.
    """

    def __init__(self, store: MetadataStore, rules: Callable[[NamespaceName], TopicRules]) -> None:
        self._store = store
        self._rules = rules
        self._deleted: list[Callable[[TopicName], Awaitable[None]]] = []
        self._made: list[Callable[[TopicName, int], None]] = []

    def on_made(self, callback: Callable[[TopicName, int], None]) -> None:
        """Register a function that is told of a topic that was made, and not for its first client.

        It is told how many partitions it has, 0 for none.
        """
        self._made.append(callback)

    def on_deleted(self, callback: Callable[[TopicName], Awaitable[None]]) -> None:
        """Register a function that forgets what belongs to a topic, which was just deleted."""
        self._deleted.append(callback)

    # -- topics without partitions ------------------------------------------------------------

    async def create(self, topic: TopicName, properties: Mapping[str, str]) -> None:
        """Create a topic, or a partition that a partitioned topic lacks.

        Raises:
            RefusedError: The namespace is missing, the topic exists, the name is that of a
                partition that cannot be, or there are too many topics.
            StoreError: The store failed.
        """
        check_name(topic)
        if PARTITION_SEPARATOR in topic.local_name:
            snapshot = await self._snapshot(topic)
            check_number(topic, snapshot)
            if self._lazy(topic) and partitions_around(topic, snapshot) is not None:
                await self._create(topic, {})  # To look for it is its first use.
                raise already_exists()
        await self._create(topic, properties)
        self._tell_made(topic, 0)

    def _tell_made(self, topic: TopicName, partitions: int) -> None:
        for callback in self._made:
            callback(topic, partitions)

    async def create_for_client(self, topic: TopicName) -> None:
        """Create a topic that a producer or consumer asks for, or a partition.

        A name like that of a partition, which is none, is a name as any other here (recorded).

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
            # As an addition to its partitioned topic it carries that one's properties.
            there = str(base)
            changes = replace(changes, present=[there], partitioned={there: 1}, adds_only=True)
        try:
            await self._apply(topic, changes)
        except TopicMissingError:
            raise no_such_partition(topic, base or topic) from None

    async def check_there(self, topic: TopicName) -> None:
        """Refuse to delete what is no topic.

        Raises:
            RefusedError: There is none, or it is a partitioned topic.
            StoreError: The store failed.
        """
        snapshot = await self._store.snapshot(topic.namespace)
        if snapshot is not None and str(topic) in snapshot.partitioned:
            raise is_partitioned(topic)
        there = snapshot is not None and snapshot.holds(str(topic).encode())
        if not there and not self._lazy(topic):
            raise not_found(topic)

    async def delete(self, topic: TopicName) -> None:
        """Delete a topic.

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
        """Create a partitioned topic with its partitions, which carry its properties.

        Raises:
            RefusedError: The namespace is missing, the topic exists, the name ends as that of a
                partition, or there are too few or too many partitions or topics.
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
        """Give a partitioned topic more partitions; they carry its properties.

        Raises:
            RefusedError: It is no partitioned topic, it has more already, or there are too many
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
        """Add partitions to a topic as it was seen.

        Raises:
            TopicChangedError, TopicMissingError, NamespaceMissingError: It is another by now.
        """
        # Upstream looks at the first partition, which makes it.
        new = range(1) if self._lazy(topic) else range(seen.partitions, partitions)
        first, *rest = in_changes(new, len(seen.properties))
        await self._store.apply(
            topic.namespace,
            replace(addition(topic, first, seen), partitioned={seen.name: partitions}),
        )
        await add_partitions(self._store, topic, rest, replace(seen, partitions=partitions))

    async def create_missing(self, topic: TopicName) -> None:
        """Make the partitions that a partitioned topic lacks.

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
                    if error.refusal is not Refusal.CONFLICT:  # Else somebody was faster.
                        raise

    async def _make_missing(self, partition: TopicName, topic: TopicName) -> None:
        if not self._rules(topic.namespace).counts_persistent_only:
            await self._check_room(partition, 1, Refusal.PRECONDITION_FAILED)
        await self._make(partition, topic, {})
        self._tell_made(partition, 0)

    def _lazy(self, topic: TopicName) -> bool:
        """Tell whether partitions come with their first use only."""
        return self._rules(topic.namespace).lazy_non_persistent and not topic.persistent

    async def delete_partitioned(self, topic: TopicName) -> None:
        """Delete a partitioned topic with its partitions.

        Raises:
            RefusedError: There is none, or it is a topic without partitions.
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
        """Delete a partitioned topic if none of its partitions is there.

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
        # One may be made meanwhile; of more than fit in one change the first are looked at again.
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
        # Growth meanwhile makes the partition that comes next.
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

    # -- what is there ------------------------------------------------------------------------

    async def partitions(self, topic: TopicName, *, create: bool) -> int:
        """Return the number of partitions of a topic, 0 for one without.

        Args:
            topic: A topic, a partitioned topic or a partition.
            create: Whether a missing topic is made, where that is allowed. One without
                partitions is not made yet: it comes with its first producer, as does a partition
                that its topic lacks.

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
                return 0  # It is made by whoever uses it, also where others are not (recorded).
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
            # Another client was faster: what it made is what there is.
            return snapshot.partitioned.get(str(topic), 0)
        return partitions

    # -- what the changes share ---------------------------------------------------------------

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
        """Apply a change; return false when a condition does not hold."""
        try:
            await self._store.apply(topic.namespace, changes)
        except (TopicExistsError, TopicMissingError, NamespaceMissingError):
            return False
        return True
