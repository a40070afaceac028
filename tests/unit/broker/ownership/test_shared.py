"""Shared ownership without a database; tests/integration/ownership has one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from broker.bundles import ALL_HASHES
from broker.ownership import tables
from broker.ownership.ownership import Bundle
from broker.ownership.shared import SharedOwnership
from broker.ownership.tables import BundleRow
from broker.stores.store import NamespacePolicies
from proto.names import TopicName
from server.configuration.addresses import ServerUrls
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started

TOPIC = TopicName.parse("persistent://tenant/shared/x")
ELSEWHERE = ServerUrls("pulsar://b:1")


class Database:
    """A database that answers when a test permits: another broker owns all bundles.

    Attributes:
        asked: Number of questions for an owner.
        answers: Set to answer.
        policies: Those of all namespaces.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.answers = asyncio.Event()
        self.policies: NamespacePolicies | None = NamespacePolicies(1)
        session = SimpleNamespace(id="me", ready=self._ready, notice=lambda: True)
        store = SimpleNamespace(policies=self._policies)
        self.ownership = SharedOwnership(store, _connected, session, ManualClock())

    async def _ready(self) -> str:
        return "me"

    async def _policies(self, _: object) -> NamespacePolicies | None:
        return self.policies

    async def owner_of(self, *_: object) -> BundleRow:
        self.asked += 1
        await self.answers.wait()
        return BundleRow(ALL_HASHES, "other", "disk", ELSEWHERE)


@asynccontextmanager
async def _connected() -> AsyncIterator[None]:
    yield


@pytest.fixture
async def database(monkeypatch: pytest.MonkeyPatch) -> Database:
    made = Database()
    monkeypatch.setattr(tables, "owner_of", made.owner_of)
    return made


async def test_concurrent_lookups_of_a_bundle_share_one_question(database: Database) -> None:
    asking = [await started(database.ownership.acquire(TOPIC)) for _ in range(5)]
    database.answers.set()
    owners = await asyncio.gather(*asking)
    assert {owner.urls for owner in owners} == {ELSEWHERE}
    assert database.asked == 1


async def test_lookups_whose_clients_left_ask_nothing_more(database: Database) -> None:
    for _ in range(5):
        asking = await started(database.ownership.acquire(TOPIC))
        asking.cancel()
        await settle()
    database.answers.set()
    await settle()
    assert database.asked == 1
    assert (await database.ownership.acquire(TOPIC)).urls == ELSEWHERE
    assert database.asked == 2


async def test_a_repeated_notification_of_a_deletion_starts_no_second_one(
    database: Database,
) -> None:
    moved: list[Bundle] = []
    is_deleted = asyncio.Event()

    async def delete(bundle: Bundle) -> None:
        moved.append(bundle)
        await is_deleted.wait()

    database.policies = None
    database.ownership.on_moved(delete)
    for _ in range(3):
        database.ownership._asked(f"{TOPIC.namespace} other")
        await settle()
    is_deleted.set()
    await settle()
    assert moved == [Bundle(TOPIC.namespace, ALL_HASHES)]
