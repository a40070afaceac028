"""A pattern only for a backtracking engine must not block other clients."""

import asyncio
import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from broker.patterns.backtracking import PatternWorkers
from broker.patterns.errors import InvalidPatternError
from broker.patterns.filter import PatternFilter, PatternRules
from broker.patterns.pattern import RegexImplementation
from broker.topic_lists.sequence import TopicListing, TopicSequence
from server.tasks.worker_processes import MOST_NICENESS, NICENESS
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.processes.cluster import until

CATASTROPHIC = "(?!zz)(?:(?:x|x)*)*q"
NAMES = [f"persistent://t/n/{'x' * 40}-{index}".encode() for index in range(2_000)]
SLOW = f"t/n/{CATASTROPHIC}"
LIMIT_SECONDS = 3_600.0
"""Long, because processes measure their own processor time."""


def listing() -> TopicListing:
    return TopicListing(TopicSequence.from_names(NAMES))


class Setup:
    """A filter with test-driven time, and its processes."""

    def __init__(self, workers: PatternWorkers) -> None:
        self.workers = workers
        self.clock = ManualClock()
        rules = PatternRules(
            enabled=True,
            max_length=50,
            implementation=RegexImplementation.RE2J_WITH_JDK_FALLBACK,
            share=True,
            timeout_seconds=LIMIT_SECONDS,
        )
        self.filter = PatternFilter(rules, workers=workers, clock=self.clock)

    @property
    def processes(self) -> list[int]:
        return [worker._process.pid for worker in self.workers._all]

    async def slow(self, suffix: str = "") -> asyncio.Task[TopicListing]:
        """Return an endless evaluation running in a process."""
        before = len(self.processes)
        work = self.filter.filter(listing(), SLOW + suffix)
        task = asyncio.ensure_future(work)
        await until(lambda: len(self.processes) > before)
        await settle()
        return task


@pytest_asyncio.fixture
async def setup() -> AsyncIterator[Setup]:
    async with PatternWorkers(max_workers=2) as workers:
        yield Setup(workers)


def lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


async def until_gone(process: int) -> None:
    await until(lambda: not lives(process))


async def test_a_pattern_above_its_timeout_is_refused_and_its_process_ends(setup: Setup) -> None:
    evaluation = await setup.slow()
    (process,) = setup.processes
    setup.clock.advance(LIMIT_SECONDS)
    with pytest.raises(InvalidPatternError) as caught:
        await evaluation
    assert str(caught.value) == (
        f"the pattern '{SLOW}' takes more than floodgatePatternTimeoutMs=3600000 on 2000 topics: "
        "write it without look-around and back-references, or raise floodgatePatternTimeoutMs"
    )
    await until_gone(process)


async def test_other_patterns_are_evaluated_while_a_slow_pattern_runs(setup: Setup) -> None:
    slow = await setup.slow()
    quick = await setup.filter.filter(listing(), "t/n/x*-7")
    also_backtracking = await setup.filter.filter(listing(), "t/n/(?=x).*-1[0-9]")
    assert list(quick.names()) == [f"persistent://t/n/{'x' * 40}-7"]
    assert len(also_backtracking) == 10
    assert not slow.done()
    slow.cancel()


async def test_a_pattern_process_ends_once_its_last_waiter_is_cancelled(setup) -> None:
    slow = await setup.slow()
    (process,) = setup.processes
    slow.cancel()
    await settle()
    assert setup.processes == []
    await until_gone(process)


async def test_a_pattern_process_is_reused_after_it_has_finished(setup: Setup) -> None:
    await setup.filter.filter(listing(), "t/n/(?=x).*-1[0-9]")
    before = setup.processes
    kept = await setup.filter.filter(listing(), "t/n/(?=x).*-2[0-9]")
    assert len(kept) == 10
    assert setup.processes == before


