"""Following a namespace under faults: no change is lost, and failures stay isolated."""

import asyncio
import logging

import pytest

from broker.patterns.errors import InvalidPatternError
from broker.stores.changes import Change
from broker.watches.sets import changing, namespace_watch
from broker.watches.update_permit import SetUpdate
from tests.support.clocks.settle import settle
from tests.support.processes.cluster import until
from tests.support.watches.followed import NAMESPACE, Followed, Listener, texts
from tests.unit.server.connection.test_served_connection import Served

AS = "t/n/a.*"


async def test_too_many_pending_changes_are_replaced_by_a_listing(monkeypatch) -> None:
    monkeypatch.setattr(namespace_watch, "MAX_PENDING_CHANGES", 3)
    followed, listener = await Followed.with_listener("a1")
    # Five arrive in one turn
    for name in ("a2", "a3", "a4", "a5", "a6"):
        await followed.change(added=[name])
    while followed.feed._queued:
        followed.watch.push(await anext(followed.feed))
        assert len(followed.watch._pending) <= 3
    await settle()
    assert listener.updates == [(["a2", "a3", "a4", "a5", "a6"], [])]
    assert followed.totals.relistings == 1


def test_up_to_ten_thousand_changes_may_be_pending() -> None:
    assert namespace_watch.MAX_PENDING_CHANGES == 10_000


async def test_a_failed_listing_is_retried_with_backoff_and_no_change_is_lost() -> None:
    followed, listener = await Followed.with_listener("a1")
    followed.store.fails = True
    await followed.change(added=["a2"])
    await followed.change(added=["a3"])
    await followed.tell(skip=1)
    asked = [followed.store.asked]
    for seconds in (0.089, 0.011, 0.179, 0.021):
        await followed.passes(seconds)
        asked.append(followed.store.asked)
    await followed.changed(removed=["a1"])
    # Repeated after 0.1 s, then after up to 0.2 s
    assert asked[0] == asked[1] == asked[2] - 1 == asked[3] - 1 == asked[4] - 2
    assert listener.updates == []
    followed.store.fails = False
    await followed.passes(25.0)
    assert listener.updates == [(["a2", "a3"], ["a1"])]


async def test_the_retry_delay_restarts_after_a_successful_listing() -> None:
    followed, listener = await Followed.with_listener("a1")
    for _ in range(2):
        followed.store.fails = True
        await followed.change(added=["a2"])
        followed.feed._queued.clear()
        version = await followed.store.version(NAMESPACE)
        followed.watch.push(Change(NAMESPACE, version, complete=False))
        await settle()
        await followed.passes(0.1)
        followed.store.fails = False
        await followed.passes(0.2)
        assert listener.updates.pop() == (["a2"], [])
        await followed.changed(removed=["a2"])
        listener.updates.clear()


async def test_a_failing_watcher_does_not_prevent_updates_of_other_watchers(caplog) -> None:
    followed = await Followed.of("a1")
    before = await followed.listener()
    broken = await followed.listener(raises=True)
    behind, other = await followed.listener(), await followed.listener(AS)
    with caplog.at_level(logging.ERROR):
        await followed.changed(added=["a2"])
    assert before.updates == behind.updates == other.updates == [(["a2"], [])]
    assert (broken.given_up, behind.given_up) == (1, 0)
    assert "after an internal error" in caplog.text


async def test_a_watcher_failing_on_a_large_change_does_not_affect_another_watcher(caplog) -> None:
    followed = await Followed.of("a1")
    broken, behind = await followed.listener(raises=True), await followed.listener()
    names = [f"b{number:03d}" for number in range(300)]
    with caplog.at_level(logging.ERROR):
        await followed.changed(added=names)
        await followed.until_idle()
    assert behind.updates == [(names, [])]
    assert (broken.given_up, behind.given_up) == (1, 0)


async def test_a_watcher_leaving_during_an_update_is_not_notified(monkeypatch) -> None:
    monkeypatch.setattr(namespace_watch, "WATCHERS_A_STEP", 1)
    followed = await Followed.of("a1")
    first, second = await followed.listener(), await followed.listener()
    tell, soon = first.changed, asyncio.get_running_loop().call_soon
    monkeypatch.setattr(first, "changed", lambda update: (soon(second.leave), tell(update)))
    # The second watcher leaves at the pause after the first was notified
    await followed.changed(added=["a2"])
    assert (first.updates, second.updates) == ([(["a2"], [])], [])


async def test_an_update_is_sent_to_the_first_watcher_before_the_next_is_notified(
    monkeypatch,
) -> None:
    # Two watchers, notified in separate turns, the first over a connection
    monkeypatch.setattr(namespace_watch, "WATCHERS_A_STEP", 1)
    followed, served = await Followed.of("a1"), Served()
    served.peer.reads_at_once = True
    first, second = await followed.listener(), await followed.listener()
    sent_before_the_second: list[bytes] = []

    def send(update: SetUpdate) -> None:
        assert update.permit is not None
        assert update.permit.send(served.cnx, b"update")

    monkeypatch.setattr(first, "changed", send)
    monkeypatch.setattr(
        second, "changed", lambda _: sent_before_the_second.append(bytes(served.peer.received))
    )
    await followed.changed(added=["a2"])
    assert sent_before_the_second == [b"update"]


