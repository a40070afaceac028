"""Messages by REST beyond the recordings: compression, large backlogs, deletion."""

import json
import re
import struct
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pyarrow as pa
import pytest

import proto.PulsarApi_pb2 as pb
from broker.admin import json_steps
from broker.admin.context import AdminContext
from broker.admin.resources.messages import internal_stats, lifecycle
from broker.messages.compaction.topic_compaction import SUBSCRIPTION
from broker.messages.errors import MessageStoreError
from broker.messages.metadata import MessageDigest, digest_of
from broker.messages.subscriptions.subscription import Subscription
from broker.messages.topic import PersistentTopic
from proto.names import TopicName
from tests.support.peers.rest_client import RestClient, rest_client
from tests.support.processes.cluster import Cluster, cluster

TOPICS = "/admin/v2/persistent/public/default"
PAYLOAD = b"message " * 40
COMPRESSED = {
    pb.NONE: bytes,
    pb.ZLIB: zlib.compress,
    pb.LZ4: lambda data: bytes(pa.Codec("lz4_raw").compress(data)),
    pb.ZSTD: lambda data: bytes(pa.Codec("zstd").compress(data)),
    pb.SNAPPY: lambda data: bytes(pa.Codec("snappy").compress(data)),
}


@asynccontextmanager
async def broker(profile: str = "floodgate") -> AsyncIterator[tuple[Cluster, RestClient]]:
    async with cluster(profile=profile) as parts, rest_client(parts.broker) as rest:
        yield parts, rest


async def loaded(parts: Cluster, name: str = "t") -> PersistentTopic:
    topic = TopicName.parse(f"persistent://public/default/{name}")
    await parts.broker.ownership.acquire(topic)
    found = await parts.broker.messaging.loaded_topics.get(topic)
    assert isinstance(found, PersistentTopic)
    return found


def store(topic: PersistentTopic, payload: bytes = PAYLOAD, **more: object) -> None:
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1_500, **more)
    text = metadata.SerializeToString()
    topic.ledger.append(struct.pack(">I", len(text)) + text + payload, digest_of(metadata))


def subscribed(topic: PersistentTopic) -> Subscription:
    found = topic.subscriptions.get("s")
    assert isinstance(found, Subscription)
    return found


@pytest.mark.parametrize("kind", COMPRESSED)
async def test_examining_a_message_returns_the_decompressed_payload(kind: int) -> None:
    async with broker() as (parts, rest):
        sent = COMPRESSED[kind](PAYLOAD)
        store(await loaded(parts), sent, compression=kind, uncompressed_size=len(PAYLOAD))
        answer = await rest.ask("GET", f"{TOPICS}/t/examinemessage")
        assert answer.text.encode() == PAYLOAD
        assert answer.headers["X-Pulsar-publish-time"] == "1970-01-01T00:00:01.5Z"


@pytest.mark.parametrize(
    ("kind", "payload", "size"),
    [
        (pb.LZ4, b"junk", 100),
        (pb.ZSTD, b"junk", 100),
        (pb.ZLIB, b"junk", 100),
        (pb.LZ4, COMPRESSED[pb.LZ4](PAYLOAD), 1 << 31),
        (pb.LZ4, COMPRESSED[pb.LZ4](PAYLOAD), len(PAYLOAD) + 100_000),
        (pb.SNAPPY, COMPRESSED[pb.SNAPPY](PAYLOAD), len(PAYLOAD) + 100_000),
        (pb.ZLIB, zlib.compress(bytes(100_000_000)), 1 << 31),
    ],
)
async def test_examining_a_message_with_an_invalid_payload_is_422(kind, payload, size) -> None:
    async with broker() as (parts, rest):
        store(await loaded(parts), payload, compression=kind, uncompressed_size=size)
        answer = await rest.ask("GET", f"{TOPICS}/t/examinemessage")
        assert answer.status == 422
        assert "message" in answer.reason


async def test_examining_a_message_with_unreadable_metadata_is_answered_422() -> None:
    async with broker() as (parts, rest):
        (await loaded(parts)).ledger.append(b"\0\0\0\1\xff", MessageDigest(1, 1, 0))
        answer = await rest.ask("GET", f"{TOPICS}/t/examinemessage")
        assert answer.status == 422
        assert "metadata" in answer.reason


