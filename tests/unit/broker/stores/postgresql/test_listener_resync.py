"""Resynchronization: one task per subject, retried until success."""

import asyncio

from broker.stores.changes import StoreError
from broker.stores.postgresql.listener import LONGEST_RETRY_SECONDS, ResyncTasks
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle


class Work:
    """Counts runs, which wait and fail as scripted."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.failures = 0

    async def __call__(self, key: str) -> None:
        await self.go_on.wait()
        if self.failures:
            self.failures -= 1
            raise StoreError("out of reach")
        self.done.append(key)


async def test_requests_during_a_resync_cause_a_single_further_resync() -> None:
    work = Work()
    resyncs = ResyncTasks(work, ManualClock())
    work.go_on.clear()
    resyncs.request("a")
    await settle()
    for _ in range(5):
        resyncs.request("a")
    work.go_on.set()
    await settle()
    assert work.done == ["a", "a"]
    assert len(resyncs) == 0


async def test_resyncs_of_different_keys_do_not_wait_for_each_other() -> None:
    waits = asyncio.Event()
    done: list[str] = []

    async def work(key: str) -> None:
        if key == "slow":
            await waits.wait()
        done.append(key)

    resyncs = ResyncTasks(work, ManualClock())
    resyncs.request("slow")
    resyncs.request("fast")
    await settle()
    assert done == ["fast"]
    waits.set()
    await settle()
    assert done == ["fast", "slow"]


async def test_a_failed_resync_is_retried_until_success() -> None:
    work, clock = Work(), ManualClock()
    work.failures = 4
    resyncs = ResyncTasks(work, clock)
    resyncs.request("a")
    await settle()
    assert work.failures == 3
    for _ in range(4):
        assert work.done == []
        clock.advance(LONGEST_RETRY_SECONDS)
        await settle()
    assert work.done == ["a"]


async def test_closing_cancels_a_resync_in_flight() -> None:
    work = Work()
    work.go_on.clear()
    resyncs = ResyncTasks(work, ManualClock())
    resyncs.request("a")
    await settle()
    await resyncs.close()
    work.go_on.set()
    await settle()
    assert work.done == []
    assert len(resyncs) == 0
