import asyncio

import pytest

from client.discovery.pattern_consumer import AT_ONCE, KeptTopics
from client.exceptions import ConsumerBusy, NotConnected, TopicNotFound
from client.patience import Patience
from limiter.backoff import Backoff
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle


class Consumer:
    """A scripted consumer."""

    def __init__(self):
        self.topics = set()
        self.errors = {}
        self.holds = {}
        self.attempts = []
        self.at_once = self.most_at_once = 0

    async def add_topic(self, name):
        self.attempts.append(name)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await settle()
        if name in self.holds:
            await self.holds[name].wait()
        self.at_once -= 1
        if name in self.errors:
            raise self.errors[name]
        self.topics.add(name)

    async def remove_topic(self, name):
        self.topics.discard(name)


@pytest.fixture
def consumer():
    return Consumer()


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def patience(clock):
    return Patience(clock)


@pytest.fixture
def kept(consumer, patience):
    return KeptTopics(consumer, patience, Backoff(1.0, 8.0, lambda: 0.0))


async def all_settled():
    for _ in range(5):
        await settle()


async def test_topics_are_added_and_removed_as_wanted(kept, consumer):
    await kept.open({"a", "b"})
    kept.want({"b", "c"})
    await all_settled()
    assert consumer.topics == kept.topics == {"b", "c"}


async def test_a_failed_initial_topic_fails_the_opening(kept, consumer):
    consumer.errors["a"] = ConsumerBusy("a")
    with pytest.raises(ConsumerBusy):
        await kept.open({"a", "b"})


async def test_a_failed_opening_does_not_wait_for_other_topics(kept, consumer):
    consumer.holds["b"] = asyncio.Event()
    consumer.errors["a"] = ConsumerBusy("a")
    opening = asyncio.create_task(kept.open({"a", "b"}))
    await all_settled()
    assert opening.done()
    with pytest.raises(ConsumerBusy):
        await opening


async def test_a_deleted_initial_topic_does_not_fail_the_opening(kept, consumer):
    consumer.errors["a"] = TopicNotFound("a")
    await kept.open({"a", "b"})
    kept.want({"b"})
    await all_settled()
    assert consumer.topics == {"b"}
    await kept.close()


@pytest.mark.parametrize("error", [ConsumerBusy("a"), TypeError("a schema of the program's")])
async def test_a_topic_that_fails_later_is_retried_with_growing_delays(
    kept, consumer, clock, error
):
    await kept.open(set())
    consumer.errors["a"] = error
    kept.want({"a"})
    for _ in range(8):
        await all_settled()
        clock.advance(1.0)
    # Then after 1, 2 and 4 seconds
    assert len(consumer.attempts) == 4
    del consumer.errors["a"]
    clock.advance(8.0)
    await all_settled()
    assert consumer.topics == {"a"}


async def test_failed_topics_are_retried_when_a_connection_opens(kept, consumer, patience):
    await kept.open(set())
    consumer.errors = {"a": ConsumerBusy("a"), "b": NotConnected("b")}
    kept.want({"a", "b"})
    await all_settled()
    consumer.errors.clear()
    patience.connection_opened()
    await all_settled()
    assert consumer.topics == {"a", "b"}


async def test_topics_are_subscribed_concurrently_up_to_a_limit(kept, consumer):
    await kept.open({str(number) for number in range(3 * AT_ONCE)})
    assert consumer.most_at_once == AT_ONCE
    assert len(consumer.topics) == 3 * AT_ONCE


async def test_after_close_no_topic_is_added(kept, consumer, clock):
    await kept.open(set())
    kept.want({"a"})
    await kept.close()
    kept.want({"b"})
    await all_settled()
    assert consumer.topics == set()


async def test_topics_wanted_meanwhile_do_not_wait_for_a_slow_topic(kept, consumer):
    await kept.open({"a"})
    hold = consumer.holds["slow"] = asyncio.Event()
    kept.want({"a", "slow"})
    await all_settled()
    kept.want({"slow", "new"})
    await all_settled()
    meanwhile = set(kept.topics)
    kept.want({"a", "slow"})
    await all_settled()
    assert (meanwhile, kept.topics) == ({"new"}, {"a"})
    hold.set()
    await all_settled()
    assert consumer.topics == kept.topics == {"a", "slow"}
    assert consumer.attempts.count("slow") == 1