async def test_line_breaks_in_keys_and_properties_inject_no_http_headers() -> None:
    async with broker() as (parts, rest):
        odd = pb.KeyValue(key="a\r\nb", value="ü\0\x7f")
        store(await loaded(parts), partition_key="k\r\nInjected: 1", properties=[odd])
        answer = await rest.ask("GET", f"{TOPICS}/t/examinemessage")
        assert answer.status == 200
        assert answer.headers["X-Pulsar-partition-key"] == "kInjected: 1"
        assert "Injected" not in answer.headers


async def test_peek_counts_only_unacknowledged_messages() -> None:
    async with broker() as (parts, rest):
        topic = await loaded(parts)
        for number in range(6):
            store(topic, f"m{number}".encode())
        await rest.done("PUT", f"{TOPICS}/t/subscription/s", '"earliest"')
        ledger_id = topic.ledger.last_confirmed.ledger_id
        cursor = topic.subscriptions.get("s").cursor  # type: ignore[attr-defined]
        for entry_id in (0, 2, 3):
            cursor.acknowledge(topic.ledger.last_confirmed._replace(entry_id=entry_id))
        peek = f"{TOPICS}/t/subscription/s/position"
        found = [await rest.ask("GET", f"{peek}/{place}") for place in (1, 2, 3, 4)]
        assert [one.text for one in found[:3]] == ["m1", "m4", "m5"]
        assert found[0].headers["X-Pulsar-Message-ID"] == f"{ledger_id}:1"
        assert (found[3].status, (await rest.ask("GET", f"{peek}/0")).status) == (404, 412)


async def test_a_backlog_analysis_stops_at_its_entry_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(internal_stats, "MOST_ANALYZED", 200)
    async with broker() as (parts, rest):
        topic = await loaded(parts)
        for _ in range(450):
            store(topic, b"x")
        await rest.done("PUT", f"{TOPICS}/t/subscription/s", '"earliest"')
        found = (await rest.ask("POST", f"{TOPICS}/t/subscription/s/analyzeBacklog")).value
        assert (found["entries"], found["aborted"]) == (200, True)


async def test_an_answer_in_pieces_equals_the_whole_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with broker() as (_, rest):
        await rest.done("PUT", f"{TOPICS}/parts/partitions", "3")
        path = f"{TOPICS}/parts/internal-info"
        whole = await rest.ask("GET", path)
        monkeypatch.setattr(json_steps, "PIECE_BYTES", 7)
        pieces = await rest.ask("GET", path)
        head = await rest.ask("HEAD", path)
        assert pieces.status == 200
        assert re.sub(r"\d{13}", "now", pieces.text) == re.sub(r"\d{13}", "now", whole.text)
        assert pieces.headers["Content-Length"] == whole.headers["Content-Length"]
        assert len(whole.value["partitions"]) == 3
        assert (head.status, head.text) == (200, "")


async def test_a_deleted_partitioned_topic_leaves_no_messages() -> None:
    async with broker() as (parts, rest):
        await rest.done("PUT", f"{TOPICS}/p/partitions", "3")
        for index in (0, 2):
            store(await loaded(parts, f"p-partition-{index}"))
        await rest.done("PUT", f"{TOPICS}/p-partition-2/unload")
        await rest.done("DELETE", f"{TOPICS}/p/partitions")
        held = parts.broker.messaging.store
        names = [f"persistent://public/default/p-partition-{index}" for index in range(3)]
        assert not any(held.holds(name) for name in names)
        assert len(parts.broker.messaging.loaded_topics) == 0


async def test_a_partitioned_topic_that_grows_while_it_is_deleted_leaves_no_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with broker() as (parts, rest):
        await rest.done("PUT", f"{TOPICS}/p/partitions", "1")
        check = lifecycle.check_owner_of_all

        async def and_grow(context: AdminContext, topics: Sequence[TopicName]) -> None:
            await check(context, topics)
            if len(topics) == 1:
                await rest.done("POST", f"{TOPICS}/p/partitions", "2")
                store(await loaded(parts, "p-partition-1"))

        monkeypatch.setattr(lifecycle, "check_owner_of_all", and_grow)
        await rest.done("DELETE", f"{TOPICS}/p/partitions")
        assert not parts.broker.messaging.store.names()
        assert len(parts.broker.messaging.loaded_topics) == 0


