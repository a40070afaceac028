"""A person sees a screen or lines while a run goes on, a program nothing."""

from __future__ import annotations

import io

import pytest

from loadgen.clients.records import RequestCounters
from loadgen.live.display import live_display, progress_line
from loadgen.live.pulse import Pulse


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def line_of(*totals: RequestCounters) -> str:
    clock = Clock()
    pulse = Pulse(clock)
    for counters in totals:
        clock.seconds += 1
        pulse.add(counters)
    return progress_line(pulse, 10)


def test_a_program_is_shown_nothing() -> None:
    out = io.StringIO()
    with live_display("run", 10, out, as_json=True) as observer:
        observer.on_counters(RequestCounters(answered=3))
    assert out.getvalue() == ""


def test_without_a_terminal_there_is_a_line_a_second_if_there_is_news() -> None:
    # Given
    out, clock = io.StringIO(), Clock()
    with live_display("run", 10, out, first="starting Spark", now=clock) as observer:
        at_once = out.getvalue()
        # When two tasks tell every second, the second time nothing new
        for connected in (0, 4, 6, 8, 9):
            observer.on_counters(RequestCounters(connected=connected))
            clock.seconds += 0.5
        meanwhile = out.getvalue().splitlines()
    # Then
    assert at_once == "starting Spark\n"
    assert meanwhile == [at_once.strip(), "connected 4 of 10", "connected 8 of 10"]
    # and what came last is told at the end
    assert out.getvalue().splitlines() == [*meanwhile, "connected 9 of 10"]


def test_a_terminal_shows_at_once_what_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    with live_display("run", 10, screen, first="starting Spark"):
        assert "starting Spark" in screen.getvalue()


@pytest.mark.parametrize(
    ("totals", "line"),
    [
        (RequestCounters(connected=7, unreachable=2), "connected 7 of 10  lost 2"),
        (
            RequestCounters(started=9, timeout=1, disconnected=2),
            "started 9  answered 0  refused 0  lost 3  3/s",
        ),
    ],
)
def test_the_line_for_people_counts_what_was_lost(totals: RequestCounters, line: str) -> None:
    assert line_of(totals) == line


def test_the_line_for_people_fits_eighty_columns() -> None:
    counters = RequestCounters(
        connected=10_000, started=10_000, answered=9_000, refused=990, timeout=10, bytes=9 * 10**8
    )
    counters.latencies[30] = 9_000
    assert len(line_of(counters)) <= 80
