"""The ordered feed of changes, and readers too slow for the feed."""

import asyncio

import pytest

from broker.stores.changes import MAX_QUEUED_CHANGES, Change, ChangeFeed, ChangeFeeds
from proto.names import NamespaceName

A = NamespaceName.parse("tenant/a")


def change(version: int) -> Change:
    return Change(A, version, (), ())


async def test_a_slow_reader_loses_the_oldest_changes() -> None:
    feed = ChangeFeed(ChangeFeeds(), max_queued=3)
    for version in range(1, 6):
        feed.push(change(version))
    feed.close()
    assert [one.version async for one in feed] == [3, 4, 5]


async def test_the_queue_bound_of_a_feed_is_the_documented_maximum() -> None:
    feeds = ChangeFeeds()
    feed = feeds.open()
    for version in range(MAX_QUEUED_CHANGES + 1):
        feeds.publish(change(version))
    assert (await anext(feed)).version == 1


async def test_a_waiting_reader_is_woken_by_the_next_change() -> None:
    feeds = ChangeFeeds()
    reader = asyncio.get_running_loop().create_task(anext(feeds.open()))
    await asyncio.sleep(0)
    feeds.publish(change(7))
    assert (await reader).version == 7


async def test_a_reader_receives_only_changes_after_its_feed_was_opened() -> None:
    feeds = ChangeFeeds()
    early = feeds.open()
    feeds.publish(change(1))
    late = feeds.open()
    feeds.publish(change(2))
    feeds.close()
    assert [one.version async for one in early] == [1, 2]
    assert [one.version async for one in late] == [2]
    assert len(feeds) == 0


async def test_a_closed_feed_receives_no_change_and_ends_its_reader() -> None:
    feeds = ChangeFeeds()
    feed = feeds.open()
    reader = asyncio.get_running_loop().create_task(anext(feed))
    await asyncio.sleep(0)
    feed.close()
    feed.close()
    feeds.publish(change(1))
    with pytest.raises(StopAsyncIteration):
        await reader
