"""Refused watches: the reason, the words, and no remains."""

import gc
from collections.abc import Mapping
from weakref import ref

import pytest
from prometheus_client import CollectorRegistry, generate_latest

import proto.PulsarApi_pb2 as pb
from broker.configuration.config import WatchSettings
from broker.metrics import WATCHES
from broker.patterns.errors import InvalidPatternError
from broker.patterns.filter import PatternFilter
from broker.watches.registry import WATCHER_BYTES
from broker.watches.sets.namespace_watch import NamespaceWatch
from broker.watches.sets.watched_sets import SET_BYTES
from limiter.metrics.prometheus import Instruments
from tests.support.clocks.settle import settle
from tests.support.peers.raw_peer import RawPeer
from tests.support.processes.cluster import cluster, topic_names, until
from tests.support.processes.samples import read_samples
from tests.support.stores.blocked_store import BlockedStore
from tests.support.watches.wire_watches import (
    ALPHA,
    BETA,
    PROFILES,
    TOPICS,
    change,
    close,
    nothing_is_left,
    watch,
    watching,
)

MANY = {"public/gold": [*topic_names("public/gold/alpha", 1_000), *BETA]}
REFUSED = "Unable to create topic list watcher: "


async def refused(peer: RawPeer, command: pb.BaseCommand) -> tuple[int, str]:
    """Return the code and text of a watch's error."""
    await peer.send(command)
    answer = await peer.command()
    assert answer.type == pb.BaseCommand.ERROR, answer
    assert answer.error.request_id == command.watchTopicList.request_id
    return answer.error.error, answer.error.message


# -- patterns -------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("pattern", "keys", "code", "text"),
    [
        ("p" * 51, {}, pb.NotAllowedError, f"{REFUSED}Pattern longer than maximum: 50"),
        (
            ".*",
            {"enableBrokerSideSubscriptionPatternEvaluation": "false"},
            pb.NotAllowedError,
            f"{REFUSED}Evaluating subscription patterns is disabled.",
        ),
        ("public/gold/(", {}, pb.InvalidTopicName, "Invalid topics pattern: "),
    ],
    ids=["too long", "not evaluated", "invalid"],
)
async def test_a_pattern_is_refused_with_its_reason(profile, pattern, keys, code, text) -> None:
    async with cluster(TOPICS, profile=profile, broker=keys) as parts:
        error, message = await refused(await parts.peer("broker"), watch(pattern, 5))
        assert error == code
        assert message.startswith(text)
        assert nothing_is_left(parts)


@pytest.mark.parametrize("profile", PROFILES)
async def test_the_domain_does_not_count_towards_the_length_of_the_pattern(profile: str) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        await watching(parts, watch("persistent://" + "public/gold/".ljust(50, "a")))


