import pytest

from broker.ownership.open_ownership import is_shared, sole_ownership
from broker.ownership.ownership import Bundle, bundle_of_topic
from broker.stores.memory import MemoryStore
from broker.stores.store import NamespacePolicies
from proto.names import NamespaceName, TopicName
from server.configuration.addresses import ServerUrls
from server.connection.request_errors import RequestError

SPACE = NamespaceName.parse("tenant/ns")
TOPIC = TopicName.parse("persistent://tenant/ns/topic")
URLS = ServerUrls("pulsar://10.0.0.1:6650", "http://10.0.0.1:8080")


async def test_a_sole_broker_owns_all_topics_even_after_a_release() -> None:
    ownership, lost = sole_ownership(MemoryStore(), lambda: URLS, pulsar_compatible=False), []

    async def callback(bundle: Bundle) -> None:
        lost.append(bundle)

    ownership.on_lost(callback)
    assert ownership.owns(TOPIC)
    owner = await ownership.acquire(TOPIC)
    assert (owner.urls, owner.here) == (URLS, True)
    assert await ownership.brokers() == ["10.0.0.1:8080"]
    bundle = bundle_of_topic(TOPIC, 4)
    await ownership.release(bundle)
    assert lost == [bundle]
    assert ownership.owns(TOPIC)


async def test_in_profile_pulsar_a_bundle_is_owned_from_lookup_until_unload() -> None:
    store = MemoryStore()
    await store.create_namespace(SPACE, NamespacePolicies(bundles=2))
    ownership = sole_ownership(store, lambda: URLS, pulsar_compatible=True)
    bundle = bundle_of_topic(TOPIC, 2)
    names = [TopicName.parse(f"persistent://tenant/ns/{index}") for index in range(50)]
    assert not ownership.owns(TOPIC)
    await ownership.acquire(TOPIC)
    # Along with the rest of the bundle
    assert ownership.owns(TOPIC)
    assert {name for name in names if ownership.owns(name)} == set(filter(bundle.holds, names))
    await ownership.release(bundle)
    assert not ownership.owns(TOPIC)


async def test_in_profile_pulsar_a_topic_of_a_missing_namespace_is_not_acquired() -> None:
    ownership = sole_ownership(MemoryStore(), lambda: URLS, pulsar_compatible=True)
    with pytest.raises(RequestError, match="Namespace not found"):
        await ownership.acquire(TOPIC)


def test_only_a_postgresql_store_is_shared_between_brokers() -> None:
    assert is_shared("postgresql://user@host/topics")
    assert not is_shared("sqlite:///topics.db")
    assert not is_shared("memory:local")
