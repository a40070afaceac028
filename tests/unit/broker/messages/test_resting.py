"""Topics at rest from periodic work, and what ends a rest."""

from collections.abc import Callable
from dataclasses import replace
from inspect import iscoroutinefunction

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.monitors import TopicMonitors
from broker.messages.resting import due_work
from broker.messages.subscriptions.consumer import ConsumerOptions
from broker.messages.topic import PersistentTopic
from broker.policies.effective import DEFAULTS, InactiveTopics, Rate
from tests.support.clocks.settle import settle
from tests.support.messages.producing import ProducingConnection, publish
from tests.support.subscriptions.recording_client import RecordingClient
from tests.unit.broker.messages.loading.test_loaded_topics import NAME
from tests.unit.broker.messages.test_monitors import Watched, publishing

DAY = 86_400.0


async def resting(watched: Watched) -> tuple[PersistentTopic, ProducingConnection]:
    """Return a topic at rest with a producer, a consumed subscription, and the connection."""
    topic = await publishing(watched)
    cnx = next(iter(topic.producers)).cnx
    subscription = topic.subscriptions.create("s")
    options = ConsumerOptions(consumer_id=1, name="c", type=pb.CommandSubscribe.Shared)
    subscription.flow(subscription.add_consumer(RecordingClient(), options), 10)
    await watched.monitors.update_rates()
    await settle()
    await watched.monitors.update_rates()
    assert topic.rests
    assert isinstance(cnx, ProducingConnection)
    return topic, cnx


def _publish(topic: PersistentTopic, cnx: ProducingConnection) -> None:
    publish(topic, cnx.producers[1], 7)


def _leave(topic: PersistentTopic, _: ProducingConnection) -> None:
    (consumer,) = topic.subscriptions.consumers
    topic.subscriptions.get("s").remove_consumer(consumer)


@pytest.mark.parametrize(
    "touch",
    [
        _publish,
        _leave,
        lambda topic, cnx: topic.producer_left(cnx.producers[1]),
        lambda topic, _: topic.subscriptions.get("s").skip(1),
        lambda topic, _: topic.subscriptions.create("t"),
        lambda topic, _: topic.subscriptions.get("s").delete(),
        lambda topic, _: topic.policies_changed(),
    ],
    ids=["publish", "leave", "producer", "cursor", "create", "delete", "policies"],
)
async def test_any_change_of_a_topic_ends_its_rest(
    touch: Callable[[PersistentTopic, ProducingConnection], object],
) -> None:
    watched = Watched()
    topic, cnx = await resting(watched)
    touch(topic, cnx)
    await settle()
    assert not topic.rests
    assert topic in watched.topics.resting.awake()


async def test_a_topic_rests_only_once_a_relative_dispatch_rate_has_followed_it_to_zero() -> None:
    watched = Watched()
    topic = await publishing(watched)
    topic.policies = replace(DEFAULTS, dispatch_rate=Rate(messages=1, relative=True))
    topic.statistics.usual = (5.0, 5.0)
    rests = []
    for _ in range(4):
        await watched.monitors.update_rates()
        rests.append(topic.rests)
    assert rests == [False, False, True, True]


async def test_a_client_request_for_a_topic_ends_its_rest() -> None:
    watched = Watched()
    topic, _ = await resting(watched)
    assert await watched.topics.get(NAME) is topic
    assert not topic.rests


async def test_a_rest_ends_when_work_is_due() -> None:
    watched = Watched(replace(DEFAULTS, inactive_topics=InactiveTopics(True, 600)))
    topic = await watched.topic()
    topic.mark_made_by_use()
    await watched.monitors.update_rates()
    watched.clock.advance(599)
    assert topic.rests
    assert not watched.topics.resting.awake()
    watched.clock.advance(1)
    assert watched.topics.resting.awake() == (topic,)


async def test_a_topic_with_work_due_rests_until_the_next_run_of_the_monitor_for_it() -> None:
    policies = replace(DEFAULTS, inactive_topics=InactiveTopics(True, 320))
    watched = Watched(policies, brokerDeleteInactiveTopicsFrequencySeconds="300")
    watched.monitors.start()
    topic = await watched.topic()
    topic.mark_made_by_use()
    await watched.after(365)  # Rates were updated 5 s ago.
    assert topic.rests
    await watched.after(240)
    assert watched.topics.loaded(NAME) is None
    await watched.monitors.close()


async def test_a_step_of_the_wall_clock_ends_all_rests() -> None:
    watched = Watched()
    topic, _ = await resting(watched)
    assert not watched.topics.resting.awake()
    watched.clock.set_wall(DAY)
    assert watched.topics.resting.awake() == (topic,)


async def test_an_unloaded_topic_is_no_longer_awake() -> None:
    watched = Watched()
    topic, _ = await resting(watched)
    await watched.topics.unload(NAME)
    topic.touched()
    assert not watched.topics.resting.awake()


async def test_ended_rests_leave_nothing_behind() -> None:
    watched = Watched(replace(DEFAULTS, inactive_topics=InactiveTopics(True, 600)))
    topic = await watched.topic()
    topic.mark_made_by_use()
    for _ in range(1_000):
        await watched.monitors.update_rates()
        topic.touched()
    resting = watched.topics.resting
    assert (len(resting._ends), sum(map(len, resting._ending.values()))) == (1, 0)


async def test_superseded_ends_of_rests_are_dropped_before_their_time() -> None:
    watched = Watched()
    topic, _ = await resting(watched)
    rests = watched.topics.resting
    for second in range(5_000):
        topic.touched()
        rests.rest(topic, watched.clock.now() + 30 * DAY + second)
    assert len(rests._ends) <= 1_010
    watched.clock.advance(31 * DAY)
    assert topic in rests.awake()


async def test_waking_all_topics_ends_every_rest() -> None:
    watched = Watched()
    topic, _ = await resting(watched)
    watched.topics.resting.wake_all()
    assert watched.topics.resting.awake() == (topic,)


async def test_due_work_names_the_monitors_of_topics() -> None:
    policies = replace(DEFAULTS, ttl_seconds=10, subscription_expiration_minutes=1)
    topic = await Watched(policies).topic()
    named = [vars(TopicMonitors).get(name) for name in due_work(topic, 60)]
    assert len(named) >= 5
    assert all(map(iscoroutinefunction, named))
