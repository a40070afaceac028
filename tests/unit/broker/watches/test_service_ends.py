"""Ending watchers, and the memory paid for sent updates."""

import asyncio
import logging

import pytest

from broker.watches.sender import WatchSender
from tests.support.clocks.settle import settle
from tests.support.watches.watching import DIRECT, Watching

BOTH = pytest.mark.parametrize("as_shipped", [False, True], ids=["floodgate", "pulsar"])
FIRST_DELAYS = [0.1, 0.2]


# -- ends -----------------------------------------------------------------------------------------


@BOTH
async def test_a_closed_watcher_receives_no_update(as_shipped: bool) -> None:
    watching = Watching("a", as_shipped=as_shipped)
    client, watcher = await watching.client()
    watcher.close()
    watching.change(added=["b"], also=watcher)
    assert await client.takes_all() == 0
    assert not watching.watched.watchers


@BOTH
async def test_closing_a_watcher_with_a_waiting_update_releases_its_task_and_memory(
    as_shipped: bool,
) -> None:
    watching = Watching("a", as_shipped=as_shipped)
    tasks = asyncio.all_tasks()
    client, watcher = await watching.client()
    blocker = await watching.full()
    watching.change(added=["b"])
    await watching.passes(25.0)
    assert asyncio.all_tasks() > tasks
    watcher.close()
    await settle()
    assert (asyncio.all_tasks(), watching.totals.lagging) == (tasks, 0)
    watching.give_back(blocker)
    await settle()
    assert (client.takes(), watching.held_bytes) == (0, 0)


async def test_closing_a_watcher_of_a_full_connection_removes_its_listener() -> None:
    watching = Watching("a")
    client, watcher = await watching.client(reads=False)
    client.served.cnx.enqueue([bytes(5_000)], 5_000)
    watching.change(added=["b"])
    await settle()
    assert client.served.cnx.outbound._listeners
    watcher.close()
    await settle()
    assert not client.served.cnx.outbound._listeners
    assert watching.totals.lagging == 0


@BOTH
async def test_an_update_above_the_memory_limit_closes_the_connection(as_shipped: bool) -> None:
    watching = Watching(as_shipped=as_shipped, direct_bytes=100)
    client, _ = await watching.client()
    other, _ = await watching.client()
    watching.change(added=["a" * 200])
    await settle()
    assert (client.takes(), client.served.cnx.closed, other.served.cnx.closed) == (0, True, True)
    assert watching.held_bytes == 0


@BOTH
async def test_an_internal_error_while_sending_is_logged_and_closes_the_connection(
    as_shipped: bool, caplog, monkeypatch
) -> None:
    watching = Watching("a", as_shipped=as_shipped)
    client, _ = await watching.client()
    blocker = await watching.full()

    async def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(WatchSender, "send", broken)
    with caplog.at_level(logging.ERROR):
        watching.change(added=["b"])
        await settle()
    assert client.served.cnx.closed
    assert "after an internal error" in caplog.text
    watching.give_back(blocker)


# -- paying ---------------------------------------------------------------------------------------


async def test_an_update_for_several_clients_is_charged_once() -> None:
    # The last does not read
    watching = Watching("a")
    clients = [(await watching.client(number))[0] for number in range(5)]
    slow, _ = await watching.client(7, reads=False)
    slow.served.peer.reads_at_once = False
    watching.change(added=["b"])
    # A single copy of the name and the hash
    assert watching.held_bytes == len("persistent://t/n/b") + 2 + 10
    assert all(client.takes() == 1 for client in clients)
    assert slow.takes() == 1
    assert watching.held_bytes == 0


async def test_a_shared_update_is_charged_until_its_last_recipient_has_read() -> None:
    watching = Watching("a")
    slow = [(await watching.client(reads=False))[0] for _ in range(3)]
    watching.change(added=["b"])
    held = [watching.held_bytes]
    for client in slow:
        client.takes()
        held.append(watching.held_bytes)
    assert held[0] == held[1] == held[2] > 0
    assert held[3] == 0


async def test_a_lost_connection_releases_its_share_of_an_update() -> None:
    watching = Watching("a")
    client, _ = await watching.client(reads=False)
    watching.change(added=["b"])
    assert watching.held_bytes
    client.served.peer.breaks()
    assert watching.held_bytes == 0


async def test_finished_updates_have_no_accounts_in_the_limiter() -> None:
    watching = Watching("a")
    client, _ = await watching.client()
    for _ in range(20):
        watching.change(added=["b"])
        watching.change(removed=["b"])
    assert client.takes() == 40
    semaphore = watching.limiter.semaphore(DIRECT)
    assert (semaphore.statistics().holders, len(list(semaphore.accounts()))) == (0, 0)


@BOTH
async def test_without_a_memory_limit_no_update_is_charged(as_shipped: bool) -> None:
    watching = Watching("a", as_shipped=as_shipped, direct_bytes=0)
    client, _ = await watching.client(reads=False)
    watching.change(added=["b"])
    await settle()
    assert watching.held_bytes == 0
    client.takes()
    assert client.known == ["a", "b"]


async def test_a_large_update_is_a_single_copy_for_clients_with_different_ids() -> None:
    # Three non-reading peers
    watching = Watching("a", direct_bytes=10**6)
    clients = [(await watching.client(number, reads=False))[0] for number in (1, 2, 3)]
    names = ["n" * 100 + str(number) for number in range(100, 400)]
    watching.change(added=names)
    await settle()
    for client in clients:
        assert 36_000 < watching.held_bytes < 37_000
        client.takes()
        assert client.known == ["a", *names]
    assert watching.held_bytes == 0


@pytest.mark.parametrize(("count", "calls"), [(100, 1), (400, 0)], ids=["small", "large"])
async def test_only_small_updates_bypass_the_outbound_queue(
    count: int, calls: int, monkeypatch
) -> None:
    watching, asked = Watching("a", direct_bytes=10**6), list[int]()
    client, _ = await watching.client()
    original = client.served.cnx.write_through

    def write_through(frame: bytes, *rest: object) -> bool:
        asked.append(len(frame))
        return original(frame, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(client.served.cnx, "write_through", write_through)
    watching.change(added=["n" * 100 + str(number) for number in range(count)])
    assert len(asked) == calls
    assert client.takes() == 1
    assert len(client.known) == count + 1
