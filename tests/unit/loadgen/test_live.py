"""Progress of a run: a screen or lines for people, no output for programs."""

import io
from typing import Any

import pytest

from loadgen.engine.totals import BUCKETS, Totals
from loadgen.live import LiveRun, counts, live_display
from loadgen.places.options import RunOptions

OPTIONS = RunOptions()


def totals_of(ended: dict[str, int] | None = None, **more: Any) -> Totals:
    """Return totals of a listing group ``all``, by outcome."""
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
    run = LiveRun("run", {"all": 10}, now=clock)
    for counters in totals:
        clock.seconds += 1
        run.add(counters)
    return run.line()


def test_with_json_no_progress_is_shown() -> None:
    out = io.StringIO()
    with live_display("run", {"all": 10}, out, as_json=True) as observed:
        assert observed(OPTIONS) is OPTIONS
    assert out.getvalue() == ""


def test_without_a_terminal_the_last_progress_is_printed_at_the_end() -> None:
    out = io.StringIO()
    with live_display("run", {"a": 6, "b": 4}, out) as observed:
        for connected in (0, 4, 9):
            observed(OPTIONS).on_progress(Totals(connected=connected))
    assert out.getvalue().splitlines()[-1] == "connecting: 9 of 10 clients"


def test_before_a_client_is_connected_no_line_is_written() -> None:
    out = io.StringIO()
    with live_display("run", {"all": 10}, out):
        pass
    assert out.getvalue() == ""


def test_a_terminal_immediately_shows_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    with live_display("run", {"all": 10}, screen, first="starting the servers"):
        assert "starting the servers" in screen.getvalue()


@pytest.mark.parametrize(
    ("totals", "line"),
    [
        (Totals(), ""),
        (totals_of({"unreachable": 2}, connected=7), "connecting: 7 of 10 clients, 2 lost"),
        (
            totals_of({"timeout": 1, "disconnected": 2}, phase="drain", started=9, connected=9),
            "draining: 9 sent, 0 answered, 0 refused, 3 lost",
        ),
    ],
)
def test_the_progress_line_shows_the_phase_and_counts_lost_requests(totals, line) -> None:
    assert line_of(totals) == line


def test_the_progress_line_fits_80_columns() -> None:
    ended = {"answered": 9_000, "refused": 990, "timeout": 10}
    counters = totals_of(ended, phase="measure", connected=10_000, started=10_000)
    counters.latencies["all"] = [9_000] * BUCKETS
    assert len(line_of(counters)) <= 80


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_the_progress_of_a_run_in_virtual_time_is_shown(stream: type[io.StringIO]) -> None:
    out = stream()
    totals = totals_of({"answered": 3, "refused": 1}, started=4)
    with live_display("run", {"all": 4}, out) as observed:
        observed(OPTIONS).on_simulation(lambda: (12.25, totals))
    assert "simulated 12.2 s in " in out.getvalue()
    assert "3 answered, 1 refused" in out.getvalue()


@pytest.mark.parametrize(
    ("phase", "word"),
    [
        ("connect", "connecting"),
        ("warm-up", "warm-up"),
        ("measure", "measuring"),
        ("hold", "hold"),
        ("drain", "draining"),
    ],
)
def test_every_phase_is_shown_by_its_name(phase: str, word: str) -> None:
    assert counts(Totals(phase=phase, started=1), 1).startswith(f"{word}: 1 sent")


def test_clients_that_reconnect_are_counted_once() -> None:
    assert counts(Totals(connected=16), 10).endswith("10 of 10 clients")
