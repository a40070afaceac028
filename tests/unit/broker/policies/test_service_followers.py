"""Topics follow a change of policies, some of them in each turn."""

import asyncio
from itertools import pairwise

from broker.policies.service import AT_ONCE, PolicyFollowers
from tests.support.clocks.settle import settle


class Topic:
    def __init__(self) -> None:
        self.closing = False
        self.changes = 0

    def policies_changed(self) -> None:
        self.changes += 1


async def test_topics_follow_a_policy_change_in_batches_of_a_turn_each() -> None:
    followers, topics = PolicyFollowers(), [Topic() for _ in range(3 * AT_ONCE + 1)]
    seen = []
    followers.follow(topics)
    for _ in range(5):
        seen.append(sum(topic.changes for topic in topics))
        await asyncio.sleep(0)
    assert seen[0] == AT_ONCE
    assert max(after - before for before, after in pairwise(seen)) <= AT_ONCE
    await settle()
    assert [topic.changes for topic in topics] == [1] * len(topics)


async def test_repeated_policy_changes_queue_a_topic_once() -> None:
    followers, topics = PolicyFollowers(), [Topic() for _ in range(2 * AT_ONCE)]
    for _ in range(10):
        followers.follow(topics)
    assert len(followers) == AT_ONCE
    await settle()
    assert [topic.changes for topic in topics[AT_ONCE:]] == [1] * AT_ONCE


async def test_a_topic_closed_meanwhile_follows_no_policy_change() -> None:
    followers, topics = PolicyFollowers(), [Topic() for _ in range(AT_ONCE + 2)]
    followers.follow(topics)
    topics[-1].closing = True
    await settle()
    assert [topic.changes for topic in topics[-2:]] == [1, 0]


class FailedTopic(Topic):
    def policies_changed(self) -> None:
        super().policies_changed()
        raise OSError("no room")


async def test_a_failing_topic_is_logged_and_does_not_stop_the_other_topics(caplog) -> None:
    # One topic fails immediately, one in a later turn
    followers = PolicyFollowers()
    topics = [Topic() for _ in range(3 * AT_ONCE)]
    topics[0], topics[AT_ONCE] = FailedTopic(), FailedTopic()
    followers.follow(topics)
    await settle()
    followers.follow(topics)
    await settle()
    assert [topic.changes for topic in topics] == [2] * len(topics)
    assert caplog.text.count("does not follow its policies") == 4
