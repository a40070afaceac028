"""Everything that is made of a run's data can be made again, with the same bytes."""

from __future__ import annotations

import csv
import json
import shutil
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from loadgen.commands.report import report
from loadgen.errors import ExitCode
from loadgen.report.files.derived import DERIVED_NAMES, write_derived
from loadgen.results.reading import load_document
from loadgen.results.verdict import verdict_of
from tests.support.runs.run_directories import STORMS, edit_json, write_run
from tests.support.runs.stuck_runs import write_stuck_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", STORMS[1], clients=40)


def derived(directory: Path) -> dict[str, bytes]:
    files = [directory / name for name in DERIVED_NAMES] + sorted((directory / "hdr").iterdir())
    return {path.name: path.read_bytes() for path in files}


def cases(directory: Path) -> dict[str, bool]:
    """Name of each test case of junit.xml, and whether it passed."""
    root = ET.parse(directory / "junit.xml").getroot()
    return {case.attrib["name"]: case.find("failure") is None for case in root.iter("testcase")}


@pytest.mark.parametrize("kind", ["storm", "stuck"])
def test_deleted_files_come_back_with_the_same_bytes(tmp_path: Path, kind: str) -> None:
    # Given
    run = tmp_path / "run"
    if kind == "storm":
        write_run(run, STORMS[1], clients=40)
    else:
        write_stuck_run(run)
    write_derived(run)
    before = derived(run)
    assert "list-response.hlog" in before
    for name in DERIVED_NAMES:
        (run / name).unlink()
    shutil.rmtree(run / "hdr")
    # When
    report([run])
    # Then
    assert derived(run) == before


def test_a_page_under_its_old_name_leads_to_the_new_one(directory: Path) -> None:
    report([directory])
    assert "url=index.html" in (directory / "report.html").read_text()


def test_several_runs_on_a_page_leave_the_first_ones_own_page_alone(directory: Path) -> None:
    report([directory, directory])
    assert (directory / "report.html").stat().st_size > 10_000
    assert not (directory / "index.html").exists()


@pytest.mark.parametrize(
    ("changes", "failed", "code"),
    [
        ({}, [], ExitCode.PASSED),
        ({"wrong": 1}, ["answers"], ExitCode.CORRECTNESS),
        ({"interrupted": True}, ["end"], ExitCode.INTERRUPTED),
        ({"generator_limited": True}, ["generator"], ExitCode.GENERATOR_LIMITED),
        ({"interrupted": True, "wrong": 1}, ["answers", "end"], ExitCode.CORRECTNESS),
    ],
)
def test_each_failure_is_a_failed_test_case_and_in_the_heading(
    directory: Path, changes: dict[str, object], failed: list[str], code: ExitCode
) -> None:
    # Given
    edit_json(directory / "summary.json", **changes)
    # When
    write_derived(directory)
    # Then
    assert [name for name, passed in cases(directory).items() if not passed] == failed
    heading = (directory / "README.md").read_text().splitlines()[0]
    assert heading.startswith("# ✗" if code else "# ✓")
    assert verdict_of(load_document(directory)).exit_code is code


def test_a_kinds_own_checks_are_test_cases(directory: Path) -> None:
    checks = [{"name": "memory", "passed": False, "sentence": "Too much."}]
    edit_json(directory / "summary.json", own={"checks": checks})
    write_derived(directory)
    assert cases(directory)["memory"] is False


def test_text_of_a_run_breaks_no_table_and_no_xml(directory: Path) -> None:
    # Given
    evil = "a|b\x00\n<i>`*</testcase>"
    edit_json(directory / "summary.json", label=evil, name=evil, refused={evil: 3})
    # When
    write_derived(directory)
    # Then
    assert cases(directory)
    rows = [line for line in (directory / "README.md").read_text().splitlines() if "a\\|b" in line]
    assert [line.count("|") - line.count("\\|") for line in rows if line.startswith("|")] == [4]


def test_every_figure_of_the_summary_is_a_line(directory: Path) -> None:
    # When
    write_derived(directory)
    # Then
    with (directory / "summary.csv").open() as file:
        figures = {row["figure"]: row["value"] for row in csv.DictReader(file)}
    summary = json.loads((directory / "summary.json").read_text())
    assert figures["latency_seconds.p99"] == str(summary["latency_seconds"]["p99"])
    assert figures["processes.proxy.direct.limit_bytes"] == "52428800"
