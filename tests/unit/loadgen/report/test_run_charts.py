"""Charts of one run, and of several overlaid runs."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadgen.report.charts import Chart
from loadgen.report.drawing import render
from loadgen.report.run_charts import CHARTS, labels_of, sweep_chart
from loadgen.results.results import Results
from tests.support.runs.recorded_run import GROUP, event, record_run, request, sample

ROWS = [request(client=n, due=n / 10, bytes=10) for n in range(20)]
GROUPS = [{**GROUP, "count": 30}]
REFUSED = [
    request(client=n, due=n / 10, outcome="refused", reason="TooManyRequests", done=n / 10 + 3)
    for n in range(20, 30)
]


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[list[Results]]:
    phases = {"warm_up": 0.5, "measure": 2.5, "hold": 0.0, "drain": 5.0}
    told: dict[str, Any] = {
        "document": {"phases": phases},
        "shocks": [{"at": 1.0, "what": "restart proxy", "ready_seconds": 2.0}],
    }
    samples = [
        sample(figure, at, value, process)
        for process in ("broker", "proxy")
        for at, value in ((0.0, 100e6), (1.0, 150e6), (2.0, 100e6))
        for figure in ("resident", "heap.used")
    ] + [sample("heap.limit", 0.0, 200e6)]
    back = [event("back", client=n, seconds=n / 10, value=0.1) for n in range(15)]
    for name in ("a", "b"):
        record_run(tmp_path / name, ROWS + REFUSED, back, samples, GROUPS, title="storm", **told)
    opened = [Results.open(tmp_path / name) for name in ("a", "b")]
    yield opened
    for each in opened:
        each.close()


def one(name: str, runs: list[Results], key: str | None = None) -> Chart:
    (found,) = [c for c in CHARTS[name](runs) if key is None or c.key == key]
    assert isinstance(found, Chart)
    return found


def test_a_run_without_rows_has_no_charts(tmp_path: Path) -> None:
    with Results.open(record_run(tmp_path / "empty")) as run:
        assert not [name for name, make in CHARTS.items() if list(make([run]))]


def test_every_chart_of_a_single_run_and_of_two_runs_can_be_drawn(runs: list[Results]) -> None:
    for chosen in (runs[:1], runs):
        for make in CHARTS.values():
            charts = list(make(chosen))
            assert "NaN" not in "".join(map(render, charts))
            axes = [each for each in charts if isinstance(each, Chart)]
            assert all(each.x_title and each.y_title for each in axes)


def test_requests_are_counted_by_due_time_and_stacked_by_outcome(runs) -> None:
    refused, answered = one("requests", runs[:1]).series
    assert [(each.name, each.words, each.look) for each in (refused, answered)] == [
        ("refused", "10 requests", "area"),
        ("answered", "20 requests", "area"),
    ]
    assert refused.points[:2] == answered.points[:2]  # Stacked on the answered requests.
    width = answered.points[1][0] - answered.points[0][0]
    assert sum(y for _, y in answered.points) * width == pytest.approx(20)


def test_overlaid_runs_show_answered_and_unanswered_requests_separately(
    runs: list[Results],
) -> None:
    chart = one("requests", runs)
    assert [(each.name, each.words, each.colour, each.dash) for each in chart.series] == [
        ("r (1), answered", "20 requests", "c0", 0),
        ("r (1), not answered", "10 requests", "c0", 1),
        ("r (2), answered", "20 requests", "c1", 1),
        ("r (2), not answered", "10 requests", "c1", 2),
    ]
    assert labels_of(runs) == ["r (1)", "r (2)"]


def test_runs_of_equal_titles_are_labeled_by_their_names(tmp_path: Path) -> None:
    titles = {"a": "Storm.", "b": "Storm.", "c": "Calm."}
    places = [record_run(tmp_path / each, run=each, title=titles[each]) for each in titles]
    with Results.open(places[0]) as a, Results.open(places[1]) as b, Results.open(places[2]) as c:
        assert labels_of([a, b, c]) == ["a", "b", "Calm"]
        assert labels_of([a, c]) == ["Storm", "Calm"]


def test_phases_are_shaded_and_shocks_marked(runs: list[Results]) -> None:
    chart = one("requests", runs[:1])
    assert [words for _, _, words in chart.bands] == ["warm-up", "drain"]
    assert chart.marks == [(1.0, "restart proxy"), (2.0, "ready")]
    assert chart.x_title == "time since the start, with the warm-up"


def test_an_answered_request_is_a_dot_and_a_refused_request_is_a_ring(runs: list[Results]) -> None:
    answered, refused = one("each", runs[:1]).series
    assert (len(answered.points), answered.look) == (20, "dots")
    assert (refused.points[0], refused.look) == ((2.0, 3.0), "rings")


def test_unanswered_requests_count_as_never_and_end_the_distribution_line(
    runs: list[Results],
) -> None:
    (line,) = one("distribution", runs[:1]).series
    assert "40 % never" in line.words  # the 5 of the warm-up do not count
    assert all(math.isfinite(y) for _, y in line.points)


def test_if_all_requests_are_answered_the_distribution_line_ends_at_the_slowest(tmp_path) -> None:
    rows = [request(client=n, response_seconds=n + 1.0) for n in range(1000)]
    with Results.open(record_run(tmp_path / "run", rows)) as run:
        (line,) = one("distribution", [run]).series
        lines = one("distribution", [run, run]).series
    assert line.points[-1] == (3.0, 1000.0)
    assert {each.words for each in (line, *lines)} == {"p99 990.0 s"}  # Exact, as in tables.


def test_clients_that_are_back_are_drawn_against_the_number_of_clients(runs: list[Results]) -> None:
    chart = one("back", runs[:1])
    assert chart.series[0].words == "15 of 30 clients"
    assert chart.series[0].points[-1][1] == 15.0
    assert chart.limits == [(30.0, "30 clients")]


def test_used_memory_is_drawn_with_its_limit(runs: list[Results]) -> None:
    chart = one("servers", runs[:1], "heap.used")
    assert [each.name for each in chart.series] == ["broker", "proxy"]
    assert chart.limits == [(200e6, "limit 191 MB")]


def test_processor_time_is_drawn_as_used_cores_even_across_a_restart(tmp_path: Path) -> None:
    told = ((0.0, 1.0), (1.0, 3.0), (2.0, 0.5), (3.0, 0.4999999999999999))
    samples = [sample("cpu.seconds", at, value) for at, value in told]
    with Results.open(record_run(tmp_path / "run", ROWS, samples=samples)) as run:
        (line,) = one("servers", [run], "cpu.seconds").series
    assert line.points == [(1.0, 2.0), (2.0, 0.5), (3.0, 0.0)]  # Noise is no restart.


def test_a_gap_between_scrapes_interrupts_the_line(tmp_path: Path) -> None:
    moments = [n / 4 for n in (*range(12), *range(28, 40))]
    samples = [sample("resident", at, 1.0) for at in moments]
    with Results.open(record_run(tmp_path / "run", ROWS, samples=samples)) as run:
        (line,) = one("servers", [run], "resident").series
    assert [x for x, y in line.points if math.isnan(y)] == [4.875]


def test_growing_scrape_intervals_do_not_interrupt_the_line(tmp_path: Path) -> None:
    moments = [1.2**n for n in range(20)]
    samples = [sample("resident", at, 1.0) for at in moments]
    with Results.open(record_run(tmp_path / "run", ROWS, samples=samples)) as run:
        (line,) = one("servers", [run], "resident").series
    assert all(math.isfinite(y) for _, y in line.points)


def test_compared_runs_show_the_memory_of_all_servers_over_idle(runs: list[Results]) -> None:
    chart = one("servers", runs, "over-idle")
    assert [max(y for _, y in each.points) for each in chart.series] == [100e6, 100e6]


def test_a_sweep_chart_shows_medians_and_ranges() -> None:
    lines = [("fifo", [(10.0, [3.0, 1.0, 2.0]), (20.0, []), (5.0, [1.0])])]
    (line,) = sweep_chart("back", "limit", lines).series
    assert line.points == [(5.0, 1.0), (10.0, 2.0)]
    assert line.between == [(5.0, 1.0, 1.0), (10.0, 1.0, 3.0)]
