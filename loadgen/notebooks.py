"""Functions for notebooks that return topics and the tables of runs as Spark DataFrames.

The session is the user's, and is not changed, started or stopped. Tasks import loadgen, so
``PYSPARK_PYTHON`` has to name a Python with loadgen installed.
"""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from loadgen.documents.reading import parse_document, read_document
from loadgen.errors import UsageError
from loadgen.loopback import require_own_cluster
from loadgen.places.experiment import experiment
from loadgen.places.options import RunOptions
from loadgen.report.page import write_run
from loadgen.results.expectations import parse_expectation
from loadgen.results.results import Results, files_of, read_run
from loadgen.results.tables import TABLES
from loadgen.spark.environment import interrupts_deferred
from loadgen.stored import StoredPath, placed
from loadgen.studies.dry_run import dry_run, measured_expectations
from loadgen.studies.repeats import FinishedSide
from loadgen.topics.data_source import NAME, register

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from loadgen.documents.model import Document


def topics(session: SparkSession, path: str | Path | None = None, **options: Any) -> DataFrame:  # noqa: ANN401
    """Return a DataFrame of topics, generated as ``options`` state or read from ``path``.

    Args:
        session: The session that creates the DataFrame.
        path: A text file with one topic name per line, a Parquet file, or a folder of Parquet
            files, also in an object store.
        options: Options of the data source, such as ``topics=1_000_000, namespaces=500``.

    Raises:
        UsageError: The session is a Spark Connect session.
    """
    _require_classic(session)
    register(session)
    reader = session.read.format(NAME).options(**options)
    return reader.load() if path is None else reader.load(str(placed(Path(path)).resolve()))


def requests(session: SparkSession, *runs: str | Path) -> DataFrame:
    """Return a DataFrame with a row for each request of the runs in the given directories.

    Raises:
        UsageError: A directory is not a run's, or the session is a Spark Connect session.
    """
    return _table(session, "requests", runs)


def events(session: SparkSession, *runs: str | Path) -> DataFrame:
    """Return a DataFrame with a row for each client event of the runs in the given directories."""
    return _table(session, "events", runs)


def samples(session: SparkSession, *runs: str | Path) -> DataFrame:
    """Return a DataFrame with the sampled server metrics of the runs in the given directories."""
    return _table(session, "samples", runs)


def run(
    session: SparkSession,
    document: str | Path | Mapping[str, Any],
    settings: Sequence[str] = (),
    *,
    yes_this_is_my_cluster: bool = False,
    **options: Any,  # noqa: ANN401 - attributes of RunOptions
) -> FinishedSide:
    """Run a scenario with its clients in tasks of a Spark session, and write the run directory.

    Interrupting the kernel ends the run in order, with the rows so far; a second interrupt ends
    the run immediately.

    Args:
        session: A Spark session with at least one slot for each task.
        document: A shipped scenario's name, a file, or the scenario as a dictionary.
        settings: Values to change in the scenario, such as ``clients.all.count=500``.
        yes_this_is_my_cluster: Allows servers that are not on this machine.
        options: Options of the run, such as ``service_url``, ``tasks``, ``out`` and ``name``.

    Raises:
        LoadgenError: The run failed for a reason that also makes ``loadgen run`` fail.
        KeyboardInterrupt: A second interrupt, or an interrupt before the end of any request.
    """
    _require_classic(session)
    made = _document(document, settings)
    if url := options.get("service_url"):
        require_own_cluster(url, confirmed=yes_this_is_my_cluster)
    name = options.pop("name", f"{made.name}-{datetime.now():%Y%m%d-%H%M%S}")
    options["out"] = placed(Path(options.get("out", "out/runs")))
    # The signal handler of a session made in this thread would cancel all jobs.
    with interrupts_deferred() as interrupts:
        asked = RunOptions(name=name, spark=session, interrupts=interrupts.__len__, **options)
        measured_expectations(made, asked)
        dry_run(made, asked).require_fit()
        # A notebook's own thread already has a running event loop.
        with ThreadPoolExecutor(1) as thread:
            directory = thread.submit(experiment, made, asked).result()
    with Results.open(directory) as results:
        return FinishedSide(directory, write_run(results))


def _document(document: str | Path | Mapping[str, Any], settings: Sequence[str]) -> Document:
    if isinstance(document, str | Path):
        return read_document(str(document), settings, parse_expectation)
    return parse_document(json.dumps(document), Path("notebook"), settings, parse_expectation)


def _table(session: SparkSession, name: str, runs: Sequence[str | Path]) -> DataFrame:
    _require_classic(session)
    if not runs:
        raise UsageError(f"{name}: name the directories of one or more runs")
    directories = [placed(Path(each)).resolve() for each in runs]
    told = [(each, read_run(each)) for each in directories]
    kinds = ((each.name, getattr(each.type, "value_type", each.type)) for each in TABLES[name])
    schema = from_arrow_schema(pa.schema(list(kinds)))
    if not (found := [spark_path(file) for each in told for file in files_of(*each, name)]):
        return session.createDataFrame([], schema)
    return session.read.schema(schema).parquet(*found)  # columns that older files lack are null


def spark_path(path: Path) -> str:
    """Escape a path for Spark's readers, which treat ``[0]`` and ``*`` in it as patterns.

    A path without a scheme would be read from the Spark cluster's own file system.
    """
    plain = re.sub(r"([][{}*?\\])", r"\\\1", str(path))
    return plain if isinstance(path, StoredPath) else f"file://{plain}"


def _require_classic(session: SparkSession) -> None:
    """Refuse a Spark Connect session.

    Raises:
        UsageError: The session is a Spark Connect session.
    """
    if type(session).__module__.startswith("pyspark.sql.connect"):
        raise UsageError(
            "this session is one of Spark Connect, whose driver is elsewhere and which has no "
            "barrier stages: use a session of this process, SparkSession.builder.master(URL)"
        )
