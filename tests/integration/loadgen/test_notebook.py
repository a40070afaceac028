"""The notebook of examples/ works; its functions refuse impossible input."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from loadgen import spark
from loadgen.engine.rows import Outcome
from loadgen.errors import UsageError
from tests.support.peers.stand_in_broker import StandInBroker, running, topic_names
from tests.support.runs.recorded_run import record_run, request
from tests.support.runs.shared_spark import SharedSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from loadgen.engine.totals import Totals

pytestmark = pytest.mark.spark

NOTEBOOK = Path(__file__).resolve().parents[3] / "examples" / "spark_notebook.ipynb"
NAMES = {"load/ns": topic_names("load/ns", 100, 100)}


@pytest.fixture
def session(shared_spark: SharedSpark) -> SparkSession:
    return shared_spark.session()


@pytest.mark.usefixtures("session")
def test_all_cells_of_the_notebook_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}

    async def kernel() -> None:
        """Run the cells within a loop, as a kernel does."""
        for cell in cells:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), NOTEBOOK.name, "exec"), names)

    asyncio.run(kernel())
    assert names["largest"].count() == 50
    # On a busy machine the generator may be the limit, which a verdict says.
    assert names["finished"].verdict.word in {"passed", "not to be relied on"}
    assert names["requests"].count() == 40
    in_spark = {tuple(row) for row in names["by_namespace"].collect()}
    assert in_spark == set(names["in_duckdb"])
    assert (tmp_path / "out" / "notebook" / "first" / "index.html").is_file()


def test_tables_of_several_runs_are_combined(session: SparkSession, tmp_path: Path) -> None:
    names = ["a", "on-local[2]", "all*{1,2}"]
    runs = [record_run(tmp_path / name, [request(run=name)], run=name) for name in names]
    rows = spark.requests(session, *runs).collect()
    assert sorted(row.run for row in rows) == sorted(names)
    assert spark.samples(session, runs[0]).columns[:3] == ["run", "process", "at"]


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupt_ends_a_run_with_its_rows_and_a_second_aborts(session, tmp_path) -> None:
    steady = {"name": "steady", "do": "list", "count": 2, "every": "100ms"}
    document = {
        "name": "long",
        "topics": {"of": list(NAMES)},
        "clients": [steady],
        "phases": {"measure": "1h", "drain": "1h"},
    }
    # Its drain would wait an hour for unread lists.
    silent = document | {"clients": [steady | {"name": "silent", "read": {"never": True}}]}
    interrupted = threading.Event()
    context = session.sparkContext

    def of_spark(*_: object) -> None:
        """Cancel all jobs and interrupt, like the handler installed with a Spark session."""
        context.cancelAllJobs()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, of_spark)

    def once(totals: Totals) -> None:
        if totals.of(Outcome.ANSWERED) and not interrupted.is_set():
            interrupted.set()
            os.kill(os.getpid(), signal.SIGINT)

    def always(totals: Totals) -> None:
        if totals.started:
            os.kill(os.getpid(), signal.SIGINT)

    with running(StandInBroker(NAMES)) as url:
        asked = {"service_url": url, "tasks": 2, "out": tmp_path}
        finished = spark.run(session, document, name="once", on_progress=once, **asked)
        assert finished.verdict.word == "interrupted"
        assert spark.requests(session, finished.directory).count() >= 1
        with pytest.raises(KeyboardInterrupt):
            spark.run(session, silent, name="twice", on_progress=always, **asked)
    assert not (tmp_path / "twice" / "run.json").exists()


def test_a_column_that_an_older_run_lacks_is_null(session: SparkSession, tmp_path: Path) -> None:
    runs = [record_run(tmp_path / name, [request(run=name)], run=name) for name in "ab"]
    (part,) = (runs[0] / "requests").iterdir()
    pq.write_table(pq.read_table(part).drop_columns(["topics_hash"]), part)
    found = {row.run: row.topics_hash for row in spark.requests(session, *runs).collect()}
    assert found == {"a": None, "b": "h"}


def test_a_folder_without_a_run_is_refused(session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no run\.json"):
        spark.events(session, tmp_path)


def test_an_unmeasurable_expectation_is_refused_before_the_run(session, tmp_path) -> None:
    expect = {"expect": ["broker.direct.used.max <= 1MB"]}
    document = {
        "topics": {"of": ["t/n"]},
        "clients": [{"name": "a", "count": 1, "do": "list"}],
        **expect,
    }
    with pytest.raises(UsageError, match="nobody watched the broker"):
        spark.run(session, document, service_url="pulsar://127.0.0.1:1", out=tmp_path)


@pytest.mark.parametrize(
    "function", [spark.topics, spark.requests, lambda it: spark.run(it, "storm")]
)
def test_a_session_of_spark_connect_is_refused(function: Any) -> None:
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(UsageError, match="this session is one of Spark Connect"):
        function(remote)
