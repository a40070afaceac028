import asyncio
from itertools import count
from types import SimpleNamespace

import pytest

import proto.PulsarApi_pb2 as pb
from client.connection.attached import Attached
from client.connection.errors import ClientClosedError, DisconnectedError
from client.consumers.options import ConsumerOptions
from client.context import ClientContext
from client.discovery.pattern_consumer import open_pattern_consumer
from client.discovery.schedule import DiscoveryOptions
from client.discovery.topic_discovery import TopicDiscovery
from client.discovery.topics_pattern import TopicsPattern
from client.exceptions import AlreadyClosed, ConnectError, ServerResponseError
from client.patience import Patience
from limiter.client_memory.memory_limit_controller import MemoryLimitController
from proto.topic_hash import topics_hash
from tests.support.clocks.counting_clock import CountingClock
from tests.support.clocks.settle import settle, started
from tests.unit.client.discovery.test_topics_pattern_matching_names import answer_of

BASE = "persistent://public/default/"
PATTERN = TopicsPattern(BASE + "t-.*")
T1, T2, OTHER = BASE + "t-1", BASE + "t-2", BASE + "other"
Kind = pb.BaseCommand


class Connection:
    """A connection whose broker answers on command."""

    def __init__(self):
        self.peer, self.closed = "broker:6650", False
        self.attached = Attached()
        self.server = pb.CommandConnected(server_version="test")
        self.server.feature_flags.supports_topic_watchers = True
        self.listings = []
        self.watches = []
        self.sent = []

    def topics_raw(self, request):
        self.listings.append(asyncio.get_running_loop().create_future())
        return self.listings[-1]

    def request(self, build):
        self.watches.append(asyncio.get_running_loop().create_future())
        self.sent.append(build(1).type)
        return self.watches[-1]

    def send(self, command):
        self.sent.append(command.type)

    def opened(self, *names):
        answer = pb.BaseCommand(type=Kind.WATCH_TOPIC_LIST_SUCCESS)
        answer.watchTopicListSuccess.topic.extend(names)
        answer.watchTopicListSuccess.topics_hash = topics_hash(names)
        self.watches[-1].set_result(answer)

    def lose(self):
        self.closed = True
        for one in (*self.listings, *self.watches):
            if not one.done():
                one.set_exception(DisconnectedError(self.peer))
        self.attached.lost()


class Cluster:
    """A cluster of one server, which may be unreachable."""

    def __init__(self):
        self.clock = CountingClock()
        self.patience = Patience(self.clock)
        self.cnx = Connection()
        self.away = None
        self.attempts = 0
        self.subscribing = asyncio.Event()

    async def connect(self):
        self.attempts += 1
        if self.away is not None:
            raise self.away
        if self.cnx.closed:
            self.cnx = Connection()
        return self.cnx

    async def connection_of(self, _):
        return await self.connect()

    async def partitions(self, name, *, auto_create):
        self.subscribing.set()
        await asyncio.Event().wait()


@pytest.fixture
async def cluster():
    return Cluster()


@pytest.fixture
async def told():
    return []


def discovery_of(cluster, told, family):
    """Return the discovery of the pattern's topics by one of the schedules."""
    context = SimpleNamespace(cluster=cluster, clock=cluster.clock, watch_ids=count())
    options = DiscoveryOptions(PATTERN.text)
    mode = pb.CommandGetTopicsOfNamespace.PERSISTENT
    return TopicDiscovery(context, PATTERN, mode, options, family, told.append, lambda: 0.5)


@pytest.fixture
async def discovery(cluster, told):
    return discovery_of(cluster, told, "polite")


async def after(cluster, seconds):
    """Advance time and run all tasks."""
    cluster.clock.advance(seconds)
    await settle()


async def listed(cluster, discovery, *names):
    """Open, with the given names on the broker."""
    opening = await started(discovery.open())
    cluster.cnx.listings[-1].set_result(answer_of(names, topics_hash=""))
    return await opening


async def watched(cluster, discovery):
    await listed(cluster, discovery, T1)
    await after(cluster, 60.0)
    cluster.cnx.opened(T1)
    await settle()


def nothing_is_left(cluster, discovery):
    """Tell whether no task, timer or attachment remains."""
    return not (discovery._tasks or cluster.clock.live or cluster.cnx.attached.watches)


async def test_only_matching_names_are_kept_from_a_listing(cluster, discovery):
    assert await listed(cluster, discovery, T1, OTHER, T2 + "-partition-0") == {T1, T2}
    assert discovery.names == {T1, T2 + "-partition-0"}


async def test_closing_during_a_listing_fails_the_opening_and_leaves_no_task_or_timer(
    cluster, discovery
):
    opening = await started(discovery.open())
    await discovery.close()
    with pytest.raises(AlreadyClosed):
        await opening
    assert cluster.cnx.listings[0].cancelled()
    assert nothing_is_left(cluster, discovery)


async def test_cancelling_the_opening_and_closing_leaves_no_task_or_timer(cluster, discovery):
    opening = await started(discovery.open())
    opening.cancel()
    await asyncio.wait([opening])
    await discovery.close()
    assert opening.cancelled()
    assert cluster.cnx.listings[0].cancelled()
    assert nothing_is_left(cluster, discovery)


