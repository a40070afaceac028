"""Sides are run alternately under the compared names and labels."""

from pathlib import Path

import pytest

from loadgen.documents.reading import parse_document
from loadgen.errors import UsageError
from loadgen.places.options import Place, RunOptions
from loadgen.studies.repeats import Side, beside, compared, profiles, run_sides
from tests.support.runs.recorded_run import request
from tests.unit.loadgen.studies.fake_experiment import FakeExperiment

DOCUMENT = parse_document("{name: mine, clients: [{name: steady, do: list, count: 1}]}")


def test_both_profiles_of_a_document_run_alternately_and_are_compared(tmp_path: Path) -> None:
    run = FakeExperiment()
    finished = run_sides(profiles(DOCUMENT, RunOptions(out=tmp_path)), 2, run=run)
    ran = [(how.name, document.servers.profile) for document, how in run.run]
    assert ran == [
        ("mine-floodgate-1", "floodgate"),
        ("mine-pulsar-1", "pulsar"),
        ("mine-floodgate-2", "floodgate"),
        ("mine-pulsar-2", "pulsar"),
    ]
    assert [each.directory.name for each in finished] == sorted(name for name, _ in ran)
    assert (finished[0].directory / "junit.xml").is_file()
    comparison = compared([each.directory for each in finished])
    assert list(comparison.groups) == ["Floodgate", "As in Pulsar"]


def test_a_comparison_with_a_real_pulsar_differs_only_in_the_address(tmp_path: Path) -> None:
    ours, theirs = beside(
        DOCUMENT,
        RunOptions(out=tmp_path, tasks=1),
        "pulsar://127.0.0.1:6650",
        "http://127.0.0.1:80",
    )
    assert (ours.options.service_url, ours.options.label) == ("", "Floodgate")
    assert theirs.options.service_url == "pulsar://127.0.0.1:6650"
    assert theirs.options.admin_urls == {"broker": "http://127.0.0.1:80"}
    assert (ours.document, ours.options.tasks) == (theirs.document, theirs.options.tasks)


def test_repeated_runs_share_a_label_and_a_single_run_has_the_plain_name(tmp_path: Path) -> None:
    run = FakeExperiment()
    for repeats in (2, 1):
        run_sides([Side(DOCUMENT, RunOptions(out=tmp_path))], repeats, run=run)
    assert [how.name for _, how in run.run] == ["mine-1", "mine-2", "mine"]
    assert [how.label for _, how in run.run] == ["mine", "mine", ""]
    with pytest.raises(UsageError, match="--repeats 0"):
        run_sides([], 0)


def test_repeats_in_virtual_time_have_different_seeds_equal_on_both_sides(tmp_path) -> None:
    run = FakeExperiment()
    document = DOCUMENT.model_copy(update={"seed": 7})
    places: tuple[Place, ...] = ("virtual", "processes")
    for place in places:
        both = profiles(document, RunOptions(out=tmp_path / place, place=place))
        run_sides(both, 2, run=run)
    assert [document.seed for document, _ in run.run] == [7, 7, 8, 8, 7, 7, 7, 7]


def test_an_interrupted_run_ends_the_repeats(tmp_path: Path) -> None:
    run = FakeExperiment(lambda document: [request()], interrupted=True)
    finished = run_sides([Side(DOCUMENT, RunOptions(out=tmp_path))], 3, run=run)
    assert len(finished) == len(run.run) == 1


def test_comparing_a_run_with_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is named twice"):
        compared([tmp_path, tmp_path / ".." / tmp_path.name])
