"""An event just before a store's change, after all reads for it."""

from collections.abc import Awaitable, Callable

from broker.stores.changes import TopicChanges
from broker.stores.store import MetadataStore
from proto.names import NamespaceName


def before_change(
    store: MetadataStore, number: int, meanwhile: Callable[[], Awaitable[object]]
) -> None:
    """Act before the store's n-th change from now, counted from 1."""
    apply, left = store.apply, [number]

    async def counted(namespace: NamespaceName, changes: TopicChanges) -> int:
        left[0] -= 1
        if left[0] == 0:
            store.apply = apply
            await meanwhile()
        return await apply(namespace, changes)

    store.apply = counted
