"""The partitions of a partitioned topic, added in several changes with the topic's properties."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.stores.changes import (
    NamespaceMissingError,
    TopicChangedError,
    TopicChanges,
    TopicMissingError,
    TopicState,
)
from broker.topics.properties import property_rows
from broker.topics.rules import overtaken, partition_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.stores.store import MetadataStore
    from proto.names import TopicName


async def add_partitions(
    store: MetadataStore, topic: TopicName, parts: Sequence[range], seen: TopicState
) -> None:
    """Add partitions already included in a topic's count, one change for each part.

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
    """Add one part with the topic's current properties; return the topic's new state."""
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
    """Return the change adding partitions to a topic in a known state."""
    names = partition_names(topic, indices)
    return TopicChanges(
        names,
        properties=property_rows(names, seen.properties),
        present=[seen.name],
        unchanged=seen,
        creates_namespace=False,
    )