async def test_a_subscription_is_created_on_missing_partitions_and_then_is_409() -> None:
    async with broker() as (_, rest):
        await rest.done("PUT", f"{TOPICS}/p/partitions", "2")
        await rest.done("PUT", f"{TOPICS}/p-partition-0/subscription/s")
        first = await rest.ask("PUT", f"{TOPICS}/p/subscription/s")
        again = await rest.ask("PUT", f"{TOPICS}/p/subscription/s")
        assert (first.status, again.status) == (204, 409)
        assert (await rest.ask("GET", f"{TOPICS}/p/subscriptions")).value == ["s"]


async def test_message_ids_of_a_partition_have_its_partition_index() -> None:
    async with broker() as (parts, rest):
        await rest.done("PUT", f"{TOPICS}/p/partitions", "2")
        for name in ("t", "p-partition-1"):
            store(await loaded(parts, name))
        found = [
            (await rest.ask("GET", f"{TOPICS}/{name}/{asked}")).value["partitionIndex"]
            for name in ("t", "p-partition-1")
            for asked in ("messageid/1000", "lastMessageId")
        ]
        ended = await rest.ask("POST", f"{TOPICS}/p-partition-1/terminate")
        assert found == [-1, -1, 1, 1]
        assert ended.value["partitionIndex"] == -1  # as recorded


async def test_the_message_id_of_time_0_is_the_earliest_position() -> None:
    async with broker() as (parts, rest):
        store(await loaded(parts))
        found = (await rest.ask("GET", f"{TOPICS}/t/messageid/0")).value
        assert (found["ledgerId"], found["entryId"]) == (-1, -1)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "subscription/s/skip/1"),
        ("GET", "compaction"),
    ],
)
@pytest.mark.parametrize(("profile", "status"), [("floodgate", 405), ("pulsar", 500)])
async def test_a_non_persistent_topic_cannot_skip_or_compact(method, path, profile, status) -> None:
    topic = "/admin/v2/non-persistent/public/default/t"
    async with broker(profile) as (_, rest):
        await rest.done("PUT", topic)
        answer = await rest.ask(method, f"{topic}/{path}")
        assert answer.status == status
        assert "stores no messages" in answer.reason
        assert (await rest.ask("GET", f"{topic}/stats")).value["subscriptions"] == {}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        ("POST", "subscription/s/resetcursor/0", None, 404, "Subscription s not found for topic"),
        ("POST", "subscription/s/expireMessages/1", None, 405, "Expire messages on a non-pers"),
        ("POST", "all_subscription/expireMessages/1", None, 405, "Expire messages for all subsc"),
        ("GET", "subscription/s/properties", None, 404, "Subscription s not found for topic"),
        ("PUT", "subscription/s/properties", "{}", 404, "Subscription s not found for topic"),
        ("GET", "subscription/s/replicatedSubscriptionStatus", None, 405, "Cannot get replicated"),
        ("DELETE", "subscription/s", None, 404, "Subscription s not found for topic"),
    ],
)
async def test_subscription_requests_for_a_non_persistent_topic_are_refused(
    method: str, path: str, body: str | None, status: int, reason: str
) -> None:
    topic = "/admin/v2/non-persistent/public/default/t"
    async with broker() as (_, rest):
        await rest.done("PUT", topic)
        answer = await rest.ask(method, f"{topic}/{path}", body)
        assert (answer.status, answer.reason[: len(reason)]) == (status, reason)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "subscription/s/skip/x", None, 404),
        ("POST", "subscription/s/skip/99999999999999999999", None, 404),
        ("POST", "subscription/s/resetcursor", '{"ledgerId":"x"}', 400),
        ("POST", "subscription/s/resetcursor", '{"ledgerId":9223372036854775808}', 400),
        ("POST", "subscription/s/resetcursor", "", 400),
        ("PUT", "subscription/new", '"nowhere"', 400),
        ("PUT", "subscription/new", '{"properties":7}', 400),
        ("POST", "subscription/s/replicatedSubscriptionStatus", b"\x1cD\xa9", 204),
        ("GET", "examinemessage?messagePosition=x", None, 404),
        ("GET", "ledger/x/entry/0", None, 404),
        ("PUT", "offload", '{"ledgerId":1,"entryId":0}', 412),
        ("GET", "getMessageIdByIndex?index=0", None, 412),
    ],
)
async def test_requests_with_invalid_arguments_are_refused(method, path, body, status) -> None:
    async with broker() as (parts, rest):
        store(await loaded(parts))
        await rest.done("PUT", f"{TOPICS}/t/subscription/s")
        answer = await rest.ask(method, f"{TOPICS}/t/{path}", body)
        assert answer.status == status


