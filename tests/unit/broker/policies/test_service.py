import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest

from broker.errors import RefusedError
from broker.policies import service as module
from broker.policies.effective import DEFAULTS, Retention
from broker.policies.service import PolicyService
from broker.stores.changes import StoreError
from broker.stores.memory import MemoryStore
from broker.stores.store import DEFAULT_POLICIES
from proto.names import NamespaceName, TopicName
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle

TTL, DEDUPLICATION = "message_ttl_in_seconds", "deduplicationEnabled"
NAMESPACE = NamespaceName.parse("public/default")
TOPIC = TopicName.parse("persistent://public/default/t")
PARTITION = TopicName.parse("persistent://public/default/t-partition-3")
OTHER = TopicName.parse("persistent://public/default/other")


class SharedStore(MemoryStore):
    """A store changed by a second process."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Callable[[str], None]] = []

    def on_policies(self, callback: Callable[[str], None]) -> None:
        self.told.append(callback)

    def tell(self, name: str) -> None:
        for callback in self.told:
            callback(name)


@pytest.fixture
def store() -> SharedStore:
    return SharedStore()


@pytest.fixture
async def policies(store: SharedStore) -> AsyncIterator[PolicyService]:
    service = PolicyService(store, lambda: DEFAULTS, ManualClock())
    await service.start()
    yield service
    await service.close()


async def test_a_topic_policy_overrides_its_namespace_policy_and_both_override_the_broker(
    policies: PolicyService,
) -> None:
    assert policies.of(TOPIC) == DEFAULTS
    await policies.set(NAMESPACE, TTL, 60)
    await policies.set(NAMESPACE, DEDUPLICATION, True)
    await policies.set(TOPIC, TTL, 5)
    assert policies.of(TOPIC) == replace(DEFAULTS, ttl_seconds=5, deduplication=True)
    assert policies.of(PARTITION) == policies.of(TOPIC)
    assert policies.of(OTHER) == replace(DEFAULTS, ttl_seconds=60, deduplication=True)
    assert policies.document(TOPIC) == {TTL: 5}


async def test_a_namespace_change_updates_cached_topic_policies(policies) -> None:
    await policies.set(TOPIC, TTL, 5)
    assert not policies.of(TOPIC).deduplication
    await policies.set(NAMESPACE, DEDUPLICATION, True)
    assert policies.of(TOPIC).deduplication


async def test_removed_policies_are_no_longer_effective(policies: PolicyService) -> None:
    await policies.set(NAMESPACE, TTL, 60)
    await policies.set(TOPIC, TTL, 5)
    await policies.set(TOPIC, TTL, None)
    after_first = policies.of(TOPIC)
    await policies.set(NAMESPACE, TTL, None)
    assert after_first.ttl_seconds == 60
    assert policies.of(TOPIC) == DEFAULTS
    assert len(policies) == 0


async def test_each_policy_change_is_reported_once_and_a_no_op_is_not(policies) -> None:
    told: list[object] = []
    policies.on_change(told.append)
    await policies.set(NAMESPACE, TTL, 60)
    await policies.set(NAMESPACE, TTL, 60)
    await policies.set(TOPIC, TTL, 60)
    await policies.set(OTHER, TTL, None)
    policies.configuration_changed()
    assert told == [NAMESPACE, TOPIC, None]


async def test_a_policy_set_by_another_broker_takes_effect(policies, store) -> None:
    heard = asyncio.Event()
    policies.on_change(lambda _: heard.set())
    await store.set_policy(str(TOPIC), TTL, 5)
    store.tell(str(TOPIC))
    await heard.wait()
    assert policies.of(TOPIC).ttl_seconds == 5


async def test_after_missed_changes_all_policies_are_read_again(policies, store) -> None:
    await policies.set(TOPIC, TTL, 5)
    told = asyncio.Queue[object]()
    policies.on_change(told.put_nowait)
    await store.set_policy(str(TOPIC), TTL, None, before=5)
    await store.set_policy(str(NAMESPACE), TTL, 7)
    store.tell("")
    assert {await told.get(), await told.get()} == {TOPIC, NAMESPACE}
    assert policies.of(TOPIC).ttl_seconds == 7


async def test_a_change_by_another_broker_between_reading_and_writing_is_kept(
    policies: PolicyService, store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = store.set_policy

    async def late(name: str, key: str, value: object, before: object = None) -> bool:
        monkeypatch.undo()
        await write(name, key, ["theirs"])
        return await write(name, key, value, before)

    monkeypatch.setattr(store, "set_policy", late)
    await policies.change(NAMESPACE, "names", lambda kept: [*kept.get("names", ()), "ours"])
    assert policies.document(NAMESPACE) == {"names": ["theirs", "ours"]}


async def test_a_policy_change_always_overtaken_by_other_brokers_is_refused(
    policies: PolicyService, store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object) -> bool:
        return False

    monkeypatch.setattr(store, "set_policy", never)
    with pytest.raises(RefusedError, match="is being changed by other brokers"):
        await policies.set(TOPIC, TTL, 5)


async def test_a_policy_stored_despite_a_store_error_takes_effect(
    policies: PolicyService, store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = store.set_policy

    async def lost(*change: Any) -> bool:
        await write(*change)
        raise StoreError("the connection was lost")

    monkeypatch.setattr(store, "set_policy", lost)
    with pytest.raises(StoreError):
        await policies.set(TOPIC, TTL, 5)
    await settle()
    assert policies.of(TOPIC).ttl_seconds == 5


async def test_a_deleted_topic_leaves_no_policies_behind(policies, store) -> None:
    await policies.set(TOPIC, TTL, 5)
    await policies.set(OTHER, TTL, 6)
    await policies.forget(TOPIC)
    await policies.forget(TOPIC)
    assert policies.of(TOPIC) == DEFAULTS
    assert await store.policy_documents() == {str(OTHER): {TTL: 6}}


async def test_a_policy_set_by_another_broker_before_a_deletion_is_removed(
    policies: PolicyService, store: SharedStore
) -> None:
    for name in (TOPIC, NAMESPACE):
        await store.set_policy(str(name), TTL, 5)
    await policies.forget(TOPIC)
    await policies.forget_namespaces([NAMESPACE])
    assert await store.policy_documents() == {}


async def test_a_deleted_namespace_leaves_no_policies_behind(policies, store) -> None:
    beside = TopicName.parse("persistent://public/default2/t")
    for one in (NAMESPACE, TOPIC, OTHER, beside):
        await policies.set(one, TTL, 5)
    await policies.forget_namespaces([NAMESPACE])
    assert await store.policy_documents() == {str(beside): {TTL: 5}}
    assert policies.of(TOPIC) == DEFAULTS


async def test_the_number_of_names_with_policies_is_bounded(policies, monkeypatch) -> None:
    monkeypatch.setattr(module, "MAX_DOCUMENTS", 1)
    await policies.set(TOPIC, TTL, 5)
    with pytest.raises(RefusedError, match="policies of their own already"):
        await policies.set(OTHER, TTL, 5)
    await policies.set(OTHER, TTL, None)
    await policies.set(TOPIC, DEDUPLICATION, True)
    assert policies.document(TOPIC) == {TTL: 5, DEDUPLICATION: True}
    assert policies.document(OTHER) == {}


async def test_policies_stored_before_the_start_are_effective(store: SharedStore) -> None:
    value = {"retentionTimeInMinutes": 10, "retentionSizeInMB": -1}
    await store.set_policy(str(NAMESPACE), "retention_policies", value)
    service = PolicyService(store, lambda: DEFAULTS, ManualClock())
    await service.start()
    assert service.of(TOPIC).retention == Retention(10, -1)
    await service.close()


async def test_policy_changes_missed_during_a_store_failure_are_read_by_a_retry(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    service = PolicyService(store, lambda: DEFAULTS, clock)
    await service.start()
    for topic in (TOPIC, OTHER):
        await store.set_policy(str(topic), TTL, 5)
    read = store.policy_documents

    async def fails(_: str | None = None) -> dict[str, dict[str, object]]:
        raise StoreError("not now")

    monkeypatch.setattr(store, "policy_documents", fails)
    store.tell(str(TOPIC))
    store.tell(str(OTHER))
    await settle()
    monkeypatch.setattr(store, "policy_documents", read)
    assert service.document(TOPIC) == {}
    clock.advance(module.READ_AGAIN_SECONDS)
    await settle()
    assert [service.document(one) for one in (TOPIC, OTHER)] == [{TTL: 5}, {TTL: 5}]
    await service.close()


async def test_more_changed_names_than_are_queued_cause_a_read_of_all_policies(
    policies, store, monkeypatch
) -> None:
    monkeypatch.setattr(module, "MOST_TOLD", 3)
    for topic in (TOPIC, OTHER):
        await store.set_policy(str(topic), TTL, 5)
    for number in range(4):
        store.tell(f"persistent://public/default/another-{number}")
    await settle()
    assert [policies.document(one) for one in (TOPIC, OTHER)] == [{TTL: 5}, {TTL: 5}]


async def test_a_policy_may_not_exceed_its_size_bound_but_a_larger_policy_may_shrink(
    policies: PolicyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    await policies.set(NAMESPACE, "names", "x" * 40)
    monkeypatch.setattr(module, "MAX_POLICY_BYTES", 20)
    with pytest.raises(RefusedError, match="names would have 43 bytes, of 20 at most"):
        await policies.set(NAMESPACE, "names", "x" * 41)
    with pytest.raises(RefusedError, match="names would have 32 bytes"):
        await policies.create_namespace(OTHER.namespace, DEFAULT_POLICIES, {"names": "x" * 30})
    await policies.set(NAMESPACE, "names", "x" * 30)
    await policies.set(NAMESPACE, "names", "x" * 18)
    assert policies.document(NAMESPACE) == {"names": "x" * 18}
