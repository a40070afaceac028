"""The stores under conformance tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.stores import topic_stores

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path
    from typing import TypeAlias

    from broker.stores.store import MetadataStore

    OpenStore: TypeAlias = Callable[[], AbstractAsyncContextManager[MetadataStore]]

STORES = ["memory", "sqlite", "sqlite_reread", "postgresql", "postgresql_reread"]


@pytest.fixture(params=STORES)
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    """Opens a store; persistent stores have the same content at each opening."""
    make = getattr(topic_stores, request.param)
    where: tuple[object, ...] = ()
    if request.param.startswith("sqlite"):
        where = (tmp_path,)
    if request.param.startswith("postgresql"):
        where = (request.getfixturevalue("postgresql_url"),)
    return lambda: topic_stores.opened(make(*where))


@pytest.fixture
async def store(open_store: OpenStore) -> AsyncIterator[MetadataStore]:
    """A store, open during the test."""
    async with open_store() as found:
        yield found