async def test_the_message_backlog_of_a_topic_is_the_sum_over_its_subscriptions() -> None:
    async with broker() as (parts, rest):
        topic = await loaded(parts)
        for subscription in ("all", "some"):
            await rest.done("PUT", f"{TOPICS}/t/subscription/{subscription}", '"earliest"')
        for _ in range(3):
            store(topic)
        await rest.done("POST", f"{TOPICS}/t/subscription/some/skip/1")
        body = (await rest.ask("GET", f"{TOPICS}/t/backlog")).value
        size = topic.ledger.size_bytes
        assert body["topicName"] == "public/default/persistent/t"
        assert (body["totalMessages"], body["storageSize"], body["messageBacklog"]) == (3, size, 5)
        assert {name: one["cursorBacklog"] for name, one in body["cursorDetails"].items()} == {
            "all": 3,
            "some": 2,
        }
        assert body["dataLedgerDetails"] == []  # The open ledger is not shown (recorded).
        topic.ledger.roll()
        (ledger,) = (await rest.ask("GET", f"{TOPICS}/t/backlog")).value["dataLedgerDetails"]
        assert (ledger["entries"], ledger["size"]) == (3, size)
        assert (await rest.ask("GET", f"{TOPICS}/none/backlog")).value["totalMessages"] == 0
        assert "none" not in (await rest.ask("GET", TOPICS)).text


async def test_a_backlog_quota_check_evicts_messages_immediately() -> None:
    async with broker() as (parts, rest):
        topic = await loaded(parts)
        await rest.done("PUT", f"{TOPICS}/t/subscription/s", '"earliest"')
        for _ in range(10):
            store(topic)
        quota = '{"limitSize": 1000, "policy": "consumer_backlog_eviction"}'
        await rest.done("POST", "/admin/v2/namespaces/public/default/backlogQuota", quota)
        await rest.done("GET", "/admin/v2/brokers/backlog-quota-check")
        assert topic.subscriptions.get("s").cursor.backlog < 10  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("names", "status", "reason"),
    [
        ('["persistent://public/default/none"]', 412, "[persistent://public/default/none] not"),
        ('["not a name//"]', 403, "Invalid shadow topic name: not a name//"),
        ("[]", 412, "Cannot specify empty shadow topics"),
        ('["persistent://public/default/t"]', 412, "are not copied"),
    ],
)
async def test_invalid_shadow_topics_are_refused_with_a_reason(names, status, reason) -> None:
    async with broker() as (parts, rest):
        await loaded(parts)
        answer = await rest.ask("PUT", f"{TOPICS}/t/shadowTopics", names)
        assert answer.status == status
        assert reason in answer.text
        assert (await rest.ask("GET", f"{TOPICS}/t/shadowTopics")).text == ""
        await rest.done("DELETE", f"{TOPICS}/t/shadowTopics")


async def test_a_non_persistent_topic_is_gone_after_an_unload() -> None:
    async with broker() as (parts, rest):
        topic = TopicName.parse("non-persistent://public/default/t")
        await parts.broker.messaging.loaded_topics.get(topic)
        path = "/admin/v2/non-persistent/public/default/t/unload"
        statuses = [(await rest.ask("PUT", path)).status for _ in range(2)]
        assert statuses == [204, 404]


@pytest.mark.parametrize(("profile", "left"), [("floodgate", 2), ("pulsar", 0)])
async def test_bulk_requests_spare_the_compaction_cursor_except_pulsars_clear_backlog(
    profile: str, left: int
) -> None:
    async with broker(profile) as (parts, rest):
        subscription = f"{TOPICS}/t/subscription"
        for name in ("s", SUBSCRIPTION):
            await rest.done("PUT", f"{subscription}/{name}")
        topic = await loaded(parts)
        store(topic)
        store(topic)
        cursor = topic.subscriptions.get(SUBSCRIPTION).cursor  # type: ignore[attr-defined]
        await rest.done("POST", f"{TOPICS}/t/all_subscription/expireMessages/1")
        assert cursor.backlog == 2
        await rest.done("POST", "/admin/v2/namespaces/public/default/clearBacklog")
        assert cursor.backlog == left
        # A named subscription is skipped (recorded).
        await rest.done("POST", f"{subscription}/{SUBSCRIPTION}/skip_all")
        assert cursor.backlog == 0


