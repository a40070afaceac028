"""What a watcher is told and when: permits that wait, peers that do not read, changes meanwhile."""

from __future__ import annotations

import asyncio
import logging

import pytest

from broker.errors import RequestError
from broker.watches import topic_list_watcher
from broker.watches.outlet import WatchOutlet
from limiter.errors import PermitTooLargeError
from tests.support.settle import settle, started
from tests.support.watching import DIRECT, Client, Watching, commands, short

BOTH = pytest.mark.parametrize("as_shipped", [False, True], ids=["floodgate", "pulsar"])
FIRST_DELAYS = [0.1, 0.2]


# -- the answer -----------------------------------------------------------------------------------


@BOTH
async def test_an_answer_is_sent_after_two_permit_timeouts(as_shipped: bool) -> None:
    # Given
    watching = Watching("a", "b", as_shipped=as_shipped)
    client, blocker = Client(watching.connection()), await watching.full()
    answering = await started(watching.watcher(client.served).answer(7, None))
    # When
    for delay in FIRST_DELAYS:
        await watching.passes(25.0)
        await watching.passes(delay)
        assert client.takes() == 0
    watching.give_back(blocker)
    await answering
    # Then
    assert client.takes() == 1
    assert (client.answers, client.known) == ([7], ["a", "b"])
    assert (watching.totals.retries, watching.held_bytes) == (2, 0)


@BOTH
async def test_updates_wait_for_the_answer(as_shipped: bool) -> None:
    # Given
    watching = Watching("a", as_shipped=as_shipped)
    client, blocker = Client(watching.connection()), await watching.full()
    answering = await started(watching.watcher(client.served).answer(1, None))
    # When
    watching.change(added=["b"])
    watching.change(removed=["a"])
    watching.give_back(blocker)
    await answering
    await settle()
    client.takes()
    # Then: as shipped each, otherwise both at once
    assert client.told == ([(["b"], []), ([], ["a"])] if as_shipped else [(["b"], ["a"])])


@BOTH
async def test_a_client_whose_hash_is_right_is_sent_no_names(as_shipped: bool) -> None:
    # Given
    watching = Watching("a", "b", as_shipped=as_shipped)
    served = watching.connection()
    watcher = watching.watcher(served)
    # When
    await watcher.answer(1, watching.watched.names.hash)
    await watcher.answer(2, "00000000")
    # Then
    first, second = commands(bytes(served.peer.received))
    assert list(first.watchTopicListSuccess.topic) == []
    assert first.watchTopicListSuccess.topics_hash == watching.watched.names.hash
    assert short(second.watchTopicListSuccess.topic) == ["a", "b"]


async def test_two_who_are_sent_the_same_set_at_a_time_share_its_bytes() -> None:
    # Given: neither reads
    watching = Watching(*[f"{number:04d}" for number in range(100)])
    one, other = [watching.connection(reads=False) for _ in range(2)]
    # When
    await watching.watcher(one).answer(1, None)
    held = watching.held_bytes
    await watching.watcher(other).answer(1, None)
    # Then
    assert (held > 2_000, watching.held_bytes) == (True, held)
    one.takes()
    assert watching.held_bytes == held
    other.takes()
    assert watching.held_bytes == 0
    assert watching.watched.encoded() is None


async def test_who_is_sent_a_newer_version_pays_for_it() -> None:
    # Given
    watching = Watching("a")
    one, other = [watching.connection(reads=False) for _ in range(2)]
    await watching.watcher(one).answer(1, None)
    held = watching.held_bytes
    # When
    watching.watched.names = watching.watched.names.with_name(b"persistent://t/n/b")
    await watching.watcher(other).answer(1, None)
    # Then
    assert watching.held_bytes > 2 * held
    client = Client(other)
    client.takes()
    assert client.known == ["a", "b"]


@pytest.mark.parametrize("private_buffers", [False, True])
async def test_private_buffers_are_one_piece(private_buffers: bool) -> None:
    # Given
    watching = Watching("a", "b", private_buffers=private_buffers)
    served, pieces = watching.connection(), list[int]()
    original = served.cnx.enqueue

    def enqueue(buffers: list[bytes], *rest: object) -> None:
        pieces.append(len(buffers))
        original(buffers, *rest)  # type: ignore[arg-type]

    served.cnx.enqueue = enqueue  # type: ignore[method-assign,assignment]
    # When
    await watching.watcher(served).answer(1, None)
    # Then
    assert (pieces == [1]) is private_buffers
    client = Client(served)
    client.takes()
    assert client.known == ["a", "b"]


