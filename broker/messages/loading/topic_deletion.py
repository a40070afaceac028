"""Deletion of topics together with their messages, whether loaded or not."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from broker.errors import Refusal, RefusedError
from broker.messages.compaction.compactor import is_compacted, topic_of
from broker.messages.compaction.topic_compaction import delete_compacted
from broker.messages.errors import MessageStoreError, fenced, not_stored
from broker.messages.topic import PersistentTopic
from broker.stores.name_locks import to_its_end
from proto.names import namespace_of
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from broker.messages.loading.loaded_topics import LoadedTopics
    from broker.messages.stores.managed_ledger import MessageStore
    from broker.messages.topic import Topic
    from broker.ownership.ownership import Bundle
    from broker.topics.service import TopicService
    from proto.names import NamespaceName, TopicName

logger = logging.getLogger(__name__)


class TopicDeletion:
    """Deletes single topics, all messages of namespaces, and outdated stored data.

    Stored data is outdated if another broker served or deleted the topic meanwhile.

    Args:
        loaded: The loaded topics.
        names: Deletes the names of topics from the metadata store.
        store: The message store.
    """

    def __init__(self, loaded: LoadedTopics, names: TopicService, store: MessageStore) -> None:
        self._loaded = loaded
        self._names = names
        self._store = store

    async def delete(self, name: TopicName, *, force: bool = False) -> None:
        """Delete a topic and its messages.

        Args:
            name: The topic, loaded or not.
            force: Delete despite producers or consumers, which are closed.

        Raises:
            RefusedError: The topic is missing, partitioned, or in use.
            StoreError: The metadata store failed.
            MessageStoreError: The message store failed.
        """
        await to_its_end(self._delete(name, force=force))

    async def _delete(self, name: TopicName, *, force: bool) -> None:
        async with self._loaded.locks.of(str(name)):
            topic = self._loaded.find(name)
            if topic is not None and not force:
                check_unused(topic)
            await self._names.check_there(name)
            if name.persistent:
                await self._store.flushed()  # Fails before closing the topic.
            if topic is not None and not force:
                check_unused(topic)  # Clients may have connected meanwhile.
            # Messages first, as upstream: after a crash a new topic must not inherit the messages.
            await self._drop(name, topic)
            await self._names.delete(name)

    async def _drop(self, name: TopicName, topic: Topic | None) -> None:
        if topic is not None:
            topic.closing = True
            if not name.persistent:  # Producers first here (recorded).
                topic.producers.disconnect(fenced())
            topic.subscriptions.close_consumers()
            topic.subscriptions.close()
            topic.producers.disconnect(fenced())
            topic.rate.stop()
            self._loaded.discard(topic)
            if isinstance(topic, PersistentTopic):
                topic.forget_pending()
                await topic.compaction.close()
                topic.subscriptions.forget()
        if name.persistent:
            await self._delete_messages(str(name))

    async def _delete_messages(self, name: str) -> None:
        try:
            await delete_compacted(self._store, name)
        except MessageStoreError as error:
            # A damaged topic lost its list of compacted ledgers; write failures are raised again
            # below.
            logger.warning("searching for the compacted entries of %s: %s", name, error)
            async for left in in_turns(self._store.names()):
                if is_compacted(left) and str(topic_of(left)) == name:
                    await self._store.delete_ledger(left)
        await self._store.delete_ledger(name)

    async def delete_without_partitions(self, name: TopicName) -> None:
        """Delete an unused partitioned topic, unless it was imported or has partitions.

        Raises:
            StoreError: The store failed.
        """
        if name in self._loaded.made:
            await self._names.delete_without_partitions(name)

    @asynccontextmanager
    async def emptied(self, namespaces: Sequence[NamespaceName]) -> AsyncIterator[None]:
        """Close the topics of namespaces and delete their messages, before a ``with`` block runs.

        The block deletes the topics' names. Until it ends, no topic of the namespaces is loaded.

        Raises:
            MessageStoreError: The message store failed, and still has some messages.
        """
        async with self._loaded.shut(*namespaces):
            await self._store.flushed()  # A failing store must not close topics in vain.
            await self._empty(frozenset(map(str, namespaces)), namespaces)
            yield
            await self._loaded.made.forget(namespaces)
            self._loaded.past.forget(namespaces)

    async def _empty(self, names: frozenset[str], namespaces: Sequence[NamespaceName]) -> None:
        async for namespace in in_turns(namespaces):
            async for topic in in_turns(self._loaded.within(namespace)):
                await to_its_end(self._drop_loaded(topic))
        stored = in_turns(self._store.names())
        inside = [name async for name in stored if namespace_of(name) in names]
        # Compacted ledgers first: deleting a topic loses the list of its compacted ledgers.
        for name in [*filter(is_compacted, inside), *inside]:
            if self._store.holds(name):
                async with self._loaded.locks.of(str(topic_of(name))):
                    await self._store.delete_ledger(name)

    async def _drop_loaded(self, topic: Topic) -> None:
        async with self._loaded.locks.of(topic.full_name):
            if self._loaded.find(topic.name) is topic:
                await self._drop(topic.name, topic)

    async def forget(self, bundle: Bundle) -> None:
        """Delete stored data of a bundle's topics that another broker served or deleted meanwhile.

        The data of topics that this broker serves stays, because it is newer.

        Raises:
            RequestError: The message store failed.
        """
        inside = str(bundle.namespace)
        async for name in in_turns(self._store.names()):
            if namespace_of(name) != inside:
                continue
            topic = topic_of(name)
            if bundle.holds(topic):
                async with self._loaded.locks.of(str(topic)):
                    if not self._loaded.serves(topic):
                        try:
                            await self._store.delete_ledger(name)
                        except MessageStoreError as error:
                            raise not_stored(error) from None


def check_unused(topic: Topic) -> None:
    """Refuse to delete a topic that has producers or consumers.

    Raises:
        RefusedError: The topic has clients.
    """
    consumers, producers = topic.subscriptions.consumer_count, len(topic.producers)
    if clients := consumers + producers:
        noun = "client" if clients == 1 else "clients"
        text = (
            f"Topic has {clients} {noun} connected Including {consumers} consumers, {producers} "
            "producers, and 0 replicators."
        )
        raise RefusedError(Refusal.PRECONDITION_FAILED, text)