@pytest.mark.parametrize(
    ("profile", "left", "deleted"), [("floodgate", 1, (204, "")), ("pulsar", 0, (404, "not found"))]
)
async def test_skip_all_is_404_if_a_partition_lacks_the_subscription_but_deletion_removes_it(
    profile: str, left: int, deleted: tuple[int, str]
) -> None:
    async with broker(profile) as (parts, rest):
        await rest.done("PUT", f"{TOPICS}/p/partitions", b"2")
        await rest.ask("GET", "/lookup/v2/topic/persistent/public/default/p-partition-1")
        await rest.done("PUT", f"{TOPICS}/p-partition-1/subscription/s", b'"earliest"')
        topic = await loaded(parts, "p-partition-1")
        store(topic)
        subscription = topic.subscriptions.get("s")
        refused = await rest.ask("POST", f"{TOPICS}/p/subscription/s/skip_all")
        kept = subscription.cursor.backlog  # type: ignore[attr-defined]
        gone = await rest.ask("DELETE", f"{TOPICS}/p/subscription/s")
        text = "Subscription s not found for topic persistent://public/default/p"
        assert (refused.status, refused.reason, kept) == (404, text, left)
        assert (gone.status, deleted[1] in gone.text) == (deleted[0], True)
        assert topic.subscriptions.get("s") is None


async def test_a_reserved_subscription_name_is_refused() -> None:
    async with broker() as (parts, rest):
        await loaded(parts)
        subscription = f"{TOPICS}/t/subscription/pulsar.dedup"
        for method, path in (("PUT", subscription), ("GET", f"{subscription}/position/1")):
            answer = await rest.ask(method, path)
            assert (answer.status, "reserved" in answer.reason) == (412, True)


@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_new_partitions_have_the_durable_subscriptions_of_the_first_partition(
    profile: str,
) -> None:
    async with broker(profile) as (parts, rest):
        await rest.done("PUT", f"{TOPICS}/t/partitions", "1")
        await rest.done("PUT", f"{TOPICS}/t-partition-0/subscription/s", '"latest"')
        subscriptions = (await loaded(parts, "t-partition-0")).subscriptions
        subscriptions.create("reader", durable=False)  # type: ignore[call-arg]
        await rest.done("POST", f"{TOPICS}/t/partitions", "3")
        for index in (1, 2):
            topic = await loaded(parts, f"t-partition-{index}")
            store(topic)
            assert [(one.name, one.cursor.backlog) for one in topic.subscriptions] == [("s", 1)]


async def test_a_failed_increase_of_partitions_is_completed_by_a_second_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with broker() as (parts, rest):
        await rest.done("PUT", f"{TOPICS}/t/partitions", "1")
        await rest.done("PUT", f"{TOPICS}/t-partition-0/subscription/s", '"latest"')

        async def fail(*_: object) -> None:
            raise MessageStoreError("disk full")

        with monkeypatch.context() as failing:
            failing.setattr(lifecycle, "_load", fail)
            assert (await rest.ask("POST", f"{TOPICS}/t/partitions", "3")).status == 500
        await rest.done("POST", f"{TOPICS}/t/partitions", "3")
        for index in (1, 2):
            topic = await loaded(parts, f"t-partition-{index}")
            assert [one.name for one in topic.subscriptions] == ["s"]


async def test_a_partition_loaded_during_the_increase_already_has_its_subscriptions() -> None:
    async with broker() as (parts, rest):
        await rest.done("PUT", f"{TOPICS}/t/partitions", "2")
        growing = parts.broker.messaging.loaded_topics.growing
        base = TopicName.parse("persistent://public/default/t")
        with growing.growing(base, 1, {"s": {"team": "red"}}):
            new, old = [await loaded(parts, f"t-partition-{index}") for index in (1, 0)]
        assert new.subscriptions.get("s").cursor.properties == {"team": "red"}  # type: ignore[attr-defined]
        assert not len(old.subscriptions)