@BOTH
async def test_an_answer_larger_than_the_limit_is_an_error(as_shipped: bool) -> None:
    watching = Watching("a" * 200, as_shipped=as_shipped, direct_bytes=100)
    with pytest.raises(PermitTooLargeError):
        await watching.watcher(watching.connection()).answer(1, None)
    assert watching.held_bytes == 0


async def test_an_answer_larger_than_a_frame_is_refused() -> None:
    watching = Watching("a" * 200, max_frame_bytes=247)
    with pytest.raises(RequestError, match="raise maxMessageSize"):
        await watching.watcher(watching.connection()).answer(1, None)
    watching = Watching("a" * 200, max_frame_bytes=248)
    served = watching.connection()
    await watching.watcher(served).answer(1, None)
    assert len(served.peer.received) == 248


@BOTH
async def test_a_large_set_is_encoded_in_steps(as_shipped: bool) -> None:
    # Given
    texts = [f"{number:05d}" for number in range(5_000)]
    watching = Watching(*texts, as_shipped=as_shipped, direct_bytes=10**6)
    client, turns = Client(watching.connection()), 0
    # When
    answering = asyncio.ensure_future(watching.watcher(client.served).answer(1, None))
    while not answering.done():
        turns += 1
        await asyncio.sleep(0)
    client.takes()
    # Then
    assert turns >= 5
    assert client.known == texts


# -- updates: one at a time, in order -------------------------------------------------------------


@BOTH
async def test_an_update_is_sent_at_once_where_nothing_is_in_its_way(as_shipped: bool) -> None:
    # Given
    watching = Watching("a", as_shipped=as_shipped)
    client, _ = await watching.client()
    # When: in one turn of the loop
    watching.change(added=["b"])
    watching.change(removed=["a"])
    # Then
    assert client.takes() == 2
    assert client.told == [(["b"], []), ([], ["a"])]
    assert (watching.totals.updates, watching.totals.reconciling, watching.held_bytes) == (2, 0, 0)


async def test_as_shipped_a_create_that_waits_is_told_before_the_delete_behind_it() -> None:
    # Given
    watching = Watching("a", as_shipped=True)
    client, _ = await watching.client()
    blocker = await watching.full()
    # When: two timeouts
    watching.change(added=["b"])
    watching.change(removed=["b"])
    for delay in FIRST_DELAYS:
        await watching.passes(25.0)
        await watching.passes(delay)
    watching.give_back(blocker)
    await settle()
    client.takes()
    # Then
    assert client.told == [(["b"], []), ([], ["b"])]
    assert (watching.totals.retries, watching.held_bytes) == (2, 0)


async def test_as_shipped_updates_that_do_not_fit_the_queue_are_dropped_without_a_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given: one is under way, ten may wait
    monkeypatch.setattr(topic_list_watcher, "MAX_QUEUED_UPDATES", 10)
    watching = Watching(as_shipped=True)
    client, _ = await watching.client()
    blocker = await watching.full()
    # When
    watching.change(added=["00"])
    await settle()
    for number in range(1, 12):
        watching.change(added=[f"{number:02d}"])
    watching.give_back(blocker)
    await settle()
    # Then
    assert client.takes() == 1
    assert (client.known, watching.listed_again) == (["00"], 1)
    assert len(watching.watched.names) == 12


def test_as_shipped_ten_thousand_updates_may_wait() -> None:
    assert topic_list_watcher.MAX_QUEUED_UPDATES == 10_000


async def test_as_shipped_an_answer_overtakes_what_is_queued_and_says_all_of_it() -> None:
    # Given: one update is under way, two wait
    watching = Watching("a", as_shipped=True)
    client, watcher = await watching.client()
    blocker = await watching.full()
    for name in "bcd":
        watching.change(added=[name])
    await settle()
    # When: the same id is asked for again
    again = await started(watcher.answer(2, None))
    watching.give_back(blocker)
    await again
    await settle()
    client.takes()
    # Then
    assert client.answers == [1, 2]
    assert (client.told, client.known) == ([(["b"], [])], ["a", "b", "c", "d"])
    watching.change(added=["e"])
    client.takes()
    assert client.known == ["a", "b", "c", "d", "e"]


