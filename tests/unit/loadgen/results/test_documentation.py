"""docs/reports.md and docs/measuring.md name every column, query and measure; their SQL runs."""

import json
import re
from pathlib import Path

import pytest

from loadgen.places.directory import MADE_OF_A_RUN
from loadgen.places.metrics import RunCollector
from loadgen.results.asking import run_sql
from loadgen.results.expectations import MEASURES, parse_expectation
from loadgen.results.questions import QUERIES
from loadgen.results.tables import TABLES
from loadgen.results.vocabulary import FIGURES

DOCS = Path(__file__).resolve().parents[4] / "docs"
PAGE = (DOCS / "reports.md").read_text(encoding="utf-8")
MEASURING = (DOCS / "measuring.md").read_text(encoding="utf-8")


def words(heading: str, page: str = PAGE) -> list[str]:
    """Return the code words in the first column of a table."""
    (found,) = re.findall(rf"^\| {heading} \|.*\n\|---.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    return re.findall(r"`([^`]+)`", " ".join(row.split("|")[1] for row in found.splitlines()))


@pytest.mark.parametrize("name", TABLES)
def test_each_column_of_a_table_is_documented(name: str) -> None:
    assert set(words(f"column of `{name}`")) == set(TABLES[name].names)


def test_each_shipped_query_is_documented() -> None:
    assert sorted(words("question")) == sorted(QUERIES)


def test_each_file_made_of_a_run_is_documented() -> None:
    files = re.findall(r"^\| `([\w.]+)` \|", PAGE, re.MULTILINE)
    assert set(MADE_OF_A_RUN) <= set(files)


def test_each_exported_metric_of_a_run_is_documented() -> None:
    names = {each.name for each in RunCollector("run", "scenario").collect()}
    assert {each.removesuffix("_total") for each in words("metric")} == names


def test_each_figure_of_a_server_is_documented() -> None:
    (row,) = re.findall(r"^\| `heap.used`.*$", PAGE, re.MULTILINE)
    told = set(words("figure")) | {each.replace("heap", "direct") for each in words("figure")}
    assert row.count("`direct....`") == 1
    assert set(FIGURES.values()) <= told


def test_the_sql_examples_of_the_page_run(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"schema_version": 2, "run": "r", "tasks": []}))
    (block,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    asked = [each for each in block.split(";") if each.strip()]
    assert len(asked) == 3
    for each in asked:
        run_sql([tmp_path], each)


def test_each_measure_of_expectations_is_documented() -> None:
    (table,) = re.findall(r"^\| subject \|.*\n\|---.*\n((?:\|.*\n)+)", MEASURING, re.MULTILINE)
    codes = re.findall(r"`([\w.]+)`", table)
    told = {each.replace("OUTCOME", word) for each in codes for word in codes}
    names = {measure.name for subject in MEASURES for measure in MEASURES[subject]}
    assert names <= told | {each.replace("direct", "heap") for each in told}
    assert set(MEASURES) <= set(re.findall(r"`(\w+)`", MEASURING))


def test_each_documented_expectation_is_valid() -> None:
    for text in re.findall(r"`([\w.{}=-]+ (?:[<>=!]=?) [\w.%]+)`", MEASURING):
        parse_expectation(text)
