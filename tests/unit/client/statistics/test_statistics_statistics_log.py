"""Statistics in the log."""

import asyncio
import logging

import pytest

from client.statistics.statistics import StatisticsLog
from limiter.client_memory.memory_limit_controller import MemoryLimitController
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle


class Counted:
    """A producer, reduced to statistics."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def close(self) -> None:
        """No-op."""

    def statistics(self) -> str:
        return f"figures of {self.name}"


class Logged:
    """A log on a manual clock."""

    def __init__(self, seconds: float) -> None:
        self.clock = ManualClock()
        self.parts = {Counted(str(number)) for number in range(120)}
        self.log = StatisticsLog(self.clock, seconds, self.parts, MemoryLimitController())

    async def lines(self, caplog: pytest.LogCaptureFixture, seconds: float) -> list[str]:
        """Return the lines logged while time passes."""
        await settle()
        self.clock.advance(seconds)
        await settle()
        lines, _ = [record.getMessage() for record in caplog.records], caplog.clear()
        return lines


async def test_every_part_is_logged_at_each_interval(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, StatisticsLog.__module__)
    logged = Logged(600)
    logged.log.start()
    logged.log.start()
    for _ in range(2):
        lines = await logged.lines(caplog, 600)
        assert lines[0].startswith("MemoryLimitStatistics(")
        assert sorted(lines[1:]) == sorted(part.statistics() for part in logged.parts)
    await logged.log.close()
    await logged.log.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize(("seconds", "level"), [(0, logging.INFO), (600, logging.WARNING)])
async def test_nothing_is_logged_when_the_interval_is_0_or_the_log_level_is_higher(
    caplog, seconds: float, level: int
) -> None:
    caplog.set_level(level, StatisticsLog.__module__)
    logged = Logged(seconds)
    logged.log.start()
    assert await logged.lines(caplog, 600) == []
    await logged.log.close()
