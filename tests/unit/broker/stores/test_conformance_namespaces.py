"""Every store: tenants, namespaces, policies, and dynamic configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker.stores.changes import MAX_TOLD_NAMES, NamespaceNotEmptyError, TopicChanges
from broker.stores.store import NamespacePolicies, TenantInfo
from proto.names import NamespaceName
from tests.support.stores.topic_stores import A, B, base, changes, names, topic, with_properties

if TYPE_CHECKING:
    from broker.stores.store import MetadataStore

INFO = TenantInfo(("admin", "o'brien\0"), ("standalone",))
ODD_TEXTS = ["'; DROP TABLE topics; --", '"x" $1 ?1 %s {0}', "a\0b", "\U0001f600", "\uff5e", "\\"]


async def test_tenants_are_created_changed_and_deleted_once(store: MetadataStore) -> None:
    created = [await store.create_tenant("t", INFO), await store.create_tenant("t", INFO)]
    other = await store.create_tenant("a", TenantInfo())
    changed = [await store.change_tenant(name, TenantInfo(("x",))) for name in ("a", "none")]
    listed = await store.tenants()
    deleted = [await store.delete_tenant("a"), await store.delete_tenant("a")]
    assert created == [True, False]
    assert other
    assert changed == [True, False]
    assert list(listed.items()) == [("a", TenantInfo(("x",))), ("t", INFO)]
    assert deleted == [True, False]
    assert await store.tenants() == {"t": INFO}


async def test_an_existing_tenant_is_not_overwritten_by_a_creation(store: MetadataStore) -> None:
    await store.create_tenant("tenant", INFO)
    await store.create_tenant("tenant", TenantInfo())
    await store.create_namespace(A)
    assert await store.tenants() == {"tenant": INFO}


async def test_a_tenant_is_created_with_its_first_namespace_and_outlives_the_namespace(
    store: MetadataStore,
) -> None:
    await store.create_namespace(A)
    await store.apply(NamespaceName.parse("second/b"), changes())
    assert await store.tenants() == {"second": TenantInfo(), "tenant": TenantInfo()}
    await store.delete_namespace(A)
    assert "tenant" in await store.tenants()


async def test_a_tenant_with_a_namespace_is_not_deleted(store: MetadataStore) -> None:
    await store.create_namespace(A)
    await store.create_tenant("ten", INFO)
    await store.create_tenant("tenan_", INFO)
    with pytest.raises(NamespaceNotEmptyError):
        await store.delete_tenant("tenant")
    assert await store.delete_tenant("ten")
    assert await store.delete_tenant("tenan_")
    await store.delete_namespace(A)
    assert await store.delete_tenant("tenant")
    assert await store.tenants() == {}


async def test_a_namespace_keeps_the_policies_of_its_creation(store: MetadataStore) -> None:
    await store.create_namespace(A, NamespacePolicies(bundles=16))
    await store.create_namespace(A, NamespacePolicies(bundles=8))
    await store.apply(B, changes(topic("x", B)))
    assert await store.policies(A) == NamespacePolicies(16)
    assert await store.policies(B) == NamespacePolicies(4)
    assert await store.policies(NamespaceName.parse("tenant/none")) is None


async def test_deleting_a_namespace_removes_its_policies_and_system_topics(
    store: MetadataStore,
) -> None:
    await store.create_namespace(A, NamespacePolicies(bundles=16))
    await store.apply(A, with_properties({topic("__change_events"): {"k": "v"}}))
    deleted = [await store.delete_namespace(A), await store.delete_namespace(A)]
    assert deleted == [True, False]
    assert await store.snapshot(A) is None
    assert await store.namespaces() == []
    assert await store.policies(A) is None
    assert await store.version(A) == 0
    await store.create_namespace(A)
    assert await store.policies(A) == NamespacePolicies()
    assert not (await store.snapshot(A)).system
    assert await store.properties(A, base("__change_events")) == {}


@pytest.mark.parametrize("content", [changes(topic("a")), changes(p=2)])
async def test_a_namespace_with_topics_is_not_deleted(content, store: MetadataStore) -> None:
    await store.apply(A, content)
    with pytest.raises(NamespaceNotEmptyError):
        await store.delete_namespace(A)
    assert (await store.snapshot(A)).version == 1
    assert await store.apply(A, changes(topic("b"))) == 2


async def test_versions_continue_when_a_namespace_is_recreated(store: MetadataStore) -> None:
    feed = store.changes()
    for name in ("a", "b"):
        await store.apply(A, changes(topic(name)))
    await store.apply(A, changes(topic("__change_events"), removed=(topic("a"), topic("b"))))
    await store.delete_namespace(A)
    again = await store.apply(A, changes(topic("new")))
    feed.close()
    told = [(one.version, list(one.added), list(one.removed)) async for one in feed]
    assert told[3] == (4, [], [topic("__change_events")])
    assert told[4:] == [(again, [topic("new")], [])]
    assert again == 5
    assert await names(store) == [base("new")]


async def test_the_version_of_a_namespace_is_read_without_its_names(store: MetadataStore) -> None:
    assert await store.version(A) == 0
    await store.apply(A, changes(topic("a")))
    await store.apply(A, changes(topic("b")))
    assert await store.version(A) == 2


async def test_each_broker_instance_has_its_own_increasing_number(store: MetadataStore) -> None:
    assert [await store.next_instance() for _ in range(3)] == [0, 1, 2]


async def test_dynamic_configuration_values_are_stored_replaced_and_removed(
    store: MetadataStore,
) -> None:
    assert await store.configuration() == {}
    await store.set_configuration("b", "1")
    await store.set_configuration("a", "1")
    await store.set_configuration("b", "2")
    kept = dict(await store.configuration())
    await store.set_configuration("a", None)
    await store.set_configuration("none", None)
    assert list(kept.items()) == [("a", "1"), ("b", "2")]
    assert await store.configuration() == {"b": "2"}


@pytest.mark.parametrize("text", ODD_TEXTS)
async def test_any_text_may_be_a_key_or_a_value(text: str, store: MetadataStore) -> None:
    await store.set_configuration(text, text)
    await store.create_tenant(text, TenantInfo((text,), (text,)))
    assert await store.configuration() == {text: text}
    assert await store.tenants() == {text: TenantInfo((text,), (text,))}
    assert await store.delete_tenant(text)


async def test_a_tenant_and_its_namespaces_are_read_separately(store: MetadataStore) -> None:
    spaces = ["a/2", "a/1", "a-b/x", "a0/x", "aa/x", "a.b/x"]
    await store.create_tenant("a", INFO)
    await store.create_tenant("none", INFO)
    for name in spaces:
        await store.create_namespace(NamespaceName.parse(name))
    found = {one: await store.namespaces(one) for one in ("a", "a0", "none", "missing")}
    shown = {one: list(map(str, names)) for one, names in found.items()}
    assert shown == {"a": ["a/1", "a/2"], "a0": ["a0/x"], "none": [], "missing": []}
    assert list(map(str, await store.namespaces())) == sorted(spaces)
    assert (await store.tenant("a"), await store.tenant("aa")) == (INFO, TenantInfo())
    assert await store.tenant("missing") is None


async def test_many_namespaces_and_tenants_are_listed_in_order(store: MetadataStore) -> None:
    spaces = [NamespaceName(f"t{n * 7919 % 3_001:04d}", "own") for n in range(3_001)]
    some = [(one, TopicChanges([topic("x", one)], adds_only=True)) for one in spaces]
    await store.apply_all(some)
    assert await store.namespaces() == sorted(spaces, key=str)
    assert list(await store.tenants()) == sorted(one.tenant for one in spaces)


async def test_deleting_namespaces_together_removes_and_reports_all_their_topics(
    store: MetadataStore,
) -> None:
    described = with_properties({topic("t"): {"k": "v"}, topic("p-partition-0"): {}})
    added = [*described.added, topic("__change_events"), topic("n", A, "non-persistent")]
    await store.apply(A, TopicChanges(added, (), {base("p"): 1}, described.properties))
    feed = store.changes()
    assert await store.create_namespace(B)
    found = await store.delete_all([A, B, NamespaceName.parse("tenant/none")])
    assert (list(found), found[B].empty) == ([A, B], True)
    last = found[A]
    assert (last.version, sorted(last.persistent.names())) == (1, sorted(described.added))
    assert list(last.non_persistent.names()) == [added[-1]]
    assert await store.delete_all([A]) == {}
    assert (await store.snapshot(A), await store.policies(A)) == (None, None)
    feed.close()
    told = [(one.version, list(one.added), list(one.removed)) async for one in feed]
    assert told == [(2, [], sorted(added)), (1, [], [])]
    assert await store.apply(A, changes(topic("t"))) == 3
    assert await store.properties(A, base("t")) == {}
    assert dict((await store.snapshot(A)).partitioned) == {}


async def test_the_feed_reports_a_deletion_of_many_topics_without_their_names(
    store: MetadataStore,
) -> None:
    many = [topic(f"t{number}") for number in range(MAX_TOLD_NAMES + 1)]
    await store.apply(A, TopicChanges(many))
    feed = store.changes()
    found = await store.delete_all([A])
    assert len(found[A].persistent) == len(many)
    feed.close()
    assert [(one.version, one.complete) async for one in feed] == [(2, False)]
    assert await store.snapshot(A) is None