@pytest.mark.parametrize(
    ("profile", "code"),
    [("pulsar", pb.AuthorizationError), ("floodgate", pb.InvalidTopicName)],
)
async def test_a_watch_with_an_unknown_domain_is_refused(profile: str, code: int) -> None:
    async with cluster(TOPICS, profile=profile) as parts:
        peer = await parts.peer("broker")
        assert (await refused(peer, watch("foo://public/gold/a", 5)))[0] == code
        assert nothing_is_left(parts)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_refused_watch_frees_its_names_without_the_garbage_collector(
    profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def takes_too_long(*_: object) -> None:
        followed.extend(map(ref, parts.broker.watches.registry._namespaces.values()))
        raise InvalidPatternError("it takes too long")

    followed: list[ref[NamespaceWatch]] = []
    async with cluster(TOPICS, profile=profile) as parts:
        peer = await parts.peer("broker")
        monkeypatch.setattr(PatternFilter, "filter", takes_too_long)
        gc.disable()
        try:
            code, _ = await refused(peer, watch("public/gold/(?=a).*", 5))
            await settle()
            assert (code, len(followed)) == (pb.InvalidTopicName, 1)
            assert followed[0]() is None
        finally:
            gc.enable()


# -- requests -------------------------------------------------------------------------------------


def malformed() -> pb.BaseCommand:
    command = watch(request_id=5)
    command.watchTopicList.namespace = "public"
    return command


async def test_a_malformed_namespace_is_refused_and_the_connection_stays_open() -> None:
    async with cluster(TOPICS) as parts:
        peer = await parts.peer("broker")
        code, text = await refused(peer, malformed())
        assert (code, "tenant/namespace" in text) == (pb.InvalidTopicName, True)
        await peer.send(watch())
        assert list((await peer.command()).watchTopicListSuccess.topic) == ALPHA


async def test_with_profile_pulsar_a_malformed_namespace_closes_the_connection() -> None:
    async with cluster(TOPICS, profile="pulsar") as parts:
        peer = await parts.peer("broker")
        await peer.send(malformed())
        assert await peer.rest() == b""
        assert nothing_is_left(parts)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_watch_needs_a_lookup_permit(profile: str) -> None:
    keys = {"maxConcurrentLookupRequest": "1"}
    async with cluster(TOPICS, profile=profile, broker=keys) as parts:
        peer, store = await parts.peer("broker"), BlockedStore(parts.broker)
        await peer.send(watch())
        await until(lambda: parts.broker.lookups.pending_requests)
        code, text = await refused(peer, watch(request_id=2, watcher_id=2))
        assert code == pb.TooManyRequests
        assert text == "Failed due to too many pending lookup requests"
        assert parts.broker.watches.totals.watchers == 1
        store.go_on.set()
        assert (await peer.command()).watchTopicListSuccess.request_id == 1


# -- memory limits --------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", ["heap", "direct"])
async def test_a_watch_larger_than_a_memory_limit_is_refused(profile: str, kind: str) -> None:
    # Limits above the first guess of a size
    limits = {f"{kind}_max_bytes": 20_000}
    async with cluster(MANY, profile=profile, broker_limits=limits) as parts:
        peer = await parts.peer("broker")
        code, text = await refused(peer, watch(".*", 5))
        if profile == "pulsar":
            assert code == pb.MetadataError
            assert text.startswith("java.lang.IllegalArgumentException: Requested permits=")
        else:
            assert code == pb.TooManyRequests
            assert "20000 bytes" in text
            assert f"maxTopicListInFlight{kind.title()}MemSizeMB" in text
        assert nothing_is_left(parts)
        # A small set is watched
        if kind == "direct":
            await watching(parts, watch("public/gold/beta.*"))


async def test_an_answer_larger_than_a_frame_is_refused_with_the_key_to_raise() -> None:
    async with cluster(MANY, both={"maxMessageSize": "20000"}) as parts:
        code, text = await refused(await parts.peer("broker"), watch(".*", 5))
        assert (code, "raise maxMessageSize" in text) == (pb.NotAllowedError, True)
        assert nothing_is_left(parts)


async def test_profile_pulsar_sends_an_answer_larger_than_a_frame() -> None:
    async with cluster(MANY, profile="pulsar", both={"maxMessageSize": "20000"}) as parts:
        peer = await watching(parts, watch(".*"))
        await peer.send(close())
        assert (await peer.command()).type == pb.BaseCommand.SUCCESS


# -- the budget of watches ------------------------------------------------------------------------


async def cost_of(topics: Mapping[str, list[str]], *requests: pb.BaseCommand) -> int:
    """The bytes charged for watches."""
    async with cluster(topics) as parts:
        await watching(parts, *requests)
        return parts.broker.watches.registry.held_bytes


def budget(size_bytes: int) -> dict[str, str]:
    return {"floodgateTopicWatchMaxBytes": str(size_bytes)}


async def test_a_watch_above_the_budget_is_refused_with_the_key_to_raise() -> None:
    async with cluster(MANY, broker=budget(50_000)) as parts:
        peer = await parts.peer("broker")
        code, text = await refused(peer, watch(".*", 5))
        assert code == pb.NotAllowedError
        assert text.startswith(f"{REFUSED}watches would take ")
        assert "of 50000 bytes: raise floodgateTopicWatchMaxBytes" in text
        assert parts.broker.watches.totals.refused == 1
        assert nothing_is_left(parts)


async def test_names_shared_by_two_sets_are_charged_once() -> None:
    # Capacity for all names and one small set more
    alpha, beta = watch("public/gold/alpha.*"), watch("public/gold/beta.*", 2, watcher_id=2)
    both = await cost_of(MANY, alpha, beta)
    assert both - await cost_of(MANY, alpha) < SET_BYTES + 2_000
    async with cluster(MANY, broker=budget(both)) as parts:
        await watching(parts, alpha, beta)
        assert parts.broker.watches.registry.held_bytes == both


async def test_an_equal_set_of_another_pattern_is_not_charged_for_its_names() -> None:
    one, other = watch("public/gold/alpha.*"), watch("public/gold/al.*", 2, watcher_id=2)
    cost = await cost_of(MANY, one)
    both = cost + WATCHER_BYTES + SET_BYTES
    assert await cost_of(MANY, one, other) == both
    async with cluster(MANY, broker=budget(both)) as parts:
        await watching(parts, one, other)


async def test_a_different_set_that_does_not_fit_is_refused_and_leaves_nothing_behind() -> None:
    one, other = watch("public/gold/alpha.*"), watch(".*0-.*|.*[0-8]", 2, watcher_id=2)
    cost = await cost_of(MANY, one)
    async with cluster(MANY, broker=budget(cost + WATCHER_BYTES + 2_000)) as parts:
        peer = await watching(parts, one)
        code, _ = await refused(peer, other)
        registry = parts.broker.watches.registry
        assert code == pb.NotAllowedError
        assert (registry.sets, registry.held_bytes) == (1, cost)
        assert parts.broker.watches.totals.watchers == 1


async def test_a_closed_watch_frees_its_budget_for_another_watch() -> None:
    one, other = watch("public/gold/alpha.*"), watch(".*0-.*|.*[0-8]", 2, watcher_id=2)
    cost = max(await cost_of(MANY, one), await cost_of(MANY, other))
    async with cluster(MANY, broker=budget(cost + WATCHER_BYTES)) as parts:
        peer = await watching(parts, one)
        await refused(peer, other)
        await peer.send(close(request_id=3))
        await peer.command()
        await peer.send(other)
        assert (await peer.command()).type == pb.BaseCommand.WATCH_TOPIC_LIST_SUCCESS


async def test_a_watcher_of_a_shared_set_is_charged_for_itself() -> None:
    cost = await cost_of(TOPICS, watch())
    async with cluster(TOPICS, broker=budget(cost + WATCHER_BYTES)) as parts:
        peer = await watching(parts, watch(), watch(watcher_id=2))
        code, _ = await refused(peer, watch(request_id=3, watcher_id=3))
        assert code == pb.NotAllowedError


async def test_a_watch_above_the_budget_is_refused_before_its_names_are_read() -> None:
    async with cluster(MANY, broker=budget(50_000)) as parts:
        peer, store = await parts.peer("broker"), BlockedStore(parts.broker, blocked=False)
        # Its size is known from the listing alone
        await refused(peer, watch("public/gold/beta.*"))
        assert store.asked == ["public/gold"]
        # No capacity even for a watcher
        parts.broker.config.watches.become(WatchSettings(max_bytes=WATCHER_BYTES - 1))
        await refused(peer, watch("public/gold/beta.*"))
        assert store.asked == ["public/gold"]


@pytest.mark.parametrize(
    ("profile", "keys"), [("floodgate", budget(0)), ("pulsar", {})], ids=["unlimited", "pulsar"]
)
async def test_without_a_budget_no_watch_is_refused(profile: str, keys: Mapping[str, str]) -> None:
    async with cluster(MANY, profile=profile, broker=keys) as parts:
        assert parts.broker.config.watches.max_bytes == 0
        await watching(parts, watch(".*"), watch("public/gold/alpha.*", 2, watcher_id=2))


# -- metrics --------------------------------------------------------------------------------------


async def test_metrics_show_watchers_sets_bytes_updates_and_refusals() -> None:
    async with cluster(TOPICS) as parts:
        peer = await watching(parts, watch(), watch(".*", 2, watcher_id=2))
        await change(parts, added=["persistent://public/gold/alpha-x"])
        await peer.command()
        await peer.command()
        watches = parts.broker.watches
        parts.broker.config.watches.become(WatchSettings(max_bytes=1_000_000))
        metrics = CollectorRegistry()
        metrics.register(Instruments(WATCHES, lambda: watches, {"cluster": "the-cluster"}))
        samples = read_samples(generate_latest(metrics).decode())
        assert {sample.labels["cluster"] for sample in samples} == {"the-cluster"}
        assert {
            sample.name: sample.value for sample in samples if "created" not in sample.name
        } == {
            "floodgate_topic_watchers": 2,
            "floodgate_topic_watch_sets": 2,
            "floodgate_topic_watch_bytes": watches.registry.held_bytes,
            "floodgate_topic_watch_limit_bytes": 1_000_000,
            "floodgate_topic_watchers_lagging": 0,
            "floodgate_topic_watch_updates_total": 2,
            "floodgate_topic_watch_reconciling_updates_total": 0,
            "floodgate_topic_watch_relistings_total": 0,
            "floodgate_topic_watch_refused_total": 0,
            "floodgate_topic_watch_retries_total": 0,
        }
