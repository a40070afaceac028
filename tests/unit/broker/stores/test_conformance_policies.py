"""Every store: policies about messages, of namespaces and topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.stores.store import MetadataStore
    from tests.unit.broker.stores.conftest import OpenStore

NAMESPACE, TOPIC = "tenant/a", "persistent://tenant/a/t'\0\U0001f600"
RATE = {"limit": -1, "names": ["a", "\0\uff5e"], "deep": {"x": None, "y": 1.5}}


async def keep_two(store: MetadataStore, name: str) -> None:
    await store.set_policy(name, "ttl", 5)
    await store.set_policy(name, "dedup", True)


async def test_policies_are_kept_by_name_and_key(open_store: OpenStore) -> None:
    async with open_store() as store:
        # When
        await store.set_policy(NAMESPACE, "ttl", 5)
        await store.set_policy(TOPIC, "rate", RATE)
        await store.set_policy(TOPIC, "dedup", False)
        await store.set_policy(NAMESPACE, "ttl", 7)
        # Then
        expected = {NAMESPACE: {"ttl": 7}, TOPIC: {"rate": RATE, "dedup": False}}
        assert await store.policy_documents() == expected
        assert await store.policy_documents(TOPIC) == {TOPIC: expected[TOPIC]}
        assert await store.policy_documents("tenant/none") == {}


async def test_a_policy_is_removed_alone_and_the_last_one_with_its_name(
    open_store: OpenStore,
) -> None:
    async with open_store() as store:
        # Given
        await keep_two(store, TOPIC)
        # When
        await store.set_policy(TOPIC, "ttl", None)
        await store.set_policy(TOPIC, "never set", None)
        left = await store.policy_documents()
        await store.set_policy(TOPIC, "dedup", None)
        # Then
        assert left == {TOPIC: {"dedup": True}}
        assert await store.policy_documents() == {}


async def test_all_policies_of_some_names_are_forgotten(open_store: OpenStore) -> None:
    async with open_store() as store:
        # Given
        for name in (NAMESPACE, TOPIC, "other/b"):
            await keep_two(store, name)
        # When
        await store.delete_policies([NAMESPACE, TOPIC, "tenant/none"])
        # Then
        assert await store.policy_documents() == {"other/b": {"ttl": 5, "dedup": True}}
