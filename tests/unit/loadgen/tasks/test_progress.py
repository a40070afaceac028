from __future__ import annotations

import asyncio
import io
import json
import queue
import socket
from typing import TYPE_CHECKING

from loadgen.clients.records import Outcome, RequestCounters
from loadgen.tasks.progress import ProgressReceiver, ProgressSender, progress_display, progress_line
from tests.support.clocks.settle import settle

if TYPE_CHECKING:
    import pytest


def test_totals_of_all_tasks_are_added_up_and_rubbish_is_ignored() -> None:
    # Given
    totals: queue.Queue[RequestCounters] = queue.Queue()
    with ProgressReceiver(totals.put) as receiver:
        senders = [ProgressSender(task, receiver.address) for task in range(2)]
        # When
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"rubbish", receiver.address)
            stranger.sendto(b'{"task": 1, "counters": {"x": 1}}', receiver.address)
        for sender in senders:
            sender.send(RequestCounters(connected=10, answered=1))
        senders[0].send(RequestCounters(connected=10, answered=5))
        seen = [totals.get(timeout=10) for _ in range(3)]
        for sender in senders:
            sender.close()
    # Then
    assert [each.answered for each in seen] == [1, 2, 6]
    assert seen[-1].connected == 20


async def test_tasks_are_told_to_end_early_now_or_when_they_are_heard_of() -> None:
    # Given a task that the driver has heard of, and one that it has not
    heard: queue.Queue[RequestCounters] = queue.Queue()
    told = [asyncio.Event() for _ in range(2)]
    with ProgressReceiver(heard.put) as receiver:
        senders = [ProgressSender(task, receiver.address) for task in range(2)]
        for sender, event in zip(senders, told, strict=True):
            sender.on_stop(event.set)
        senders[0].send(RequestCounters())
        await asyncio.to_thread(heard.get, timeout=10)
        # When
        receiver.stop()
        senders[1].send(RequestCounters())
        # Then
        for event in told:
            await event.wait()
        for sender in senders:
            sender.close()


async def test_a_stranger_cannot_end_a_task() -> None:
    # Given
    told = asyncio.Event()
    with ProgressReceiver(lambda _: None) as receiver:
        sender = ProgressSender(0, receiver.address)
        sender.on_stop(told.set)
        sender.send(RequestCounters())
        # When
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"stop", sender.address)
            await settle()
        strange = told.is_set()
        receiver.stop()
        sender.send(RequestCounters())
        # Then the driver can
        await told.wait()
        sender.close()
    assert not strange


def test_a_sender_without_an_address_is_silent() -> None:
    sender = ProgressSender(0, None)
    sender.send(RequestCounters())
    sender.close()


def test_every_outcome_has_its_counter() -> None:
    counters = RequestCounters()
    for outcome in Outcome:
        counters.count(outcome)
    assert [getattr(counters, each.value) for each in Outcome] == [1] * len(Outcome)


def test_for_programs_progress_is_json_lines() -> None:
    out = io.StringIO()
    with progress_display(10, out, as_json=True) as on_progress:
        on_progress(RequestCounters(answered=3))
    assert json.loads(out.getvalue())["progress"]["answered"] == 3


def test_without_a_terminal_progress_is_a_line_whenever_there_is_some() -> None:
    # Given
    out, some = io.StringIO(), RequestCounters(connected=9)
    # When
    with progress_display(10, out, first="starting Spark") as on_progress:
        at_once = out.getvalue()
        for counters in (RequestCounters(), some, RequestCounters(connected=9)):
            on_progress(counters)
    # Then
    assert at_once == "starting Spark\n"
    assert out.getvalue() == "starting Spark\nconnected 9 of 10\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_at_once_what_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    with progress_display(10, screen, first="starting Spark"):
        assert "starting Spark" in screen.getvalue()


def test_a_line_too_long_for_a_terminal_is_cut_and_not_wrapped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    screen = Terminal()
    # When
    with progress_display(10_000, screen) as on_progress:
        on_progress(RequestCounters(started=10_000, answered=9_000, refused=1_000))
    # Then
    line = screen.getvalue().partition("started 10,000")[2].partition("\n")[0]
    assert "refused" in line
    assert "lost" not in screen.getvalue()


def test_the_line_for_people_counts_what_was_lost() -> None:
    counters = RequestCounters(connected=9, started=9, timeout=1, disconnected=2, bytes=3 << 19)
    assert progress_line(counters, 10) == "started 9  answered 0  refused 0  lost 3  1.5 MB"
    assert progress_line(RequestCounters(connected=7, unreachable=2), 10) == (
        "connected 7 of 10  lost 2"
    )


def test_the_line_for_people_fits_sixty_columns() -> None:
    counters = RequestCounters(
        connected=10_000, started=10_000, answered=9_000, refused=990, timeout=10, bytes=9 * 10**8
    )
    assert len(progress_line(counters, 10_000)) <= 60
