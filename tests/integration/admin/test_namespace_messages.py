"""Deleting a namespace deletes its messages and closes its producers."""

import pytest

from broker.messages.errors import MessageStoreError
from broker.messages.metadata import MessageDigest
from broker.messages.topic import PersistentTopic
from proto.names import TopicName
from server.connection.request_errors import RequestError
from tests.support.peers.rest_client import rest_client
from tests.support.processes.cluster import cluster

NAMESPACE = "/admin/v2/namespaces/public/tests"
ENTRY = MessageDigest(1, 1, 0)


@pytest.mark.parametrize("loaded", [True, False])
async def test_a_recreated_namespace_has_no_messages_of_the_deleted_namespace(loaded: bool) -> None:
    allowed = {"forceDeleteNamespaceAllowed": "true"}
    async with (
        cluster(profile="floodgate", broker=allowed) as parts,
        rest_client(parts.broker) as r,
    ):
        name = TopicName.parse("persistent://public/tests/orders")
        messaging = parts.broker.messaging
        await r.done("PUT", NAMESPACE)
        topic = await messaging.loaded_topics.get(name)
        assert isinstance(topic, PersistentTopic)
        topic.ledger.append(b"one", ENTRY)
        if not loaded:
            await messaging.loaded_topics.unload(name)
        await r.done("DELETE", f"{NAMESPACE}?force=true")
        assert not messaging.store.holds(str(name))
        assert messaging.loaded_topics.loaded(name) is None
        assert topic.closing
        with pytest.raises((RequestError, MessageStoreError)):
            await messaging.loaded_topics.get(name)
        await r.done("PUT", NAMESPACE)
        again = await messaging.loaded_topics.get(name)
        assert isinstance(again, PersistentTopic)
        assert again.ledger.size_bytes == 0
