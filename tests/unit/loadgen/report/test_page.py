"""The report is one page, made from run directories alone, that needs no network."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from loadgen.commands.report import report
from loadgen.report.page import LARGEST_REPORT_BYTES, flatten, render_report, write_report
from loadgen.report.panels import time_rows
from loadgen.results.checks import CheckResult
from loadgen.results.latency import parse_latency, percentiles
from loadgen.results.reading import RunDirectoryError, load_run, plain_metric_name
from loadgen.results.summary import Requests
from tests.support.runs.run_directories import MB, edit_json, forget_own_figures, write_three_runs

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.results.summary import Run


@pytest.fixture(scope="module")
def run_directories(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_three_runs(tmp_path_factory.mktemp("runs"), clients=200)


@pytest.fixture
def runs(run_directories: list[Path]) -> list[Run]:
    return [load_run(directory) for directory in run_directories]


@pytest.fixture
def broken(run_directories: list[Path], tmp_path: Path) -> Path:
    """A copy of one run directory, to be broken."""
    return shutil.copytree(run_directories[0], tmp_path / "run")


def test_page_needs_no_network(runs: list[Run]) -> None:
    page = render_report(runs)
    assert not re.search(r"https?:|@import|url\(|<link|src=|href=", page)


def test_card_and_chart_name_the_same_median_of_an_even_number_of_requests(runs: list[Run]) -> None:
    # Given
    requests = Requests((0.0, 0.0), (1.0, 3.0), ("answered", "answered"))
    summary = replace(runs[0].summary, latency_seconds=parse_latency(percentiles((1.0, 3.0))))
    # When
    page = render_report([replace(runs[0], requests=requests, summary=summary)])
    # Then
    assert "<dt>median</dt><dd>1.00 s</dd>" in page
    assert 'data-summary="median 1.00 s"' in page


def test_page_is_small(runs: list[Run], tmp_path: Path) -> None:
    write_report(tmp_path / "new" / "report.html", runs)
    assert (tmp_path / "new" / "report.html").stat().st_size < LARGEST_REPORT_BYTES


def test_every_chart_over_time_has_one_line_per_accounting_run(runs: list[Run]) -> None:
    page = render_report(runs)
    charts = {
        key: len(re.findall("<polyline", body))
        for key, body in re.findall(r'data-panel="([^"]+)">(.*?)</figure>', page, re.DOTALL)
    }
    assert charts["proxy-pending"] == charts["broker-resident"] == 3
    assert charts["proxy-heap"] == charts["broker-direct"] == charts["broker-heap-queue"] == 2
    assert charts["clients-answered"] == charts["latency-percentiles"] == 3


def test_limits_are_lines_and_runs_without_limits_say_so(runs: list[Run]) -> None:
    page = render_report(runs)
    assert "limit 50 MB" in page
    assert ">no limit</output>" in page


def test_all_charts_over_time_share_one_axis(runs: list[Run]) -> None:
    page = render_report(runs)
    found = re.search(r'id="series">(.*?)</script>', page)
    assert found is not None
    series = json.loads(found[1])
    axes = {(p["low"], p["high"]) for p in series.values() if p["axis"] == "time"}
    assert len(axes) == 1


def test_names_are_escaped(broken: Path) -> None:
    # Given a run whose label and reasons would be markup
    evil = "</script><img src=x onerror=alert(1)>"
    edit_json(broken / "summary.json", label=evil, refused={evil: 3}, answered=197)
    edit_json(broken / "run.json", scenario={"clients": 200, "pattern": evil}, label=evil)

    # When the page is made
    page = render_report([load_run(broken)], title=evil, checks=[CheckResult("x", False, evil)])

    # Then it is text everywhere
    assert "<img" not in page
    assert page.count("</script>") == 2


def test_checks_are_listed_with_their_verdict(runs: list[Run]) -> None:
    checks = [CheckResult("a", True, "This held."), CheckResult("b", False, "This did not.")]
    page = render_report(runs, checks=checks)
    assert "1 of 2 failed" in page
    assert "This did not." in page


def test_run_without_watched_servers_is_reported(broken: Path) -> None:
    # Given a run against a cluster whose metrics nobody could read
    edit_json(broken / "summary.json", processes={})
    (broken / "server-metrics.parquet").unlink()

    # When / Then
    page = render_report([load_run(broken)])
    assert "The servers&#x27; own figures were not read" in page
    assert 'data-panel="clients-answered"' in page


def test_what_a_pulsar_does_not_tell_is_not_measured(runs: list[Run], broken: Path) -> None:
    # Given a run against a Pulsar whose process id is not known, beside one of Floodgate
    forget_own_figures(broken)
    # When
    page = render_report([load_run(broken), runs[2]])
    # Then
    card = r'<div class="big">\d+ MB</div><p class="of">of memory over idle \(highest scrape\), '
    assert re.search(card, page)
    assert ">not measured</output>" in page
    assert ">highest scrape " in page
    assert "Over their first scrape the processes needed up to " in page
    assert page.count("Answers that clients had not read yet") == 1


def test_where_there_is_no_memory_as_in_virtual_time_the_card_leads_with_what_clients_got(
    broken: Path,
) -> None:
    # Given
    summary = json.loads((broken / "summary.json").read_text())
    for process in summary["processes"].values():
        process |= dict.fromkeys((key for key in process if key.startswith("resident")), None)
    edit_json(broken / "summary.json", processes=summary["processes"])
    # When
    page = render_report([load_run(broken)])
    # Then
    assert re.search(r'<div class="big">[\d,]+ of [\d,]+</div><p class="of">answered</p>', page)
    assert "virtual time has no processes" in page


def test_a_peak_between_two_scrapes_is_on_the_axis(broken: Path) -> None:
    # Given a run whose scrapes met little of what its proxy held
    processes = json.loads((broken / "summary.json").read_text())["processes"]
    processes["proxy"]["outbound_pending_peak_bytes"] = 2_000 * MB
    edit_json(broken / "summary.json", processes=processes)
    # When
    rows = time_rows([load_run(broken)])
    # Then
    (panel,) = [p for row in rows for p in row.panels if p.key == "proxy-pending"]
    assert panel.y.high >= 2_000 * MB


def test_late_generator_is_explained(broken: Path) -> None:
    edit_json(broken / "summary.json", generator_limited=True, start_error_seconds_max=0.073)
    page = render_report([load_run(broken)])
    assert "The load generator began 73 ms late (over 50 ms)" in page
    assert '<td class="bad">up to 73 ms</td>' in page
    assert '<dd class="bad">up to 73 ms</dd>' in page


def test_a_run_whose_generator_was_the_limit_is_no_measurement_and_says_so_boldly(
    broken: Path,
) -> None:
    edit_json(broken / "summary.json", generator_limited=True, start_error_seconds_max=0.073)
    page = render_report([load_run(broken)])
    strong = "<strong>Not valid: the generator was the limit (exit code 98).</strong>"
    assert strong in page.partition('class="cards"')[0]


def test_a_run_without_thresholds_is_valid_and_has_not_passed_anything(broken: Path) -> None:
    page = render_report([load_run(broken)])
    assert "✓ a valid run: all 4 hold" in page
    assert "passed:" not in page


def test_thresholds_are_listed_with_what_was_found(broken: Path) -> None:
    # Given
    missed = {"threshold": "list.response.p99 < 2s", "passed": False, "value": 9.0, "found": "9 s"}
    edit_json(broken / "summary.json", thresholds=[missed])
    # When
    page = render_report([load_run(broken)])
    # Then
    assert "✗</span>list.response.p99 &lt; 2s: 9 s</li>" in page
    assert "Thresholds failed (exit code 99)" in page


def test_interrupted_run_says_so(broken: Path) -> None:
    edit_json(broken / "summary.json", interrupted=True, answered=150)
    page = render_report([load_run(broken)])
    assert "these are the 150 requests of 200 clients that had ended by then" in page


def test_run_without_any_answer_is_reported(broken: Path) -> None:
    edit_json(broken / "summary.json", answered=0, timeout=200, latency_seconds={})
    page = render_report([load_run(broken)])
    assert "no answers" in page


@pytest.mark.parametrize("name", ["run.json", "summary.json", "requests.parquet"])
def test_missing_file_is_named(broken: Path, name: str) -> None:
    (broken / name).unlink()
    with pytest.raises(RunDirectoryError, match=re.escape(name)):
        load_run(broken)


@pytest.mark.parametrize("name", ["summary.json", "requests.parquet", "server-metrics.parquet"])
def test_garbled_file_is_named(broken: Path, name: str) -> None:
    (broken / name).write_bytes(b"not what it should be")
    with pytest.raises(RunDirectoryError, match=re.escape(name)):
        load_run(broken)


def test_summary_without_a_field_is_refused(broken: Path) -> None:
    edit_json(broken / "summary.json", answered=None)
    with pytest.raises(RunDirectoryError, match="answered"):
        load_run(broken)


def test_other_schema_version_is_refused(broken: Path) -> None:
    edit_json(broken / "summary.json", schema_version=2)
    with pytest.raises(RunDirectoryError, match="schema_version 2"):
        load_run(broken)


def test_missing_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="not a run directory"):
        load_run(tmp_path / "nothing")


@pytest.mark.parametrize(
    "metric",
    [
        "pulsar_broker_topic_list_heap_queue_size",
        'pulsar_proxy_topic_list_heap_queue_size{cluster="c"}',
        "heap_queue_size",
    ],
)
def test_metric_has_one_name_on_broker_and_proxy(metric: str) -> None:
    assert plain_metric_name(metric) == "heap_queue_size"


def test_labels_other_than_cluster_stay() -> None:
    name = plain_metric_name('floodgate_x_bytes{cluster="c",type="heap"}')
    assert name == 'floodgate_x_bytes{type="heap"}'


def test_long_lists_are_cut() -> None:
    pairs = dict(flatten({"scenario": {"namespaces": [1, 2, 3, 4, 5]}, "name": "x"}))
    assert pairs == {"scenario.namespaces": "1, 2, 3, … (5 in all)", "name": "x"}


def test_the_report_for_programs_is_its_path_and_the_summaries(
    broken: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # When
    report([broken], out=tmp_path / "r.html", as_json=True)
    # Then
    told = json.loads(capsys.readouterr().out)
    assert told["report"] == str(tmp_path / "r.html")
    assert told["runs"] == [json.loads((broken / "summary.json").read_text())]
    assert (tmp_path / "r.html").exists()


def test_books_that_do_not_balance_are_told_at_the_top(broken: Path) -> None:
    # Given
    edit_json(broken / "summary.json", held=["5 MB of heap memory in the broker"])
    # When
    page = render_report([load_run(broken)])
    # Then
    assert "Memory was not given back (exit code 97)." in page
    assert "still accounted for are 5 MB of heap memory in the broker." in page
