"""Updates of watchers: content, timing, waiting permits, non-reading peers, concurrent changes."""

import pytest

from broker.watches import watcher as topic_list_watcher
from limiter.errors import PermitTooLargeError
from tests.support.clocks.settle import settle, started
from tests.support.watches.watching import DIRECT, Watching

BOTH = pytest.mark.parametrize("as_shipped", [False, True], ids=["floodgate", "pulsar"])
FIRST_DELAYS = [0.1, 0.2]


# -- updates: one at a time, in order -------------------------------------------------------------


@BOTH
async def test_an_unobstructed_update_is_sent_in_the_turn_of_its_change(as_shipped: bool) -> None:
    watching = Watching("a", as_shipped=as_shipped)
    client, _ = await watching.client()
    # In one turn of the loop
    watching.change(added=["b"])
    watching.change(removed=["a"])
    assert client.takes() == 2
    assert client.told == [(["b"], []), ([], ["a"])]
    assert (watching.totals.updates, watching.totals.reconciling, watching.held_bytes) == (2, 0, 0)


async def test_in_profile_pulsar_a_waiting_addition_is_sent_before_a_later_removal() -> None:
    watching = Watching("a", as_shipped=True)
    client, _ = await watching.client()
    blocker = await watching.full()
    # Two timeouts
    watching.change(added=["b"])
    watching.change(removed=["b"])
    for delay in FIRST_DELAYS:
        await watching.passes(25.0)
        await watching.passes(delay)
    watching.give_back(blocker)
    await client.takes_all()
    assert client.told == [(["b"], []), ([], ["b"])]
    assert (watching.totals.retries, watching.held_bytes) == (2, 0)


async def test_in_profile_pulsar_no_update_overtakes_waiting_updates() -> None:
    # One update in flight, one waiting
    watching = Watching("a", as_shipped=True)
    client, _ = await watching.client()
    blocker = await watching.full()
    watching.change(added=["b"])
    await settle()
    watching.change(removed=["b"])
    # Memory is free again, and the next update follows in the same turn
    watching.give_back(blocker)
    watching.change(added=["c"])
    await client.takes_all()
    assert client.told == [(["b"], []), ([], ["b"]), (["c"], [])]


async def test_in_profile_pulsar_updates_beyond_the_queue_are_dropped_silently(monkeypatch) -> None:
    # One update in flight, ten may wait
    monkeypatch.setattr(topic_list_watcher, "MAX_QUEUED_UPDATES", 10)
    watching = Watching(as_shipped=True)
    client, _ = await watching.client()
    blocker = await watching.full()
    watching.change(added=["00"])
    await settle()
    for number in range(1, 12):
        watching.change(added=[f"{number:02d}"])
    watching.give_back(blocker)
    assert await client.takes_all() == 1
    assert (client.known, watching.listed_again) == (["00"], 1)
    assert len(watching.watched.names) == 12


def test_in_profile_pulsar_up_to_ten_thousand_updates_may_wait() -> None:
    assert topic_list_watcher.MAX_QUEUED_UPDATES == 10_000


async def test_in_profile_pulsar_an_answer_overtakes_and_includes_queued_updates() -> None:
    # One update in flight, two waiting
    watching = Watching("a", as_shipped=True)
    client, watcher = await watching.client()
    blocker = await watching.full()
    for name in "bcd":
        watching.change(added=[name])
    await settle()
    # The same id is requested again
    again = await started(watcher.answer(2, None))
    watching.give_back(blocker)
    await again
    await client.takes_all()
    assert client.answers == [1, 2]
    assert (client.told, client.known) == ([(["b"], [])], ["a", "b", "c", "d"])
    watching.change(added=["e"])
    await client.takes_all()
    assert client.known == ["a", "b", "c", "d", "e"]


# -- updates: the current state -------------------------------------------------------------------