# -- updates: what is true now --------------------------------------------------------------------


async def test_who_missed_changes_is_told_by_one_reconciling_update() -> None:
    # Given
    watching = Watching("a", "b", "c")
    client, _ = await watching.client()
    blocker = await watching.full()
    # When
    watching.change(added=["d"])
    await settle()
    for name in "efgh":
        watching.change(added=[name])
    watching.change(removed=["a", "f"])
    lagging = watching.totals.lagging
    watching.give_back(blocker)
    await settle()
    client.takes()
    # Then: the first was under way
    assert client.told == [(["d"], []), (["e", "g", "h"], ["a"])]
    assert (lagging, watching.totals.lagging, watching.totals.reconciling) == (1, 0, 2)
    assert watching.held_bytes == 0


async def test_who_does_not_read_is_told_nothing_until_he_does() -> None:
    # Given: a high mark of 1,000 bytes
    watching = Watching("a", direct_bytes=10**6)
    client, _ = await watching.client(reads=False)
    # When
    names = [f"{number:03d}".ljust(100, "x") for number in range(200)]
    for name in names:
        watching.change(added=[name])
        await settle()
    pending = client.served.cnx.outbound.pending_bytes
    # Then: some, and all the others at once
    assert pending < 2_500
    client.takes()
    await settle()
    client.takes()
    await settle()
    client.takes()
    assert client.known == sorted([*names, "a"])
    assert len(client.told) < 20
    assert watching.totals.lagging == 0


async def test_what_came_and_went_while_somebody_was_behind_is_not_told() -> None:
    # Given
    watching = Watching("a")
    client, _ = await watching.client()
    blocker = await watching.full()
    watching.change(added=["b"])
    await settle()
    # When
    watching.change(added=["c"])
    watching.change(removed=["c"])
    watching.give_back(blocker)
    await settle()
    client.takes()
    # Then
    assert client.told == [(["b"], [])]
    watching.change(added=["d"])
    client.takes()
    assert client.told == [(["b"], []), (["d"], [])]


async def test_an_answer_that_overtakes_an_update_leaves_it_nothing_to_say() -> None:
    # Given: an update is under way, and one behind it
    watching = Watching("a")
    client, watcher = await watching.client()
    blocker = await watching.full()
    watching.change(added=["b"])
    await settle()
    watching.change(added=["c"])
    # When
    again = await started(watcher.answer(2, None))
    watching.give_back(blocker)
    await again
    await settle()
    client.takes()
    # Then
    assert (client.told, client.known, client.answers) == ([(["b"], [])], ["a", "b", "c"], [1, 2])


async def test_an_update_that_would_be_too_large_comes_in_parts() -> None:
    # Given: room for about four names
    watching = Watching("a", "b", max_update_bytes=100)
    client, _ = await watching.client()
    # When
    watching.change(added=[f"c{number}" for number in range(10)], removed=["a", "b"])
    await settle()
    client.takes()
    # Then
    assert client.known == [f"c{number}" for number in range(10)]
    assert [len(came) + len(went) for came, went in client.told] == [4, 4, 4]


async def test_a_name_longer_than_an_update_may_be_is_an_update_of_its_own() -> None:
    watching = Watching(max_update_bytes=100)
    client, _ = await watching.client()
    watching.change(added=["a" * 150, "b" * 150])
    await settle()
    client.takes()
    assert client.told == [(["a" * 150], []), (["b" * 150], [])]


async def test_who_is_up_to_date_is_told_through_the_queue_when_something_is_in_it() -> None:
    # Given
    watching = Watching("a")
    client, _ = await watching.client(reads=False)
    client.served.cnx.enqueue([], 0)
    # When
    watching.change(added=["b"])
    client.takes()
    # Then
    assert (client.told, watching.totals.reconciling) == ([(["b"], [])], 0)


# -- ends -----------------------------------------------------------------------------------------


@BOTH
async def test_who_has_closed_is_told_nothing_more(as_shipped: bool) -> None:
    # Given
    watching = Watching("a", as_shipped=as_shipped)
    client, watcher = await watching.client()
    # When
    watcher.close()
    watching.change(added=["b"], also=watcher)
    await settle()
    # Then
    assert client.takes() == 0
    assert not watching.watched.watchers


