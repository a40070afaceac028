"""Runs whose answers list nothing are told in their scenario's words."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from loadgen.errors import UsageError
from loadgen.report.figures import figure_rows
from loadgen.report.hidden_effect import hidden_effect
from loadgen.report.page import render_report
from loadgen.report.tables import summary_tables
from loadgen.results.reading import load_run
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.lookups.scenario import LookupsScenario
from tests.support.runs.run_directories import STORMS, edit_json, write_run

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.results.summary import Run

MB = 1024 * 1024


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run of lookups whose answers left its servers' memory alone."""
    directory = write_run(tmp_path / "lookups", STORMS[2], clients=10)
    scenario = LookupsScenario(
        service_url="pulsar://127.0.0.1:6650",
        namespaces=(NamespaceExpectation(name="public/default"),),
    )
    edit_json(directory / "run.json", scenario=scenario.model_dump(mode="json"))
    processes = json.loads((directory / "summary.json").read_text())["processes"]
    for process in processes.values():
        process["outbound_pending_peak_bytes"] = 0
        for kind in ("heap", "direct"):
            process[kind]["high_water_bytes"] = MB
    changes = {"processes": processes, "refused": {}, "topics_per_answer": None}
    edit_json(directory / "summary.json", scenario="lookups", **changes)
    edit_json(directory / "summary.json", bytes_per_answer={"min": 39, "max": 41})
    return load_run(directory)


def test_the_row_of_topics_is_left_out(run: Run) -> None:
    assert [row.measure for row in figure_rows([run.summary]) if row.group == "Each answer"] == [
        "bytes"
    ]


def test_no_advice_is_given_on_limits_of_lists(run: Run) -> None:
    assert hidden_effect(run.summary) is None
    assert hidden_effect(replace(run.summary, scenario="storm")) is not None


def test_the_page_speaks_of_lookups(run: Run) -> None:
    page = render_report([run])
    assert "<h1>Topic lookups</h1>" in page
    assert "1 run of lookups." in page
    assert "10 clients, 10 lookups each a second, for 10.0 s" in page
    assert "at 0 the first lookup is due" in page
    assert "got an answer" in page
    for words in ("torm", "topic list;", "asks for all topics", "do not read"):
        assert words not in page.partition("<h2>All figures")[0], words


def test_a_storm_and_lookups_do_not_compare(run: Run, tmp_path: Path) -> None:
    # Given
    storm = load_run(write_run(tmp_path / "storm", STORMS[1], clients=10))
    # When
    page = render_report([run, storm])
    # Then
    assert "1 run of a topic-list storm, 1 run of lookups." in page
    assert "each asks for all topics" in page
    assert "10 lookups each a second" in page
    assert len(summary_tables([run.summary, storm.summary])) == 2


def test_an_unknown_scenario_is_refused(run: Run) -> None:
    with pytest.raises(UsageError, match="there is no scenario 'produce'"):
        render_report([replace(run, summary=replace(run.summary, scenario="produce"))])
