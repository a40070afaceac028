"""The report and the picture show each healthy listing beside the time of the stuck peers."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loadgen.errors import UsageError
from loadgen.report.page import render_report
from loadgen.report.stuck.dots import dot_charts, request_dots, stuck_span
from loadgen.report.stuck.pictures import draw_stuck_pictures
from loadgen.report.stuck.silent_pictures import draw_silent_pictures
from loadgen.results.reading import load_run
from loadgen.scenarios.produce_beside_silent.scenario import SilentScenario
from loadgen.stuck_peers.summary import PeerEnd
from server.configuration.flow import HIGH_WATER_MARK_KEY, PAUSE_KEY
from tests.support.runs.run_directories import edit_json, write_three_runs
from tests.support.runs.stuck_runs import (
    ASKED,
    GONE,
    SCENARIO,
    peer,
    report,
    row,
    write_stuck_run,
    write_stuck_runs,
)

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.results.summary import Run


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    return [load_run(directory) for directory in write_stuck_runs(tmp_path)]


def test_each_listing_is_a_dot_of_its_kind(runs: list[Run]) -> None:
    dots = request_dots(runs[0])
    assert {kind: len(points) for kind, points in dots.items()} == {
        "answered": 50,
        "refused": 30,
        "other": 0,
    }
    assert dots["refused"][0] == pytest.approx((1.1, 3.0))


def test_what_was_neither_answered_nor_refused_is_a_kind_of_its_own(tmp_path: Path) -> None:
    found = report([row(0, 1.0, 2.0, "timeout"), row(0, 2.0, 2.1)], (peer(),))
    run = load_run(write_stuck_run(tmp_path / "odd", found))
    assert len(request_dots(run)["other"]) == 1
    assert "1 neither" in render_report([run])


def test_long_runs_are_thinned_and_keep_their_slowest(tmp_path: Path) -> None:
    rows = [row(0, n * 0.001, n * 0.001 + 0.002) for n in range(9_000)]
    rows[4_321] = row(0, 4.321, 9.0)
    dots = request_dots(load_run(write_stuck_run(tmp_path / "long", report(rows, (peer(),)))))
    assert len(dots["answered"]) <= 1_600
    assert max(seconds for _, seconds in dots["answered"]) == pytest.approx(4.679)


def test_all_charts_share_their_axes(runs: list[Run]) -> None:
    first, second = dot_charts(list(enumerate(runs)))
    assert (first.x, first.y) == (second.x, second.y)
    assert first.y.high >= 3.0


def test_the_shade_is_the_time_of_the_peers(runs: list[Run], tmp_path: Path) -> None:
    assert stuck_span(runs[0], 10) == (ASKED, GONE)
    assert stuck_span(runs[0], 5) == (ASKED, 5)
    alone = load_run(write_stuck_run(tmp_path / "alone", report([row(0, 1.0, 1.1)])))
    assert stuck_span(alone, 10) is None
    assert 'class="shade"' not in render_report([alone])


def test_a_page_of_runs_beside_peers_is_about_them(runs: list[Run]) -> None:
    page = render_report(runs)
    assert "<h1>Beside clients that read nothing</h1>" in page
    assert page.count('<figure class="panel dots') == 2
    assert page.count('<path class="dot refused"') == 1
    assert '<div class="big">0 of 60</div>' in page
    assert "“As in Pulsar” answered 0 of 60 listings, “Floodgate” answered 60 of 60" in page
    assert "a client requests 64 listings at once and reads nothing for 6.00 s" in page
    assert "at 0 the first listing is due" in page


def test_storms_come_first_and_keep_their_letters(runs: list[Run], tmp_path: Path) -> None:
    # Given runs of both scenarios in no order
    storms = [load_run(each) for each in write_three_runs(tmp_path / "storms", clients=40)]
    # When
    page = render_report([runs[0], *storms, runs[1]])
    # Then
    letters = dict(re.findall(r'class="card [^"]*"><h3><span[^>]*>(\w)</span> ([^<]+)<', page))
    assert letters == {
        "A": "Limits off",
        "B": "Limits on, profile pulsar",
        "C": "Limits on, profile floodgate",
        "D": "As in Pulsar",
        "E": "Floodgate",
    }
    assert page.count("<table><thead>") == 2
    assert "at 0 all clients ask" in page
    assert "<h1>Topic-list storm</h1>" in page


def test_closed_peers_are_told_in_words(tmp_path: Path) -> None:
    found = report([row(0, 2.0, 2.1)], (peer(0, 4.05, PeerEnd.CLOSED),), connections_lost=1)
    page = render_report([load_run(write_stuck_run(tmp_path / "closed", found))])
    assert "The server closed 1 after 3.00 s" in page
    assert "Healthy clients lost 1 connection." in page


SILENT = {
    "producers": 2,
    "consumers": 1,
    "messages_wanted": 400_000,
    "messages_sent": 22_900,
    "producers_held_up": 2,
    "producers_closed": 0,
    "verdict": "Nobody was harmed <at all>.",
}


def silent_run(directory: Path) -> Run:
    """Return a run beside silent clients of a broker that pauses them, and that was watched."""
    write_stuck_run(directory, report([row(0, 1.0, 1.1), row(0, 2.0, 2.1)], (peer(),)))
    settings = {PAUSE_KEY: "true", HIGH_WATER_MARK_KEY: "65536"}
    memory = {
        "heap": None,
        "direct": None,
        "outbound_pending_peak_bytes": 250_000,
        "resident_idle_bytes": 100_000_000,
        "resident_peak_bytes": 125_165_824,
        "resident_over_idle_bytes": 25_165_824,
        "resident_over_first_scrape_bytes": 25_165_824,
        "heap_timeouts": 0,
        "direct_timeouts": 0,
    }
    edit_json(
        directory / "summary.json",
        scenario="produce-beside-silent",
        silent=SILENT,
        servers={"broker": {"version": "x", "settings": settings}},
        processes={"broker": memory},
    )
    wanted = SilentScenario(service_url="pulsar://h:1", namespaces=SCENARIO.namespaces)
    edit_json(directory / "run.json", scenario=wanted.model_dump(mode="json"))
    metrics = {
        "at_seconds": [0.0, 2.0],
        "process": ["broker", "broker"],
        "metric": ["floodgate_outbound_pending_bytes"] * 2,
        "value": [0.0, 250_000.0],
    }
    pq.write_table(pa.table(metrics), directory / "server-metrics.parquet")
    return load_run(directory)


def test_a_page_of_runs_beside_silent_clients_speaks_of_messages(tmp_path: Path) -> None:
    # When
    page = render_report([silent_run(tmp_path / "silent")])
    # Then
    assert "<h1>Publishing beside clients that do not read</h1>" in page
    assert "Every message of the producers that read" in page
    assert "took 22,900 of 400,000 messages and needed 24 MB over idle." in page
    assert "<dt>of them held up</dt><dd>2 of 2</dd>" in page
    assert "Nobody was harmed &lt;at all&gt;." in page
    assert "2 silent producers and 2 silent consumers read nothing" in page
    assert "listings due" not in page


def test_what_is_unread_is_charted_with_the_marks_at_which_silent_clients_are_paused(
    tmp_path: Path,
) -> None:
    page = render_report([silent_run(tmp_path / "silent")])
    assert page.count('class="limit-label"') == 1
    assert "limit 0.2 MB" in page


def test_labels_are_escaped(tmp_path: Path) -> None:
    directory = write_stuck_run(tmp_path / "evil")
    edit_json(directory / "summary.json", label="<img src=x>")
    assert "<img" not in render_report([load_run(directory)])


def test_pictures_are_drawn_for_light_and_dark_pages(runs: list[Run], tmp_path: Path) -> None:
    paths = draw_stuck_pictures(runs, tmp_path / "images")
    assert [path.name for path in paths] == ["stuck.png", "stuck-dark.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


def test_runs_beside_silent_clients_have_a_picture_of_their_own(tmp_path: Path) -> None:
    found = [silent_run(tmp_path / name) for name in ("one", "other")]
    paths = draw_silent_pictures(found, tmp_path / "images")
    assert [path.name for path in paths] == ["beside-silent.png", "beside-silent-dark.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


def test_a_picture_beside_silent_clients_takes_no_other_runs(
    runs: list[Run], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="is no run of produce-beside-silent: name only such"):
        draw_silent_pictures(runs, tmp_path)
    with pytest.raises(UsageError, match="a picture takes 3 runs, not 4"):
        draw_silent_pictures([silent_run(tmp_path / "one")] * 4, tmp_path)


def test_a_picture_without_refusals_is_drawn_too(runs: list[Run], tmp_path: Path) -> None:
    alone = replace(runs[1], summary=replace(runs[1].summary, label="Alone"))
    assert draw_stuck_pictures([alone], tmp_path)