@BOTH
async def test_who_closes_while_an_update_waits_leaves_nothing(as_shipped: bool) -> None:
    # Given
    watching = Watching("a", as_shipped=as_shipped)
    tasks = asyncio.all_tasks()
    client, watcher = await watching.client()
    blocker = await watching.full()
    watching.change(added=["b"])
    await watching.passes(25.0)
    assert asyncio.all_tasks() > tasks
    # When
    watcher.close()
    await settle()
    # Then
    assert (asyncio.all_tasks(), watching.totals.lagging) == (tasks, 0)
    watching.give_back(blocker)
    await settle()
    assert (client.takes(), watching.held_bytes) == (0, 0)


async def test_who_closes_while_his_connection_is_full_leaves_no_listener() -> None:
    # Given
    watching = Watching("a")
    client, watcher = await watching.client(reads=False)
    client.served.cnx.enqueue([bytes(5_000)], 5_000)
    watching.change(added=["b"])
    await settle()
    assert client.served.cnx.outbound._listeners
    # When
    watcher.close()
    await settle()
    # Then
    assert not client.served.cnx.outbound._listeners
    assert watching.totals.lagging == 0


@BOTH
async def test_an_update_that_can_never_be_sent_ends_the_connection(as_shipped: bool) -> None:
    # Given
    watching = Watching(as_shipped=as_shipped, direct_bytes=100)
    client, _ = await watching.client()
    other, _ = await watching.client()
    # When
    watching.change(added=["a" * 200])
    await settle()
    # Then
    assert (client.takes(), client.served.cnx.closed, other.served.cnx.closed) == (0, True, True)
    assert watching.held_bytes == 0


@BOTH
async def test_an_error_of_ours_ends_the_connection(
    as_shipped: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given
    watching = Watching("a", as_shipped=as_shipped)
    client, _ = await watching.client()
    blocker = await watching.full()

    async def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(WatchOutlet, "update", broken)
    # When
    with caplog.at_level(logging.ERROR):
        watching.change(added=["b"])
        await settle()
    # Then
    assert client.served.cnx.closed
    assert "after an error of ours" in caplog.text
    watching.give_back(blocker)


# -- paying ---------------------------------------------------------------------------------------


async def test_all_who_are_told_at_once_are_paid_for_once() -> None:
    # Given: the last does not read
    watching = Watching("a")
    clients = [(await watching.client(number))[0] for number in range(5)]
    slow, _ = await watching.client(7, reads=False)
    slow.served.peer.reads_at_once = False
    # When
    watching.change(added=["b"])
    # Then: one copy of the name and its hash
    assert watching.held_bytes == len("persistent://t/n/b") + 2 + 10
    assert all(client.takes() == 1 for client in clients)
    assert slow.takes() == 1
    assert watching.held_bytes == 0


async def test_what_is_paid_for_together_is_given_back_with_the_last_of_them() -> None:
    # Given
    watching = Watching("a")
    slow = [(await watching.client(reads=False))[0] for _ in range(3)]
    # When
    watching.change(added=["b"])
    held = [watching.held_bytes]
    for client in slow:
        client.takes()
        held.append(watching.held_bytes)
    # Then
    assert held[0] == held[1] == held[2] > 0
    assert held[3] == 0


async def test_who_vanishes_gives_his_part_back() -> None:
    # Given
    watching = Watching("a")
    client, _ = await watching.client(reads=False)
    watching.change(added=["b"])
    assert watching.held_bytes
    # When
    client.served.peer.breaks()
    # Then
    assert watching.held_bytes == 0


async def test_nobody_is_an_owner_for_ever_of_what_was_paid_together() -> None:
    # Given
    watching = Watching("a")
    client, _ = await watching.client()
    # When
    for _ in range(20):
        watching.change(added=["b"])
        watching.change(removed=["b"])
    # Then
    assert client.takes() == 40
    semaphore = watching.limiter.semaphore(DIRECT)
    assert (semaphore.statistics().holders, len(semaphore._accounts)) == (0, 0)


@BOTH
async def test_without_a_limit_nothing_is_paid(as_shipped: bool) -> None:
    watching = Watching("a", as_shipped=as_shipped, direct_bytes=0)
    client, _ = await watching.client(reads=False)
    watching.change(added=["b"])
    assert watching.held_bytes == 0
    client.takes()
    assert client.known == ["a", "b"]
