"""Something that happens just before a store makes a change, when all was read for it."""

from collections.abc import Awaitable, Callable

from broker.stores.changes import TopicChanges
from broker.stores.store import MetadataStore
from proto.names import NamespaceName


def before_change(
    store: MetadataStore, number: int, meanwhile: Callable[[], Awaitable[object]]
) -> None:
    """Do something before the store's change with this number from now on, counted from 1."""
    apply, left = store.apply, [number]

    async def counted(namespace: NamespaceName, changes: TopicChanges) -> int:
        left[0] -= 1
        if left[0] == 0:
            store.apply = apply
            await meanwhile()
        return await apply(namespace, changes)

    store.apply = counted