EXPIRE = "subscription/s/expireMessages"


def message_id(entry_id: int, ledger_id: int, **more: object) -> str:
    return json.dumps({"ledgerId": ledger_id, "entryId": entry_id, **more})


@pytest.mark.parametrize(
    ("profile", "entry_id", "more", "left"),
    [
        ("pulsar", 1, {}, 3),
        ("pulsar", 1, {"excluded": True}, 2),
        ("pulsar", 1, {"excluded": True, "batchIndex": 0}, 3),
        ("pulsar", 1, {"excluded": True, "batchIndex": 1}, 2),
        ("floodgate", 1, {"excluded": True}, 4),
    ],
)
async def test_messages_expire_through_the_entry_of_a_message_id(
    profile: str, entry_id: int, more: dict[str, object], left: int
) -> None:
    async with broker(profile) as (parts, rest):
        topic = await loaded(parts)
        for _ in range(5):
            store(topic, num_messages_in_batch=2)
        await rest.done("PUT", f"{TOPICS}/t/subscription/s", '"earliest"')
        ledger_id = topic.ledger.last_confirmed.ledger_id
        topic.ledger.roll()
        await rest.done("POST", f"{TOPICS}/t/{EXPIRE}", message_id(entry_id, ledger_id, **more))
        assert subscribed(topic).cursor.backlog == left


async def test_expiry_to_a_message_id_is_refused_after_the_end_or_for_another_partition() -> None:
    async with broker("pulsar") as (parts, rest):
        topic = await loaded(parts)
        store(topic)
        await rest.done("PUT", f"{TOPICS}/t/subscription/s", '"earliest"')
        path, ledger_id = f"{TOPICS}/t/{EXPIRE}", topic.ledger.last_confirmed.ledger_id
        after = await rest.ask("POST", path, message_id(0, ledger_id, excluded=True))
        other = await rest.ask("POST", path, message_id(0, ledger_id, partitionIndex=0))
        assert (after.status, other.status) == (409, 412)
        assert after.reason.endswith("or invalid message position provided.")
        assert other.reason.endswith("doesn't match partition index for the topic")
        assert subscribed(topic).cursor.backlog == 1


async def test_expiry_by_age_is_done_where_it_can_be_and_is_409() -> None:
    async with broker() as (parts, rest):
        await rest.done("PUT", f"{TOPICS}/p/partitions", "2")
        for name in ("p-partition-0", "p-partition-1"):
            await rest.done("PUT", f"{TOPICS}/{name}/subscription/s")
        other = await loaded(parts, "p-partition-1")
        store(other)
        answers = [
            await rest.ask("POST", f"{TOPICS}/p/{where}/expireMessages/0")
            for where in ("subscription/s", "all_subscription")
        ]
        assert [one.status for one in answers] == [409, 409]
        assert "on topic persistent://public/default/p-partition-0 " in answers[0].reason
        assert subscribed(other).total_expired == 1


@pytest.mark.parametrize(("profile", "expired"), [("pulsar", 1), ("floodgate", 0)])
async def test_only_profile_pulsar_expires_where_the_subscription_is_before_a_404(
    profile: str, expired: int
) -> None:
    async with broker(profile) as (parts, rest):
        await rest.done("PUT", f"{TOPICS}/p/partitions", "2")
        await rest.done("PUT", f"{TOPICS}/p-partition-1/subscription/s")
        topic = await loaded(parts, "p-partition-1")
        store(topic)
        answer = await rest.ask("POST", f"{TOPICS}/p/subscription/s/expireMessages/0")
        assert (answer.status, subscribed(topic).total_expired) == (404, expired)


@pytest.mark.parametrize(("profile", "left"), [("pulsar", 2), ("floodgate", 1)])
async def test_only_profile_pulsar_ignores_excluded_for_a_new_subscription(profile, left) -> None:
    async with broker(profile) as (parts, rest):
        topic = await loaded(parts)
        for _ in range(3):
            store(topic)
        start = message_id(1, topic.ledger.last_confirmed.ledger_id, excluded=True)
        await rest.done("PUT", f"{TOPICS}/t/subscription/s", start)
        assert subscribed(topic).cursor.backlog == left


