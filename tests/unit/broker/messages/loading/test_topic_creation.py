"""Which topics a client may use, and which topics are created for the client."""

from __future__ import annotations

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.loading import topic_creation
from broker.messages.loading.topic_creation import MadeTopics, TopicCreation
from broker.stores.changes import TopicChanges
from broker.stores.memory import MemoryStore
from broker.topics.rules import TopicRules
from broker.topics.service import TopicService
from proto.names import NamespaceName, TopicName
from server.connection.request_errors import RequestError
from tests.support.clocks.manual_clock import ManualClock

NAMESPACE = NamespaceName("public", "default")


class Creation:
    def __init__(self, rules: TopicRules, *, owns: bool = True) -> None:
        self.store = MemoryStore()
        service = TopicService(self.store, lambda _: rules)
        self.creation = TopicCreation(
            self.store,
            service,
            lambda _: rules,
            lambda _: owns,
            lambda: "127.0.0.1:8080",
        )

    async def prepared(self) -> Creation:
        await self.store.create_namespace(NAMESPACE)
        names = [b"persistent://public/default/there", b"persistent://public/default/p-partition-0"]
        changes = TopicChanges(names, partitioned={"persistent://public/default/p": 2})
        await self.store.apply(NAMESPACE, changes)
        return self

    async def ensure(self, name: str, *, create: bool = True) -> bool:
        return await self.creation.ensure(TopicName.parse(name), create=create)

    async def refusal(self, name: str, *, create: bool = True) -> tuple[object, str]:
        with pytest.raises(RequestError) as raised:
            await self.ensure(name, create=create)
        return raised.value.server_error, raised.value.message


async def test_an_existing_topic_is_not_created_again() -> None:
    found = await Creation(TopicRules(auto_creation=False)).prepared()
    assert not await found.ensure("there", create=False)


async def test_a_missing_topic_is_created_and_listed() -> None:
    found = await Creation(TopicRules()).prepared()
    made = await found.ensure("new")
    assert made
    snapshot = await found.store.snapshot(NAMESPACE)
    assert snapshot is not None
    assert snapshot.holds(b"persistent://public/default/new")
    assert not await found.ensure("new")


@pytest.mark.parametrize(
    "name", ["p-partition-1", "x-partition-01", "non-persistent://public/default/n"]
)
async def test_a_missing_partition_or_partition_like_name_is_created(name) -> None:
    found = await Creation(TopicRules()).prepared()
    assert await found.ensure(name)


async def test_a_missing_partition_is_created_without_auto_creation() -> None:
    found = await Creation(TopicRules(auto_creation=False)).prepared()
    assert await found.ensure("p-partition-1")


@pytest.mark.parametrize("name", ["p-partition-9", "there-partition-1"])
async def test_a_partition_beyond_its_topic_is_not_found_without_auto_creation(name: str) -> None:
    found = await Creation(TopicRules(auto_creation=False)).prepared()
    full = f"persistent://public/default/{name}"
    assert await found.refusal(name) == (pb.TopicNotFound, f"Topic not found {full}")


@pytest.mark.parametrize("rules", [TopicRules(), TopicRules(auto_creation=False)])
async def test_a_missing_topic_is_not_found_when_client_or_rules_forbid_creation(rules) -> None:
    found = await Creation(rules).prepared()
    refused = await found.refusal("new", create=not rules.auto_creation)
    assert refused == (pb.TopicNotFound, "Topic not found persistent://public/default/new")


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("p", pb.NotAllowedError, "Found partitioned metadata for non-partitioned topic: {}"),
        ("p-partition-9", pb.TopicNotFound, "Topic not found {}"),
        (
            "there-partition-1",
            pb.NotAllowedError,
            "Partition metadata not found for the partitioned topic: {}",
        ),
        (
            "x__transaction_pending_ack",
            pb.NotAllowedError,
            "Can not create transaction system topic {}",
        ),
    ],
)
async def test_invalid_topic_names_are_refused_with_the_recorded_errors(name, code, text) -> None:
    found = await Creation(TopicRules()).prepared()
    full = f"persistent://public/default/{name}"
    assert await found.refusal(name) == (code, text.format(full))


async def test_a_topic_of_a_missing_namespace_is_not_served() -> None:
    found = await Creation(TopicRules()).prepared()
    assert await found.refusal("persistent://public/none/x") == (
        pb.ServiceNotReady,
        "Namespace bundle (public/none/0x00000000_0xffffffff) for topic "
        "(persistent://public/none/x) not served by this instance:127.0.0.1:8080. "
        "Please redo the lookup.",
    )


async def test_a_topic_of_another_broker_is_not_served() -> None:
    found = await Creation(TopicRules(), owns=False).prepared()
    code, text = await found.refusal("there")
    assert code == pb.ServiceNotReady
    assert text.startswith("Namespace bundle (public/default/0x")


async def test_a_topic_above_the_namespace_maximum_is_refused() -> None:
    found = await Creation(TopicRules(max_topics=2)).prepared()
    assert await found.refusal("new") == (
        pb.NotAllowedError,
        "Exceed maximum number of topics in namespace.",
    )


A, B, C = (TopicName.parse(name) for name in "abc")
PARTITION = TopicName.parse("c-partition-3")


async def test_a_created_topic_is_tracked_until_loaded_or_deleted() -> None:
    clock = ManualClock(5.0)
    made = MadeTopics(clock)
    made.add(A)
    made.add(B)
    made.add_partitioned(C)
    assert list(made.unused()) == [(A, 5.0), (B, 5.0)]
    assert A in made
    assert PARTITION in made
    made.loaded(A)
    await made.deleted(B)
    await made.deleted(C)
    assert len(made) == 0
    assert PARTITION not in made


async def test_topics_of_a_deleted_namespace_are_no_longer_tracked() -> None:
    made, other = MadeTopics(ManualClock()), TopicName.parse("persistent://public/default2/a")
    made.add(A)
    made.add_partitioned(C)
    made.add(other)
    await made.forget([NamespaceName("public", "default")])
    assert [name for name, _ in made.unused()] == [other]
    assert len(made) == 1


def test_the_oldest_tracked_topic_is_forgotten_above_the_bound(monkeypatch) -> None:
    monkeypatch.setattr(topic_creation, "MOST_TOPICS", 2)
    made = MadeTopics(ManualClock())
    for name in (A, B, C):
        made.add(name)
    assert [name for name, _ in made.unused()] == [B, C]
