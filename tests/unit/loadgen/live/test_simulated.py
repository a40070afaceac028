"""A person who waits for virtual time sees how far it is; a program sees nothing."""

from __future__ import annotations

import io

from loadgen.clients.records import RequestCounters
from loadgen.live.simulated import simulated_display, simulated_line
from tests.unit.loadgen.live.test_display import Terminal


def test_a_program_is_shown_nothing() -> None:
    out = io.StringIO()
    with simulated_display(out, as_json=True) as observer:
        observer.on_simulation(lambda: (1.0, RequestCounters(started=1)))
    assert out.getvalue() == ""


def test_the_last_line_tells_all() -> None:
    out = io.StringIO()
    with simulated_display(out) as observer:
        observer.on_simulation(lambda: (12.25, RequestCounters(started=4, answered=3, refused=1)))
    assert out.getvalue().startswith("simulated 12.2 s in ")
    assert out.getvalue().endswith(": 3 answered, 1 refused\n")


def test_a_terminal_shows_the_same_and_is_left_clean() -> None:
    out = Terminal()
    with simulated_display(out) as observer:
        observer.on_simulation(lambda: (12.25, RequestCounters(started=4, answered=3, refused=1)))
    assert "3 answered, 1 refused" in out.getvalue()
    assert out.getvalue().endswith("\x1b[2K")  # the line is erased


def test_before_a_request_the_line_counts_connections() -> None:
    line = simulated_line(0.0, RequestCounters(connected=1_200), 0.5)
    assert line == "simulated 0.0 s in 500 ms: connected 1,200"


def test_a_line_fits_a_terminal() -> None:
    many = 500_000
    totals = RequestCounters(started=many, answered=many, refused=many, timeout=many)
    assert len(simulated_line(3600.0, totals, 600.0)) < 80