@pytest.mark.parametrize(
    ("keys", "status", "topics"),
    [
        ({"allowAutoTopicCreation": "false"}, 412, []),
        ({"maxTopicsPerNamespace": "1"}, 409, []),
        ({"allowAutoTopicCreationType": "partitioned", "defaultNumPartitions": "2"}, 204, [0, 1]),
    ],
)
async def test_a_subscription_creates_a_missing_topic_as_a_client_would(
    keys: dict[str, str], status: int, topics: list[int]
) -> None:
    async with cluster(broker=keys) as parts, rest_client(parts.broker) as rest:
        await rest.done("PUT", f"{TOPICS}/old")
        answer = await rest.ask("PUT", f"{TOPICS}/new/subscription/s")
        found = [await loaded(parts, f"new-partition-{index}") for index in topics]
        assert (answer.status, len(found)) == (status, len(topics))
        assert all(subscribed(one) for one in found)


async def test_an_absent_subscription_of_a_single_partition_is_not_found() -> None:
    async with broker() as (_, rest):
        await rest.done("PUT", f"{TOPICS}/p/partitions", "1")
        answer = await rest.ask("DELETE", f"{TOPICS}/p/subscription/s")
        assert (answer.status, answer.reason) == (404, "Subscription not found")


async def test_a_backlog_analysis_begins_at_the_given_message_id() -> None:
    async with broker() as (parts, rest):
        topic = await loaded(parts)
        for _ in range(4):
            store(topic)
        await rest.done("PUT", f"{TOPICS}/t/subscription/s")
        path, ledger_id = (
            f"{TOPICS}/t/subscription/s/analyzeBacklog",
            topic.ledger.last_confirmed[0],
        )
        found = (await rest.ask("POST", path, message_id(1, ledger_id))).value
        assert (found["entries"], found["firstMessageId"]) == (3, f"{ledger_id}:1")
        assert "firstMessageId" not in (await rest.ask("POST", path)).value


async def test_sizes_and_times_of_backlogs_are_shown_on_request() -> None:
    async with broker() as (parts, rest):
        topic = await loaded(parts)
        await rest.done("PUT", f"{TOPICS}/t/subscription/s", '"earliest"')
        store(topic)
        asked = "subscriptionBacklogSize=false&getEarliestTimeInBacklog=true"
        full = (await rest.ask("GET", f"{TOPICS}/t/stats?{asked}")).value
        subscribed(topic).skip(1)
        empty = (await rest.ask("GET", f"{TOPICS}/t/stats?{asked}")).value
        shown = [one["subscriptions"]["s"] for one in (full, empty)]
        assert [one["backlogSize"] for one in shown] == [-1, -1]
        assert [one["earliestMsgPublishTimeInBacklog"] for one in shown] == [1_500, -1]
        assert [one["earliestMsgPublishTimeInBacklogs"] for one in (full, empty)] == [1_500, 0]
        assert full["backlogSize"] == topic.ledger.size_bytes


async def test_statistics_show_the_oldest_message_that_the_last_quota_check_found() -> None:
    async with broker() as (parts, rest):
        topic = await loaded(parts)
        await rest.done("PUT", f"{TOPICS}/t/subscription/s", '"earliest"')
        store(topic)
        topic.ledger.roll()
        before = (await rest.ask("GET", f"{TOPICS}/t/stats")).value
        await rest.done("GET", "/admin/v2/brokers/backlog-quota-check")
        after = (await rest.ask("GET", f"{TOPICS}/t/stats")).value
        name = "oldestBacklogMessageSubscriptionName"
        ages = [one["oldestBacklogMessageAgeSeconds"] for one in (before, after)]
        assert ages[0] == -1 != ages[1]
        assert (before.get(name), after.get(name)) == (None, "s")


@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [
        ("POST", "persistent/public/default/none/terminate/partitions", 405, "Termination of a"),
        (
            "POST",
            "persistent/public/default/none/createMissedPartitions",
            404,
            "Topic persistent://public/default/none does not exist",
        ),
        ("GET", "non-persistent/public/default/none/internalStats", 404, "Topic not found"),
    ],
)
async def test_requests_about_a_missing_topic_are_refused_as_recorded(
    method: str, path: str, status: int, reason: str
) -> None:
    async with broker() as (_, rest):
        answer = await rest.ask(method, f"/admin/v2/{path}")
        assert (answer.status, answer.reason[: len(reason)]) == (status, reason)
