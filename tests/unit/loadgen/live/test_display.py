"""A person sees a screen or lines while a run goes on, a program nothing."""

from __future__ import annotations

import io
from typing import Any

import pytest

from loadgen.engine.totals import Totals
from loadgen.live.display import live_display, progress_line, simulated_display, simulated_line
from loadgen.live.screen import Pulse


def totals_of(ended: dict[str, int] | None = None, **more: Any) -> Totals:
    """Totals of a group ``all`` that lists: how many ended, by outcome."""
    return Totals(
        ended={f"all list {name}": count for name, count in (ended or {}).items()}, **more
    )


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def line_of(*totals: Totals) -> str:
    clock = Clock()
    pulse = Pulse(clock)
    for counters in totals:
        clock.seconds += 1
        pulse.add(counters)
    return progress_line(pulse, 10)


def test_a_program_is_shown_nothing() -> None:
    out = io.StringIO()
    with live_display("run", 10, out, as_json=True) as observer:
        observer.on_progress(totals_of({"answered": 3}))
    assert out.getvalue() == ""


def test_without_a_terminal_there_is_a_line_a_second_if_there_is_news() -> None:
    # Given
    out, clock = io.StringIO(), Clock()
    with live_display("run", 10, out, first="starting Spark", now=clock) as observer:
        at_once = out.getvalue()
        # When two tasks tell every second, the second time nothing new
        for connected in (0, 4, 6, 8, 9):
            observer.on_progress(Totals(connected=connected))
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
        (totals_of({"unreachable": 2}, connected=7), "connected 7 of 10  lost 2"),
        (
            totals_of({"timeout": 1, "disconnected": 2}, started=9),
            "started 9  answered 0  refused 0  lost 3  3/s",
        ),
    ],
)
def test_the_line_for_people_counts_what_was_lost(totals: Totals, line: str) -> None:
    assert line_of(totals) == line


def test_the_line_for_people_fits_eighty_columns() -> None:
    ended = {"answered": 9_000, "refused": 990, "timeout": 10}
    counters = totals_of(ended, connected=10_000, started=10_000, bytes=9 * 10**8)
    counters.latencies[30] = 9_000
    assert len(line_of(counters)) <= 80


def test_a_program_is_shown_nothing_of_virtual_time() -> None:
    out = io.StringIO()
    with simulated_display(out, as_json=True) as observer:
        observer.on_simulation(lambda: (1.0, Totals(started=1)))
    assert out.getvalue() == ""


def test_the_last_line_tells_all() -> None:
    out = io.StringIO()
    with simulated_display(out) as observer:
        observer.on_simulation(lambda: (12.25, totals_of({"answered": 3, "refused": 1}, started=4)))
    assert out.getvalue().startswith("simulated 12.2 s in ")
    assert out.getvalue().endswith(": 3 answered, 1 refused\n")


def test_a_terminal_shows_the_same_and_is_left_clean() -> None:
    out = Terminal()
    with simulated_display(out) as observer:
        observer.on_simulation(lambda: (12.25, totals_of({"answered": 3, "refused": 1}, started=4)))
    assert "3 answered, 1 refused" in out.getvalue()
    assert out.getvalue().endswith("\x1b[2K")  # the line is erased


def test_before_a_request_the_line_counts_connections() -> None:
    line = simulated_line(0.0, Totals(connected=1_200), 0.5)
    assert line == "simulated 0.0 s in 500 ms: connected 1,200"


def test_a_line_fits_a_terminal() -> None:
    many = 500_000
    totals = totals_of({"answered": many, "refused": many, "timeout": many}, started=many)
    assert len(simulated_line(3600.0, totals, 600.0)) < 80
