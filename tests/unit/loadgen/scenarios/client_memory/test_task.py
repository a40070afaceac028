"""The report of the task: a consumer's first message is a request."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest.mock import AsyncMock

import pytest
from loadgen.tasks.task import TaskPlan

from loadgen.errors import LoadgenError
from loadgen.places.server_process import ServerLaunch, ServerProcess
from loadgen.scenarios.client_memory.task import ClientMemoryTask
from tests.support.runs.client_memory_runs import SCENARIO, found

if TYPE_CHECKING:
    from collections.abc import Iterator


class ScriptedTask(ClientMemoryTask):
    """Plays no part: the test says what one found."""

    def __init__(self) -> None:
        plan = TaskPlan(scenario=SCENARIO, task=0, tasks=1)
        super().__init__(plan, agree=lambda now: now)

    def played(self, policy: str, begun_epoch_seconds: float) -> None:
        """Enter what a part found."""
        part = found(policy, first_messages=[[0.25, 0.5], [0.25, None]])
        self._found.append({**part, "begun_epoch_seconds": begun_epoch_seconds})

    def failed(self, error: Exception) -> None:
        """Let a part fail."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_exception(error)
        self._playing = future  # type: ignore[assignment]


async def test_first_messages_by_this_projects_queues_are_requests() -> None:
    # Given
    task = ScriptedTask()
    task.played("bytes", 1_010.0)
    task.played("pulsar", 1_020.0)
    # When
    report = task.report(t0_epoch_seconds=1_000.0)
    # Then
    rows = report.rows.select(
        ["client", "namespace", "started_seconds", "finished_seconds", "outcome", "bytes"]
    ).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (0, "public/default", 10.25, 10.5, "answered", SCENARIO.message_bytes),
        (1, "public/default", 10.25, 12.0, "timeout", 0),
    ]
    assert [part["begun_seconds"] for part in report.details] == [10.0, 20.0]


async def test_an_interrupted_run_leaves_out_who_still_waited() -> None:
    task = ScriptedTask()
    task.played("bytes", 0.0)
    task.end_early()
    assert task.report(0.0).rows.num_rows == 1


async def test_a_part_that_failed_ends_the_run() -> None:
    task = ScriptedTask()
    task.failed(LoadgenError("pulsar://a:1 cannot be used: Timeout: it took too long"))
    with pytest.raises(LoadgenError, match="cannot be used: Timeout"):
        task.report(0.0)


async def test_no_more_messages_are_delivered_than_were_to_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given a first part that delivers all but three, and a second one that delivers all
    task = ScriptedTask()
    task.scenario = SCENARIO.model_copy(update={"producers": 0})
    counters = task.context.counters
    backlog = SCENARIO.messages_per_topic * SCENARIO.backlog_topics
    seen = []

    async def play(policy: str, *_: object) -> None:
        counters.answered += backlog - (3 if policy == "bytes" else 0)
        seen.append((counters.started, counters.answered))

    monkeypatch.setattr(task, "_play", play)
    monkeypatch.setattr(task, "_leave_nothing", AsyncMock())
    # When
    await task._play_all()
    # Then
    assert seen == [(backlog, backlog - 3), (2 * backlog - 3, 2 * backlog - 3)]


async def test_a_server_that_was_stopped_can_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a client process that ends while its server is stopped
    signals: list[tuple[int, int]] = []

    @contextmanager
    def running(_: ServerLaunch) -> Iterator[ServerProcess]:
        yield ServerProcess("proxy", 42, "pulsar://127.0.0.1:1", "http://127.0.0.1:2")

    async def play(policy: str, topics: list[str], url: str, stop_pid: int) -> None:
        assert (stop_pid, url) == ((0, "") if policy else (42, "pulsar://127.0.0.1:1"))
        if not policy:
            raise LoadgenError("the client process ended")

    module = "loadgen.scenarios.client_memory.task"
    monkeypatch.setattr(f"{module}.running_server", running)
    monkeypatch.setattr(f"{module}.os.kill", lambda *sent: signals.append(sent))
    task = ScriptedTask()
    monkeypatch.setattr(task, "_play", play)
    # When
    with pytest.raises(LoadgenError):
        await task._play_all()
    # Then
    assert signals == [(42, signal.SIGCONT)]