async def test_a_watcher_joining_while_a_change_is_applied_has_all_its_names(monkeypatch) -> None:
    monkeypatch.setattr(namespace_watch, "SETS_A_STEP", 1)
    followed = await Followed.of("a1")
    await followed.listener()
    touched, names = followed.watch._builder.touched, list[bytes]()
    coming: list[asyncio.Task[Listener]] = []

    def somebody_comes_at_the_fifth(name: bytes) -> None:
        touched(name)
        names.append(name)
        if len(names) == 5:
            coming.append(asyncio.get_running_loop().create_task(followed.listener(AS)))

    monkeypatch.setattr(followed.watch._builder, "touched", somebody_comes_at_the_fifth)
    await followed.changed(added=[f"a{number}" for number in range(10, 30)])
    second = await coming[0]
    await followed.until_idle()
    assert len(second.watched.names) == 21
    assert texts(second.names) == texts(second.watched.names)


async def test_an_internal_error_is_logged_and_followed_by_a_listing(monkeypatch, caplog) -> None:
    followed, listener = await Followed.with_listener("a1")
    original, broken = followed.watch._index.matching, [True]

    def matching(name: bytes) -> object:
        if broken.pop() if broken else False:
            raise RuntimeError("cannot match")
        return original(name)

    monkeypatch.setattr(followed.watch._index, "matching", matching)
    with caplog.at_level(logging.ERROR):
        await followed.changed(added=["a2"])
    assert listener.updates == []
    await followed.passes(0.1)
    assert listener.updates == [(["a2"], [])]
    assert "it is listed again" in caplog.text


async def test_an_internal_error_within_a_change_loses_no_name(monkeypatch, caplog) -> None:
    # The second name cannot be matched
    followed, listener = await Followed.with_listener("a1", pattern=AS)
    original, results = followed.watch._index.matching, [True, False]

    def matching(name: bytes) -> object:
        if results and not results.pop(0):
            raise RuntimeError("cannot match")
        return original(name)

    monkeypatch.setattr(followed.watch._index, "matching", matching)
    with caplog.at_level(logging.ERROR):
        await followed.changed(added=["a2", "b1"])
        await followed.passes(0.1)
    assert texts(followed.watch.sets.everything) == ["a1", "a2", "b1"]
    assert listener.updates == [(["a2"], [])]


async def test_a_watcher_whose_pattern_takes_too_long_is_given_up_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # A pattern only for a backtracking engine
    followed = await Followed.of("b1")
    async with followed.filter.workers:
        stuck, other = await followed.listener(r"(?=t)t/n/(?:a|a)+b"), await followed.listener()

        async def takes_too_long(*_: object) -> None:
            raise InvalidPatternError("it takes too long")

        monkeypatch.setattr(followed.filter, "filter", takes_too_long)
        with caplog.at_level(logging.WARNING):
            await followed.changed(added=["c"])
            await followed.until_idle()
        assert (stuck.given_up, other.given_up) == (1, 0)
        assert other.updates == [(["c"], [])]
        assert "takes too long on a change" in caplog.text


async def test_changes_are_matched_against_a_backtracking_pattern_by_workers() -> None:
    followed = await Followed.of("b1")
    async with followed.filter.workers:
        listener = await followed.listener(r"(?=t)t/n/(?:a|b)\d")
        await followed.changed(added=["a1", "c1", "a"], removed=["b1"])
        await followed.until_idle()
        assert listener.updates == [(["a1"], ["b1"])]


async def test_an_internal_error_within_a_large_change_loses_no_name(monkeypatch, caplog) -> None:
    # The second set cannot be merged at first
    followed = await Followed.of("a", "b")
    listeners = [await followed.listener(pattern) for pattern in (".*", AS, "t/n/b.*")]
    original, calls = changing.merged, [0]

    def merged(*names: object) -> object:
        calls[0] += 1
        if calls[0] == 2:
            raise RuntimeError("cannot merge")
        return original(*names)  # type: ignore[arg-type]

    monkeypatch.setattr(changing, "merged", merged)
    names = [f"{letter}{number:03d}" for letter in "ab" for number in range(300)]
    with caplog.at_level(logging.ERROR):
        await followed.changed(added=names)
        await until(lambda: followed.watch._behind)
        await followed.passes(0.1)
        await followed.until_idle()
    assert "it is listed again" in caplog.text
    for listener, count in zip(listeners, (602, 301, 301), strict=True):
        assert len(listener.watched.names) == len(listener.names) == count
