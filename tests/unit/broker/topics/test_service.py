"""Operations on topics; of two concurrent equal operations one succeeds."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import repeat

import pytest

from broker.errors import Refusal, RefusedError
from broker.stores.memory import MemoryStore
from broker.stores.store import NamespaceSnapshot
from broker.topics.properties import TopicProperties
from broker.topics.rules import MAX_PARTITIONS, PARTITIONS_PER_CHANGE, TopicRules
from broker.topics.service import TopicService
from proto.names import MAX_NAME_BYTES, NamespaceName, TopicName

NAMESPACE = NamespaceName.parse("tenant/ns")


def topic(local: str, domain: str = "persistent", namespace: str = "tenant/ns") -> TopicName:
    return TopicName.parse(f"{domain}://{namespace}/{local}")


class LateStore(MemoryStore):
    """A store whose answers are outdated on arrival, as a real store's are.

    Attributes:
        outdated: Snapshots answered first, in place of the newest.
    """

    outdated: Iterator[NamespaceSnapshot] = iter(())

    async def snapshot(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        newest = await super().snapshot(namespace)
        await asyncio.sleep(0)
        return next(self.outdated, newest)

    async def properties(self, namespace: NamespaceName, name: str) -> Mapping[str, str]:
        found = await super().properties(namespace, name)
        await asyncio.sleep(0)
        return found


class Topics:
    """A namespace, the service changing the namespace, and replaceable rules."""

    def __init__(self, rules: TopicRules) -> None:
        self.store = LateStore()
        self.rules = rules
        self.service = TopicService(self.store, lambda _: self.rules)
        self.properties = TopicProperties(self.store)

    async def snapshot(self) -> NamespaceSnapshot:
        snapshot = await self.store.snapshot(NAMESPACE)
        assert snapshot is not None
        return snapshot

    async def names(self) -> list[str]:
        """Local names of the listed topics of both domains."""
        found = await self.snapshot()
        names = [*found.non_persistent.names(), *found.persistent.names()]
        return [name.decode().rpartition("/")[2] for name in names]


async def topics(**rules: int) -> Topics:
    made = Topics(TopicRules(**rules))
    await made.store.create_namespace(NAMESPACE)
    return made


async def refusal(work: object) -> tuple[Refusal, str]:
    with pytest.raises(RefusedError) as caught:
        await work  # type: ignore[misc]
    return caught.value.refusal, caught.value.reason


@pytest.fixture
async def made() -> Topics:
    return await topics()


# -- topics without partitions --------------------------------------------------------------------


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
async def test_a_second_creation_of_a_topic_is_refused(made: Topics, domain: str) -> None:
    await made.service.create(topic("t", domain), {})
    refused = await refusal(made.service.create(topic("t", domain), {}))
    assert refused == (Refusal.CONFLICT, "This topic already exists")
    assert await made.names() == ["t"]


async def test_two_simultaneous_creations_of_a_topic_succeed_only_once(made: Topics) -> None:
    both = [made.service.create(topic("t"), {}), made.service.create_partitioned(topic("t"), 2, {})]
    results = await asyncio.gather(*both, return_exceptions=True)
    assert sum(isinstance(result, RefusedError) for result in results) == 1


async def test_a_topic_of_a_missing_namespace_is_not_created(made: Topics) -> None:
    refused = await refusal(made.service.create(topic("t", namespace="tenant/none"), {}))
    assert refused == (Refusal.NOT_FOUND, "Namespace not found")
    assert await made.store.snapshot(NamespaceName.parse("tenant/none")) is None


@pytest.mark.parametrize("local", ["t-partition-0", "t-partition-01", "t-partition-99999999999"])
async def test_a_partition_without_its_partitioned_topic_is_not_created(
    made: Topics, local: str
) -> None:
    kind, reason = await refusal(made.service.create(topic(local), {}))
    assert kind is Refusal.PRECONDITION_FAILED
    assert reason == (
        f'Can\'t create topic {local} with "-partition-" followed by numeric value if there '
        "isn't a partitioned topic t created."
    )


@pytest.mark.parametrize(
    "local", ["p-partition-00", "p-partition--1", "t-partition-99999999999999999999"]
)
async def test_a_name_with_an_invalid_partition_number_is_created_as_a_plain_topic(
    local: str,
) -> None:
    made = await topics()
    await made.service.create_partitioned(topic("p"), 1, {})
    await made.service.create(topic(local), {})
    assert local in await made.names()
    assert (await made.snapshot()).partitioned == {str(topic("p")): 1}


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
async def test_auto_creation_allows_a_partitioned_topic_named_like_a_partition(domain: str) -> None:
    made = await topics(auto_partitions=2)
    assert await made.service.partitions(topic("c-partition--1", domain), create=True) == 2


@pytest.mark.parametrize(("lazy", "refused"), [(False, True), (True, False)])
async def test_only_profile_pulsar_creates_a_partitioned_topic_that_cannot_be_deleted(
    lazy: bool, refused: bool
) -> None:
    made = await topics(lazy_non_persistent=lazy)
    await made.service.create_partitioned(topic("n-partition-01", "non-persistent"), 1, {})
    work = made.service.create_partitioned(topic("n-partition-1", "non-persistent"), 1, {})
    (result,) = await asyncio.gather(work, return_exceptions=True)
    assert isinstance(result, RefusedError) is refused


async def test_a_missing_partition_of_a_partitioned_topic_is_created_again(made: Topics) -> None:
    await made.service.create_partitioned(topic("p"), 2, {})
    await made.service.delete(topic("p-partition-0"))
    await made.service.create(topic("p-partition-0"), {})
    beyond = await refusal(made.service.create(topic("p-partition-2"), {}))
    assert await made.names() == ["p-partition-0", "p-partition-1"]
    assert beyond[0] is Refusal.PRECONDITION_FAILED
    assert "smaller than number of partition of partitioned topic p" in beyond[1]


async def test_a_partition_of_a_topic_that_was_deleted_meanwhile_is_not_created() -> None:
    made = await topics()
    await made.service.create_partitioned(topic("p"), 2, {})
    await made.service.delete(topic("p-partition-0"))
    stale = await made.snapshot()
    await made.service.delete_partitioned(topic("p"))
    made.store.outdated = repeat(stale)
    kind, reason = await refusal(made.service.create(topic("p-partition-0"), {}))
    assert kind is Refusal.PRECONDITION_FAILED
    assert "there isn't a partitioned topic p created" in reason


async def test_a_partition_created_meanwhile_prevents_the_deletion_of_its_partitioned_topic(
    made: Topics,
) -> None:
    await made.service.create_partitioned(topic("p"), 2, {})
    for index in range(2):
        await made.service.delete(topic(f"p-partition-{index}"))
    stale = await made.snapshot()
    await made.service.create(topic("p-partition-1"), {})
    made.store.outdated = repeat(stale)
    await made.service.delete_without_partitions(topic("p"))
    made.store.outdated = iter(())
    assert await made.names() == ["p-partition-1"]
    assert (await made.snapshot()).partitioned == {str(topic("p")): 2}


@pytest.mark.parametrize(
    "local", ["x" * (MAX_NAME_BYTES + 1), "ä" * (MAX_NAME_BYTES // 2), "a\nb", "a\0b", "a\x7fb"]
)
async def test_a_topic_name_that_is_too_long_or_has_control_characters_is_refused(
    made: Topics, local: str
) -> None:
    plain = await refusal(made.service.create(topic(local), {}))
    parted = await refusal(made.service.create_partitioned(topic(local), 1, {}))
    assert plain[0] is parted[0] is Refusal.PRECONDITION_FAILED
    assert plain[1].startswith("Topic name is not valid: ")


async def test_the_longest_allowed_topic_name_is_created(made: Topics) -> None:
    longest = "x" * (MAX_NAME_BYTES - len("persistent://tenant/ns/"))
    await made.service.create(topic(longest), {})
    assert await made.names() == [longest]


async def test_a_second_deletion_of_a_topic_is_not_found(made: Topics) -> None:
    await made.service.create(topic("t"), {})
    await made.service.delete(topic("t"))
    refused = await refusal(made.service.delete(topic("t")))
    assert refused == (Refusal.NOT_FOUND, "Topic persistent://tenant/ns/t not found")
    assert await made.names() == []


async def test_a_partitioned_topic_cannot_be_deleted_as_a_plain_topic(made: Topics) -> None:
    await made.service.create_partitioned(topic("p"), 2, {})
    kind, reason = await refusal(made.service.delete(topic("p")))
    assert kind is Refusal.CONFLICT
    assert reason == (
        "persistent://tenant/ns/p is a partitioned topic, instead of calling delete topic, "
        "please call delete-partitioned-topic."
    )
    assert len(await made.names()) == 2


# -- partitioned topics ---------------------------------------------------------------------------


async def test_a_partitioned_topic_and_its_partitions_are_created_in_a_single_change(
    made: Topics,
) -> None:
    await made.service.create_partitioned(topic("p"), 3, {})
    snapshot = await made.snapshot()
    assert await made.names() == [f"p-partition-{n}" for n in range(3)]
    assert snapshot.partitioned == {"persistent://tenant/ns/p": 3}
    assert snapshot.version == 1


async def test_a_partitioned_and_a_plain_topic_of_the_same_name_exclude_each_other() -> None:
    made = await topics()
    await made.service.create(topic("t"), {})
    await made.service.create_partitioned(topic("p"), 1, {})
    over_topic = await refusal(made.service.create_partitioned(topic("t"), 1, {}))
    over_partitioned = await refusal(made.service.create(topic("p"), {}))
    assert over_topic == over_partitioned == (Refusal.CONFLICT, "This topic already exists")


@pytest.mark.parametrize(
    ("count", "limit", "reason"),
    [
        (0, 0, "Number of partitions should be more than 0"),
        (-1, 0, "Number of partitions should be more than 0"),
        (4, 3, "Number of partitions should be less than or equal to 3"),
        (
            MAX_PARTITIONS + 1,
            0,
            f"Number of partitions should be less than or equal to {MAX_PARTITIONS}",
        ),
    ],
)
async def test_too_few_and_too_many_partitions_are_not_acceptable(count, limit, reason) -> None:
    made = await topics(max_partitions=limit)
    refused = await refusal(made.service.create_partitioned(topic("p"), count, {}))
    assert refused == (Refusal.NOT_ACCEPTABLE, reason)


async def test_a_missing_namespace_is_reported_before_an_invalid_partition_count(
    made: Topics,
) -> None:
    work = made.service.create_partitioned(topic("p", namespace="tenant/none"), 0, {})
    assert await refusal(work) == (Refusal.NOT_FOUND, "Namespace not found")


@pytest.mark.parametrize("work", ["create", "grow", "delete"])
async def test_a_partitioned_topic_may_not_be_named_like_a_partition(
    made: Topics, work: str
) -> None:
    name = topic("p-partition-1")
    refused = await refusal(
        {
            "create": lambda: made.service.create_partitioned(name, 3, {}),
            "grow": lambda: made.service.grow(name, 3),
            "delete": lambda: made.service.delete_partitioned(name),
        }[work]()
    )
    reason = "Partitioned Topic Name should not contain '-partition-'"
    assert refused == (Refusal.PRECONDITION_FAILED, reason)


async def test_many_partitions_are_created_and_removed_in_several_changes(made: Topics) -> None:
    first, count = 2 * PARTITIONS_PER_CHANGE + 7, 4 * PARTITIONS_PER_CHANGE
    await made.service.create_partitioned(topic("p"), first, {"k": "v"})
    assert len((await made.snapshot()).persistent) == first
    await made.service.grow(topic("p"), count)
    snapshot = await made.snapshot()
    last = f"persistent://tenant/ns/p-partition-{count - 1}"
    await made.service.delete_partitioned(topic("p"))
    assert len(snapshot.persistent) == snapshot.partitioned["persistent://tenant/ns/p"] == count
    assert snapshot.exists(last)
    assert snapshot.version > 3
    assert (await made.snapshot()).empty


async def test_growth_adds_missing_partitions_and_shrinking_is_refused() -> None:
    made = await topics(max_partitions=6)
    await made.service.create_partitioned(topic("p"), 3, {})
    await made.service.grow(topic("p"), 5)
    await made.service.grow(topic("p"), 5)
    less = await refusal(made.service.grow(topic("p"), 2))
    more = await refusal(made.service.grow(topic("p"), 7))
    assert await made.names() == [f"p-partition-{n}" for n in range(5)]
    assert less == (
        Refusal.UNPROCESSABLE,
        "Desired partitions 2 can't be less than the current partitions 5.",
    )
    assert more[1] == (
        "Desired partitions 7 can't be greater than the maximum partitions per topic 6."
    )


async def test_growing_a_plain_or_missing_topic_is_refused(made: Topics) -> None:
    await made.service.create(topic("t"), {})
    for local in ("t", "none"):
        reason = f"Topic persistent://tenant/ns/{local} is not the partitioned topic."
        assert await refusal(made.service.grow(topic(local), 3)) == (Refusal.CONFLICT, reason)


@pytest.mark.parametrize(("first", "second"), [(4, 6), (6, 4), (5, 5)])
async def test_simultaneous_growths_of_a_topic_reach_the_larger_count(
    first: int, second: int
) -> None:
    made = await topics()
    await made.service.create_partitioned(topic("p"), 3, {})
    both = [made.service.grow(topic("p"), first), made.service.grow(topic("p"), second)]
    await asyncio.gather(*both, return_exceptions=True)
    most = max(first, second)
    assert (await made.snapshot()).partitioned == {"persistent://tenant/ns/p": most}
    assert len(await made.names()) == most


async def test_a_topic_grown_during_its_deletion_has_exactly_its_counted_partitions(
    made: Topics,
) -> None:
    await made.service.create_partitioned(topic("p"), 3, {})
    both = [made.service.delete_partitioned(topic("p")), made.service.grow(topic("p"), 5)]
    await asyncio.gather(*both, return_exceptions=True)
    names = await made.names()
    assert len(names) == sum((await made.snapshot()).partitioned.values())


async def test_an_overtaken_deletion_is_repeated_on_the_current_state(made: Topics) -> None:
    await made.service.create_partitioned(topic("p"), 3, {})
    stale = await made.snapshot()
    await made.service.grow(topic("p"), 5)
    made.store.outdated = iter([stale])
    await made.service.delete_partitioned(topic("p"))
    assert (await made.snapshot()).empty


async def test_a_repeatedly_overtaken_deletion_is_refused(made: Topics) -> None:
    await made.service.create_partitioned(topic("p"), 3, {})
    stale = await made.snapshot()
    await made.service.grow(topic("p"), 5)
    made.store.outdated = repeat(stale)
    refused = await refusal(made.service.delete_partitioned(topic("p")))
    reason = "persistent://tenant/ns/p is being changed concurrently: retry"
    assert refused == (Refusal.CONFLICT, reason)


async def test_a_plain_or_missing_topic_cannot_be_deleted_as_a_partitioned_topic(
    made: Topics,
) -> None:
    await made.service.create(topic("t"), {})
    plain = await refusal(made.service.delete_partitioned(topic("t")))
    missing = await refusal(made.service.delete_partitioned(topic("none")))
    assert plain[0] is Refusal.CONFLICT
    assert "persistent://tenant/ns/t is a non-partitioned topic." in plain[1]
    assert missing == (Refusal.NOT_FOUND, "Topic persistent://tenant/ns/none not found.")


# -- maxTopicsPerNamespace ------------------------------------------------------------------------


async def test_no_topic_is_created_beyond_the_maximum_of_its_namespace() -> None:
    made = await topics(max_topics=4)
    await made.service.create_partitioned(topic("p"), 3, {})
    await made.service.create(topic("t", "non-persistent"), {})
    await made.service.delete(topic("p-partition-2"))
    await made.service.create(topic("u"), {})
    refused = [
        await refusal(made.service.create(topic("v"), {})),
        await refusal(made.service.create(topic("v", "non-persistent"), {})),
        await refusal(made.service.create_partitioned(topic("q"), 1, {})),
        await refusal(made.service.grow(topic("p"), 4)),
        await refusal(made.service.create_missing(topic("p"))),
    ]
    reason = "Exceed maximum number of topics in namespace."
    kinds = [Refusal.CONFLICT] * 2 + [Refusal.PRECONDITION_FAILED] * 3
    assert refused == [(kind, reason) for kind in kinds]


async def test_an_existing_topic_at_the_maximum_is_refused_as_existing() -> None:
    made = await topics(max_topics=1)
    await made.service.create(topic("t"), {})
    assert (await refusal(made.service.create(topic("t"), {})))[1] == "This topic already exists"


async def test_auto_creation_beyond_the_maximum_of_a_namespace_is_refused() -> None:
    made = await topics(max_topics=1, auto_partitions=2)
    kind, reason = await refusal(made.service.partitions(topic("p"), create=True))
    assert (kind, reason) == (Refusal.CONFLICT, "Exceed maximum number of topics in namespace.")


async def test_system_topics_do_not_count_towards_the_maximum() -> None:
    made = await topics(max_topics=1)
    await made.service.create(topic("__change_events"), {})
    await made.service.create(topic("t"), {})
    await made.service.create(topic("__transaction_buffer_snapshot"), {})
    assert await made.names() == ["t"]


# -- clients' requests ----------------------------------------------------------------------------


async def test_changed_creation_rules_apply_to_the_next_request() -> None:
    made = await topics(auto_creation=False)
    await refusal(made.service.partitions(topic("p"), create=True))
    made.rules = replace(made.rules, auto_creation=True, auto_partitions=2)
    assert await made.service.partitions(topic("p"), create=True) == 2


async def test_a_missing_partition_within_the_count_is_found_when_creation_is_requested() -> None:
    made = await topics(auto_creation=False)
    await made.service.create_partitioned(topic("p"), 2, {})
    await made.service.delete(topic("p-partition-1"))
    found = await made.service.partitions(topic("p-partition-1"), create=True)
    assert found == 0
    for name, create in (("p-partition-1", False), ("p-partition-2", True)):
        code, _ = await refusal(made.service.partitions(topic(name), create=create))
        assert code is Refusal.NOT_FOUND


async def test_a_missing_topic_is_created_once_for_simultaneous_requests() -> None:
    made = await topics(auto_partitions=3)
    counts = await asyncio.gather(
        *[made.service.partitions(topic("p"), create=True) for _ in range(5)]
    )
    assert counts == [3] * 5
    assert (await made.snapshot()).version == 1


async def test_auto_creation_answers_the_topic_created_meanwhile() -> None:
    made = await topics(auto_partitions=3)
    stale = await made.snapshot()
    await made.service.create_partitioned(topic("p"), 7, {})
    made.store.outdated = iter([stale])
    count = await made.service.partitions(topic("p"), create=True)
    assert count == 7


# -- properties -----------------------------------------------------------------------------------


async def test_partitions_carry_the_properties_of_their_topic(made: Topics) -> None:
    await made.service.create_partitioned(topic("p"), 2, {"team": "red"})
    await made.properties.update(topic("p"), {"tier": "1"})
    await made.service.grow(topic("p"), 3)
    for local in ("p", "p-partition-0", "p-partition-2"):
        assert await made.properties.of(topic(local)) == {"team": "red", "tier": "1"}


async def test_a_recreated_partition_inherits_the_properties_of_its_topic_by_default() -> None:
    made = await topics()
    await made.service.create_partitioned(topic("p"), 3, {"team": "red"})
    await made.service.delete(topic("p-partition-0"))
    await made.service.delete(topic("p-partition-1"))
    await made.service.create(topic("p-partition-0"), {})
    await made.service.create(topic("p-partition-1"), {"team": "blue"})
    assert await made.properties.of(topic("p-partition-0")) == {"team": "red"}
    assert await made.properties.of(topic("p-partition-1")) == {"team": "blue"}
    assert (await made.snapshot()).partitioned == {str(topic("p")): 3}


async def test_a_property_is_added_replaced_and_removed(made: Topics) -> None:
    await made.service.create(topic("t"), {"a": "1", "b": "2"})
    await made.properties.update(topic("t"), {"b": "3", "c": ""})
    await made.properties.remove(topic("t"), "a")
    await made.properties.remove(topic("t"), "none")
    assert await made.properties.of(topic("t")) == {"b": "3", "c": ""}


async def test_the_last_property_of_a_topic_can_be_removed(made: Topics) -> None:
    await made.service.create_partitioned(topic("p"), 2, {"a": "1"})
    await made.properties.remove(topic("p"), "a")
    assert await made.properties.of(topic("p")) == {}
    assert await made.properties.of(topic("p-partition-1")) == {}


async def test_simultaneous_property_changes_are_all_kept(made: Topics) -> None:
    await made.service.create(topic("t"), {})
    await asyncio.gather(*[made.properties.update(topic("t"), {f"k{n}": "v"}) for n in range(8)])
    assert len(await made.properties.of(topic("t"))) == 8


@pytest.mark.parametrize("local", ["none", "p-partition-5"])
async def test_properties_of_a_missing_topic_are_not_found(made: Topics, local: str) -> None:
    await made.service.create_partitioned(topic("p"), 2, {})
    expected = (Refusal.NOT_FOUND, f"Topic persistent://tenant/ns/{local} not found")
    assert await refusal(made.properties.of(topic(local))) == expected
    assert await refusal(made.properties.update(topic(local), {"a": "b"})) == expected
    assert await refusal(made.properties.remove(topic(local), "a")) == expected


async def test_properties_of_a_non_persistent_topic_are_refused(made: Topics) -> None:
    refused = await refusal(made.properties.of(topic("t", "non-persistent")))
    assert refused == (Refusal.NOT_ACCEPTABLE, "Need to provide a persistent topic name")


@pytest.mark.parametrize(
    "properties",
    [
        {f"k{n}": "v" for n in range(65)},
        {"k" * 2_536: "v"},
        {"k": "v" * 2_536},
        {"k\0": "v"},
        {"k": "\0"},
    ],
)
async def test_too_many_and_too_large_properties_are_refused(properties: dict[str, str]) -> None:
    made = await topics()
    await made.service.create(topic("t"), {})
    kind, _ = await refusal(made.properties.update(topic("t"), properties))
    assert kind is Refusal.PRECONDITION_FAILED
    assert await made.properties.of(topic("t")) == {}
