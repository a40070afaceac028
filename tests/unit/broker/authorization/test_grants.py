import pytest

from broker.authorization.grants import KEY, OF_NAMESPACE, OF_TOPICS, forget_grants
from broker.policies.effective import DEFAULTS
from broker.policies.service import PolicyService
from broker.stores.memory import MemoryStore
from proto.names import NamespaceName, TopicName
from tests.support.clocks.manual_clock import ManualClock

SHOP = NamespaceName.parse("acme/shop")
AT = "persistent://acme/shop"
ROLES = {"x": ["produce"]}


async def left(deleted: str, *granted: str, **more: object) -> object:
    store = MemoryStore()
    policies = PolicyService(store, lambda: DEFAULTS, ManualClock())
    await store.create_namespace(SHOP)
    kept = {OF_TOPICS: {f"{AT}/{one}": ROLES for one in granted}, **more}
    await policies.set(SHOP, KEY, kept)
    await forget_grants(policies, TopicName.parse(f"{AT}/{deleted}"))
    return policies.document(SHOP).get(KEY)


@pytest.mark.parametrize(
    ("deleted", "granted", "kept"),
    [
        ("a", ("a", "ab", "b"), ("ab", "b")),
        ("a", ("a", "a-partition-0", "a-partition-11", "a-partition-x"), ("a-partition-x",)),
        ("a-partition-0", ("a", "a-partition-0"), ("a",)),
        ("c", ("a",), ("a",)),
    ],
)
async def test_deleting_a_topic_removes_its_grants_and_the_grants_of_its_partitions(
    deleted, granted, kept
) -> None:
    found = await left(deleted, *granted)
    assert found == {OF_TOPICS: {f"{AT}/{one}": ROLES for one in kept}}


async def test_policies_without_any_grant_are_removed() -> None:
    assert await left("a", "a") is None
    of_namespace = {"y": ["consume"]}
    found = await left("a", "a", **{OF_NAMESPACE: of_namespace})
    assert found == {OF_TOPICS: {}, OF_NAMESPACE: of_namespace}
