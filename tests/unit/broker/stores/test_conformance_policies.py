"""Every store: policies about messages, of namespaces and topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker.stores.changes import StoreError
from broker.stores.store import NamespacePolicies
from proto.names import NamespaceName

if TYPE_CHECKING:
    from broker.stores.store import MetadataStore

NAMESPACE, TOPIC = "tenant/a", "persistent://tenant/a/t'\0\U0001f600"
RATE = {"limit": -1, "names": ["a", "\0\uff5e"], "deep": {"x": None, "y": 1.5}}


async def keep_two(store: MetadataStore, name: str) -> None:
    await store.set_policy(name, "ttl", 5)
    await store.set_policy(name, "dedup", True)


async def test_policies_are_stored_by_name_and_key(store: MetadataStore) -> None:
    await store.set_policy(NAMESPACE, "ttl", 5)
    await store.set_policy(TOPIC, "rate", RATE)
    await store.set_policy(TOPIC, "dedup", False)
    await store.set_policy(NAMESPACE, "ttl", 7, before=5)
    expected = {NAMESPACE: {"ttl": 7}, TOPIC: {"rate": RATE, "dedup": False}}
    assert await store.policy_documents() == expected
    assert await store.policy_documents(TOPIC) == {TOPIC: expected[TOPIC]}
    assert await store.policy_documents("tenant/none") == {}


async def test_removing_a_policy_keeps_the_rest_and_the_last_removal_drops_the_name(
    store: MetadataStore,
) -> None:
    await keep_two(store, TOPIC)
    await store.set_policy(TOPIC, "ttl", None, before=5)
    left = await store.policy_documents()
    await store.set_policy(TOPIC, "dedup", None, before=True)
    assert left == {TOPIC: {"dedup": True}}
    assert await store.policy_documents() == {}


async def test_a_policy_is_replaced_only_if_it_has_the_expected_value(store: MetadataStore) -> None:
    assert await store.set_policy(TOPIC, "rate", RATE)
    assert not await store.set_policy(TOPIC, "rate", 7)
    assert not await store.set_policy(TOPIC, "rate", 7, before=5)
    assert not await store.set_policy(TOPIC, "rate", None, before=5)
    assert not await store.set_policy(TOPIC, "ttl", 7, before=5)
    assert await store.policy_documents() == {TOPIC: {"rate": RATE}}
    assert await store.set_policy(TOPIC, "rate", 7, before=RATE)
    assert await store.set_policy(TOPIC, "rate", None, before=7)
    assert await store.policy_documents() == {}


async def test_deleting_policies_removes_all_keys_of_the_chosen_names(store: MetadataStore) -> None:
    for name in (NAMESPACE, TOPIC, "other/b"):
        await keep_two(store, name)
    await store.delete_policies([NAMESPACE, TOPIC, "tenant/none"])
    assert await store.policy_documents() == {"other/b": {"ttl": 5, "dedup": True}}


async def test_a_created_namespace_has_only_the_policies_of_its_creation(
    store: MetadataStore,
) -> None:
    space, bundles = NamespaceName.parse(NAMESPACE), NamespacePolicies(2)
    await store.set_policy(NAMESPACE, "dedup", True)
    created = await store.create_namespace(space, bundles, {"ttl": 5, "rate": RATE})
    again = await store.create_namespace(space, bundles, {"ttl": 6})
    assert (created, again) == (True, False)
    assert await store.policy_documents() == {NAMESPACE: {"ttl": 5, "rate": RATE}}


@pytest.mark.parametrize("open_store", ["sqlite", "postgresql"], indirect=True)
async def test_a_namespace_is_created_with_all_its_policies_or_not_at_all(
    store: MetadataStore,
) -> None:
    with pytest.raises((TypeError, StoreError)):
        await store.create_namespace(
            NamespaceName.parse(NAMESPACE), NamespacePolicies(2), {"ttl": 5, "odd": object()}
        )
    assert (await store.namespaces(), await store.policy_documents()) == ([], {})
