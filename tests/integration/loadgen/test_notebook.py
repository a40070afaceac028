"""The notebook of examples/ does what it says; its functions refuse what they cannot do."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from loadgen import spark
from loadgen.errors import UsageError
from loadgen.spark.session import SparkSettings, spark_session
from tests.support.runs.recorded_run import record_run, request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NOTEBOOK = Path(__file__).resolve().parents[3] / "examples" / "spark_notebook.ipynb"
SHORT_LIVED = (("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),)


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    with spark_session(SparkSettings("notebook", cores=2, conf=SHORT_LIVED)) as session:
        yield session


@pytest.mark.usefixtures("session")
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given
    monkeypatch.chdir(tmp_path)
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}

    async def kernel() -> None:
        """Run the cells within a loop, as a kernel does."""
        for cell in cells:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), NOTEBOOK.name, "exec"), names)

    # When
    asyncio.run(kernel())
    # Then
    assert names["largest"].count() == 50
    assert (names["finished"].verdict.word, names["requests"].count()) == ("passed", 40)
    in_spark = {tuple(row) for row in names["by_namespace"].collect()}
    assert in_spark == set(names["in_duckdb"])
    assert (tmp_path / "out" / "notebook" / "first" / "index.html").is_file()


def test_tables_of_several_runs_are_one(session: SparkSession, tmp_path: Path) -> None:
    runs = [record_run(tmp_path / name, [request(run=name)], run=name) for name in "ab"]
    assert sorted(row.run for row in spark.requests(session, *runs).collect()) == ["a", "b"]
    assert spark.samples(session, runs[0]).columns[:3] == ["run", "process", "at"]


def test_a_column_that_an_older_run_lacks_is_null(session: SparkSession, tmp_path: Path) -> None:
    runs = [record_run(tmp_path / name, [request(run=name)], run=name) for name in "ab"]
    (part,) = (runs[0] / "requests").iterdir()
    pq.write_table(pq.read_table(part).drop_columns(["topics_hash"]), part)
    found = {row.run: row.topics_hash for row in spark.requests(session, *runs).collect()}
    assert found == {"a": None, "b": "h"}


def test_a_folder_that_is_no_run_is_refused(session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no run\.json"):
        spark.events(session, tmp_path)


@pytest.mark.parametrize(
    "function", [spark.topics, spark.requests, lambda it: spark.run(it, "storm")]
)
def test_a_session_of_spark_connect_is_refused(function: Any) -> None:
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(UsageError, match="this session is one of Spark Connect"):
        function(remote)