async def test_missed_changes_are_sent_as_a_single_reconciling_update() -> None:
    watching = Watching("a", "b", "c")
    client, _ = await watching.client()
    blocker = await watching.full()
    watching.change(added=["d"])
    await settle()
    for name in "efgh":
        watching.change(added=[name])
    watching.change(removed=["a", "f"])
    lagging = watching.totals.lagging
    watching.give_back(blocker)
    await client.takes_all()
    # The first was under way
    assert client.told == [(["d"], []), (["e", "g", "h"], ["a"])]
    assert (lagging, watching.totals.lagging, watching.totals.reconciling) == (1, 0, 2)
    assert (watching.held_bytes, len(watching.watched.reconciler._known)) == (0, 0)


async def test_a_client_that_does_not_read_has_few_pending_updates_and_catches_up() -> None:
    # A high mark of 1,000 bytes
    watching = Watching("a", direct_bytes=10**6)
    client, _ = await watching.client(reads=False)
    names = [f"{number:03d}".ljust(100, "x") for number in range(200)]
    for name in names:
        watching.change(added=[name])
        await settle()
    pending = client.served.cnx.outbound.pending_bytes
    # Some names, and all remaining names simultaneously
    assert pending < 2_500
    client.takes()
    await client.takes_all()
    await client.takes_all()
    assert client.known == sorted([*names, "a"])
    assert len(client.told) < 20
    assert watching.totals.lagging == 0


async def test_a_topic_added_and_removed_during_a_lag_is_not_reported() -> None:
    watching = Watching("a")
    client, _ = await watching.client()
    blocker = await watching.full()
    watching.change(added=["b"])
    await settle()
    watching.change(added=["c"])
    watching.change(removed=["c"])
    watching.give_back(blocker)
    await client.takes_all()
    assert client.told == [(["b"], [])]
    watching.change(added=["d"])
    client.takes()
    assert client.told == [(["b"], []), (["d"], [])]


async def test_an_answer_that_overtakes_an_update_makes_the_update_unnecessary() -> None:
    # An update in flight, and one behind
    watching = Watching("a")
    client, watcher = await watching.client()
    blocker = await watching.full()
    watching.change(added=["b"])
    await settle()
    watching.change(added=["c"])
    again = await started(watcher.answer(2, None))
    watching.give_back(blocker)
    await again
    await client.takes_all()
    assert (client.told, client.known, client.answers) == ([(["b"], [])], ["a", "b", "c"], [1, 2])


@BOTH
async def test_a_change_during_a_failed_answer_is_sent_as_an_update(as_shipped: bool) -> None:
    # A watcher with a second request, which cannot be answered yet
    watching = Watching(*[f"{number:02d}" for number in range(20)], as_shipped=as_shipped)
    client, watcher = await watching.client()
    blocker = await watching.full()
    again = await started(watcher.answer(2, None))
    watching.change(added=["new"])
    # The request can never be answered
    watching.limiter.change_limit(DIRECT, max_bytes=300)
    with pytest.raises(PermitTooLargeError):
        await again
    watching.give_back(blocker)
    await client.takes_all()
    # Without another change
    assert client.told == [(["new"], [])]


async def test_an_update_above_the_maximum_size_is_sent_in_parts() -> None:
    # Capacity for about four names
    watching = Watching("a", "b", max_update_bytes=100)
    client, _ = await watching.client()
    watching.change(added=[f"c{number}" for number in range(10)], removed=["a", "b"])
    await client.takes_all()
    assert client.known == [f"c{number}" for number in range(10)]
    assert [len(came) + len(went) for came, went in client.told] == [4, 4, 4]


async def test_a_name_above_the_maximum_update_size_is_sent_in_its_own_update() -> None:
    watching = Watching(max_update_bytes=100)
    client, _ = await watching.client()
    watching.change(added=["a" * 150, "b" * 150])
    await client.takes_all()
    assert client.told == [(["a" * 150], []), (["b" * 150], [])]


async def test_an_up_to_date_watcher_is_updated_immediately_despite_queued_bytes() -> None:
    # A peer that has not read the first update yet
    watching = Watching("a")
    client, _ = await watching.client(reads=False)
    watching.change(added=["b"])
    # In the same turn
    watching.change(added=["c"])
    client.takes()
    assert client.told == [(["b"], []), (["c"], [])]
    assert (watching.totals.updates, watching.totals.reconciling) == (2, 0)