async def test_a_pattern_process_runs_at_its_higher_niceness(setup: Setup) -> None:
    await setup.filter.filter(listing(), "t/n/(?=x).*")
    (process,) = setup.processes
    own = max(os.getpriority(os.PRIO_PROCESS, 0), 0)
    assert os.getpriority(os.PRIO_PROCESS, process) == min(own + NICENESS, MOST_NICENESS)


async def test_a_killed_idle_pattern_process_is_replaced(setup: Setup) -> None:
    await setup.filter.filter(listing(), "t/n/(?=x).*-1[0-9]")
    (worker,) = setup.workers._all
    os.kill(worker._process.pid, 9)
    await worker.gone()
    assert len(await setup.filter.filter(listing(), "t/n/(?=x).*-2[0-9]")) == 10


async def test_a_pattern_process_killed_at_work_fails_only_its_request(setup: Setup) -> None:
    slow = await setup.slow()
    os.kill(setup.processes[0], 9)
    with pytest.raises(InvalidPatternError, match="a pattern worker ended"):
        await slow
    assert len(await setup.filter.filter(listing(), "t/n/(?=x).*-2[0-9]")) == 10


async def test_a_request_without_a_free_pattern_process_is_timed_out(setup: Setup) -> None:
    await setup.slow("1")
    await setup.slow("2")
    third = asyncio.ensure_future(setup.filter.filter(listing(), "t/n/(?=x).*"))
    await settle()
    setup.clock.advance(LIMIT_SECONDS)
    with pytest.raises(InvalidPatternError, match="no process within floodgatePatternTimeoutMs"):
        await third
    assert len(await setup.filter.filter(listing(), "t/n/(?=x).*")) == 2_000


async def test_time_in_the_queue_does_not_count_towards_the_pattern_timeout(setup: Setup) -> None:
    # Half of the limit passed in the queue
    first, second = await setup.slow("1"), await setup.slow("2")
    setup.clock.advance(LIMIT_SECONDS / 2)
    third = asyncio.ensure_future(setup.filter.filter(listing(), SLOW + "3"))
    await settle()
    setup.clock.advance(LIMIT_SECONDS / 2)
    await asyncio.gather(first, second, return_exceptions=True)
    await settle()
    assert len(setup.processes) == 1
    setup.clock.advance(0.6 * LIMIT_SECONDS)
    await settle()
    # Queueing time does not count
    assert not third.done()
    setup.clock.advance(0.4 * LIMIT_SECONDS)
    with pytest.raises(InvalidPatternError, match="takes more than floodgatePatternTimeoutMs"):
        await third


async def test_a_pattern_timeout_error_keeps_no_reference_to_the_listing(setup: Setup) -> None:
    evaluation = await setup.slow()
    setup.clock.advance(LIMIT_SECONDS)
    # The frames behind another error would have the names of the whole listing
    with pytest.raises(InvalidPatternError) as caught:
        await evaluation
    assert caught.value.__context__ is None


async def test_a_waiting_pattern_gets_the_next_free_process(setup: Setup) -> None:
    first, _ = await setup.slow("1"), await setup.slow("2")
    third = asyncio.ensure_future(setup.filter.filter(listing(), "t/n/(?=x).*"))
    await settle()
    first.cancel()
    assert len(await third) == 2_000


async def test_a_look_ahead_pattern_selects_the_matching_topics(setup: Setup) -> None:
    # Partitions, names that are not ASCII, both domains
    persistent = ["persistent://t/n/é-1", "persistent://t/n/a-partition-3", "persistent://t/n/b"]
    both = TopicListing(
        TopicSequence.from_names([b"non-persistent://t/n/a", b"non-persistent://t/n/zz"]),
        TopicSequence.from_names([name.encode() for name in persistent]),
    )
    kept = await setup.filter.filter(both, "persistent://t/n/(?!zz)(a|..1)")
    assert set(kept.names()) == {"non-persistent://t/n/a", *persistent[:2]}