async def test_closing_during_a_retry_delay_sends_no_more_listings(cluster, discovery):
    opening = await started(discovery.open())
    refusal = ServerResponseError(pb.TooManyRequests, "full")
    cluster.cnx.listings[0].set_exception(refusal)
    await settle()
    assert (cluster.clock.live, discovery._error) == (1, None)
    await discovery.close()
    await after(cluster, 60.0)
    with pytest.raises(AlreadyClosed):
        await opening
    assert len(cluster.cnx.listings) == 1
    assert nothing_is_left(cluster, discovery)


@pytest.mark.parametrize("family", ["java-watch", "cpp"])
async def test_a_refused_listing_fails_the_opening_in_families_without_retries(
    cluster, told, family
):
    discovery = discovery_of(cluster, told, family)
    opening = await started(discovery.open())
    cluster.cnx.listings[0].set_exception(ServerResponseError(pb.TooManyRequests, "full"))
    with pytest.raises(ServerResponseError, match="full"):
        await opening
    await discovery.close()
    assert nothing_is_left(cluster, discovery)


@pytest.mark.parametrize("family", ["polite", "java-watch", "cpp", "go"])
async def test_a_closed_client_is_not_retried(cluster, told, family):
    cluster.away = ClientClosedError("the client is closed")
    discovery = discovery_of(cluster, told, family)
    opening = await started(discovery.open())
    with pytest.raises(ClientClosedError):
        await opening
    assert cluster.attempts == 1
    await discovery.close()
    assert nothing_is_left(cluster, discovery)


async def test_closing_while_a_watch_opens_closes_the_watch_once(cluster, discovery):
    await listed(cluster, discovery, T1)
    await after(cluster, 60.0)
    await discovery.close()
    await discovery.close()
    assert cluster.cnx.sent == [Kind.WATCH_TOPIC_LIST, Kind.WATCH_TOPIC_LIST_CLOSE]
    assert cluster.cnx.watches[0].cancelled()
    assert nothing_is_left(cluster, discovery)


async def test_updates_are_reported_until_the_discovery_closes(cluster, discovery, told):
    await watched(cluster, discovery)
    watch = discovery._watch
    update = pb.CommandWatchTopicUpdate(new_topics=[T2], topics_hash=topics_hash([T1, T2]))
    watch.update_received(update)
    await discovery.close()
    assert told == [{T1, T2}]
    assert cluster.cnx.sent[-1] == Kind.WATCH_TOPIC_LIST_CLOSE
    assert nothing_is_left(cluster, discovery)


async def test_a_lost_connection_is_replaced_and_watched_once(cluster, discovery):
    await watched(cluster, discovery)
    cluster.away = ConnectError("nobody listens")
    cluster.cnx.lose()
    for _ in range(3):
        await after(cluster, 1.0)
    cluster.away = None
    for _ in range(130):
        await after(cluster, 1.0)
    assert len(cluster.cnx.watches) == 1
    assert discovery._watch.cnx is cluster.cnx
    await discovery.close()
    assert nothing_is_left(cluster, discovery)


async def test_a_connection_lost_during_a_listing_is_replaced_by_the_next_listing(
    cluster, discovery
):
    opening = await started(discovery.open())
    cluster.cnx.lose()
    await settle()
    await after(cluster, 1.0)
    cluster.cnx.listings[0].set_result(answer_of([T1]))
    assert await opening == {T1}
    await discovery.close()
    assert nothing_is_left(cluster, discovery)


async def test_closing_during_a_reconnection_ends_connection_attempts(cluster, discovery):
    await watched(cluster, discovery)
    cluster.away = ConnectError("nobody listens")
    cluster.cnx.lose()
    await settle()
    await discovery.close()
    before = cluster.attempts
    await after(cluster, 600.0)
    assert cluster.attempts == before
    assert nothing_is_left(cluster, discovery)


@pytest.mark.parametrize("changed", [False, True])
async def test_an_answer_older_than_an_update_does_not_overwrite_the_update(
    cluster, discovery, changed
):
    await watched(cluster, discovery)
    await after(cluster, 300.0)
    discovery._updated(pb.CommandWatchTopicUpdate(new_topics=[T2], topics_hash="?"))
    names = [T1, OTHER] if changed else []
    cluster.cnx.listings[-1].set_result(answer_of(names, changed=changed))
    await settle()
    asked = len(cluster.cnx.listings)
    kept = discovery.names, discovery.schedule.topics_hash
    await after(cluster, 60.0)
    assert kept == ({T1, T2}, topics_hash([T1, T2]))
    # And soon repeats the request.
    assert len(cluster.cnx.listings) == asked + 1
    await discovery.close()


async def test_cancelling_a_pattern_consumer_while_subscribing_leaves_no_task_or_timer(cluster):
    memory = MemoryLimitController(1_000_000, clock=cluster.clock)
    context = ClientContext(cluster, memory, 30.0)
    opening = await started(open_pattern_consumer(context, PATTERN, "s", ConsumerOptions()))
    cluster.cnx.listings[0].set_result(answer_of([T1, T2]))
    await cluster.subscribing.wait()
    opening.cancel()
    await asyncio.wait([opening])
    assert opening.cancelled()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert (cluster.clock.live, cluster.cnx.attached.watches) == (0, {})
    memory.close()
