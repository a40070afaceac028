"""The directories of runs as SQL tables: DuckDB reads their Parquet files.

No row is copied: a run of any size opens immediately, and queries need bounded memory. The files of
a run in an object store are copied to this machine first.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import duckdb

from loadgen.errors import UsageError, reason_of
from loadgen.results.questions import PARAMETER, QUERIES, parameters_of
from loadgen.results.tables import RUN_VERSION, TABLES, part_of, parts_of
from loadgen.stored import copied_here

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CONFIG: dict[str, Any] = {
    "memory_limit": "256MB",
    "threads": 2,
    "preserve_insertion_order": False,
    "autoinstall_known_extensions": False,
}
_TOLD = """CREATE TABLE groups AS SELECT run, (g->>'name') AS "group", (g->>'do') AS behaviour,
  CAST(g->>'count' AS INTEGER) AS clients, (g->>'pattern') AS pattern, (g->>'of') AS publishers,
  -- Of other publishers it is another subscription, whatever its name.
  (g->>'of') || '/' || coalesce(g->>'subscription', 'loadgen') AS subscription,
  coalesce(CAST(g->'read'->>'never' AS BOOLEAN), false)
    OR coalesce(CAST(g->'read'->>'stall' AS DOUBLE), 0) > 0 AS deaf,
  NOT deaf AND (g->'read'->>'rate') IS NULL AS reads
FROM (SELECT (run->>'run') AS run, unnest(CAST(run->'document'->'clients' AS JSON[])) AS g
  FROM told);
CREATE TABLE runs AS SELECT (run->>'run') AS run, (run->>'name') AS name, (run->>'title') AS title,
  (run->>'place') AS place, (run->>'started_at') AS started_at,
  coalesce(CAST(phases->>'warm_up' AS DOUBLE), 0) AS measured_from, measured_from
    + coalesce(nullif(CAST(phases->>'measure' AS DOUBLE), 0), CAST('Infinity' AS DOUBLE))
    + coalesce(CAST(phases->>'hold' AS DOUBLE), 0) AS measured_until
FROM (SELECT run, run->'document'->'phases' AS phases FROM told);
DROP TABLE told"""
"""SQL that makes the tables ``groups`` and ``runs`` from run.json.

A ``deaf`` group never reads, or pauses; a ``reads`` group takes all bytes immediately. Moments are
seconds since the agreed start.
"""
MEASURED = """SELECT q.* FROM requests q WHERE EXISTS (SELECT 1 FROM runs w
  WHERE w.run = q.run AND q.due >= w.measured_from AND q.due < w.measured_until)"""
"""SQL for the requests that count in figures, due after the warm-up; valid in Spark SQL, too."""
VIEWS = (*TABLES, "measured", "groups", "runs")
"""The tables that queries may use."""


class RunDirectoryError(UsageError):
    """The directory of a run is missing, incomplete, or of another version."""


def read_run(directory: Path) -> dict[str, Any]:
    """Read the ``run.json`` in the directory of a run.

    Raises:
        RunDirectoryError: The directory is not that of a run, or not of this version.
    """
    if not directory.is_dir():
        raise RunDirectoryError(
            f"{directory} is not a run directory: name one that `loadgen run --out` has written"
        )
    path = directory / "run.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunDirectoryError(
            f"{directory} has no run.json: the run did not finish, an earlier loadgen wrote it, or "
            "this is not a run"
        ) from None
    except (OSError, ValueError) as error:
        raise RunDirectoryError(f"{path} cannot be read as JSON: {error}") from error
    version = found.get("schema_version") if isinstance(found, dict) else None
    if version != RUN_VERSION:
        raise RunDirectoryError(
            f"{directory} was written by another loadgen (schema_version {version}, this one reads "
            f"{RUN_VERSION}): run the scenario again, or read it with the one that wrote it"
        )
    return dict(found)


def files_of(directory: Path, run: Mapping[str, Any], table: str) -> list[Path]:
    """Return the files of a table that a run's ``run.json`` lists; other files are ignored."""
    if "files" in run:
        return [directory / table / name for name in run["files"].get(table, ())]
    return parts_of(directory, table)


def _whole(directory: Path, run: Mapping[str, Any], copy: Path) -> Path:
    """Check that no file of a run's tables is missing; return the folder with the tables.

    A run in an object store is copied to this machine first.

    Raises:
        RunDirectoryError: A file is missing that ``run.json`` names or, in an older run, a file of
            one of its tasks. Files of lost tasks are not named there.
    """
    # Every figure is a question: the rows of a store are copied only once.
    folder = copied_here(directory, copy)
    tasks = [part_of(folder, "", each["task"]).name for each in run.get("tasks", ())]
    for table, names in run.get("files", {"requests": tasks, "events": tasks}).items():
        found = sum((folder / table / name).exists() for name in names)
        if found < len(names):
            raise RunDirectoryError(
                f"{folder / table} has {found} of {len(names)} files: the run is no longer "
                "whole; copy it again, or run the scenario again"
            )
    return folder


class Results:
    """The tables of one or several runs, opened for SQL queries.

    Attributes:
        directory: The directory of the run, or of the first run.
        run: The contents of ``run.json`` of the run, or of the first run.
        columns: The names of the columns that the last query returned.
        spill: The folder for data beyond DuckDB's memory, and for copies of runs in a store.
        folders: The directories of the runs, or local copies of these.
        close: Closes all tables.
    """

    def __init__(self, directories: Sequence[Path]) -> None:
        runs = [read_run(directory) for directory in directories]
        self.directory, self.run = directories[0], runs[0]
        names = [run["run"] for run in runs]
        if twice := next((each for each in names if names.count(each) > 1), None):
            raise RunDirectoryError(f"two of these runs are called {twice}: query one at a time")
        self.columns: list[str] = []
        self._answered: dict[tuple[object, ...], list[dict[str, Any]]] = {}
        with ExitStack() as opened:
            self.spill = opened.enter_context(tempfile.TemporaryDirectory(prefix="loadgen-sql-"))
            told = enumerate(zip(directories, runs, strict=True))
            self.folders = [_whole(*each, Path(self.spill, str(number))) for number, each in told]
            config = {**_CONFIG, "temp_directory": self.spill}
            self.connection = opened.enter_context(duckdb.connect(config=config))
            for name in TABLES:
                of_runs = map(files_of, self.folders, runs, repeat(name))
                self._view_files(name, [str(file) for files in of_runs for file in files])
            as_json = "CREATE TABLE told AS SELECT CAST(unnest($1) AS JSON) AS run"
            self.connection.execute(as_json, [[*map(json.dumps, runs)]])
            self.connection.execute(_TOLD)
            self._view_measured()
            self.close = opened.pop_all().close

    def _view_files(self, name: str, files: list[str]) -> None:
        """Define an SQL view of a table's files; columns that older files lack are null."""
        none = TABLES[name].empty_table()
        if not files:
            self.connection.register(name, none)
            return
        try:
            found = self.connection.read_parquet(files, union_by_name=True)
        except duckdb.Error as error:
            said = f"{name} of {self.directory} cannot be read: {reason_of(error)}"
            raise RunDirectoryError(said) from None
        if not {*none.column_names} <= {*found.columns}:
            self.connection.register(f"_no_{name}", none)
            found.create_view(f"_{name}")
            more = f"SELECT * FROM _{name} UNION ALL BY NAME SELECT * FROM _no_{name}"
            found = self.connection.sql(more)
        found.create_view(name)

    def _view_measured(self) -> None:
        told = self.connection.execute("SELECT measured_from, measured_until FROM runs").fetchall()
        measured = MEASURED
        if len(told) == 1:  # Constants: over 20 million rows a question takes a third of the time.
            since, until = (f"CAST('{each}' AS DOUBLE)" for each in told[0])
            measured = f"SELECT * FROM requests WHERE due >= {since} AND due < {until}"
        self.connection.execute(f"CREATE VIEW measured AS {measured}")

    @classmethod
    def open(cls, *directories: Path) -> Self:
        """Open one or several runs as tables, in which the column ``run`` has the run's name.

        Raises:
            RunDirectoryError: A directory is not that of a run, or not of this version.
        """
        return cls(directories)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def ended(self) -> float:
        """When the last request ended, in seconds since the run's start; 0 without requests."""
        return float(self.value("SELECT coalesce(max(done), 0E0) FROM requests"))

    @property
    def document(self) -> dict[str, Any]:
        """The run's scenario with all defaults filled in."""
        return self.run.get("document") or {}

    def query(self, name: str, **parameters: Any) -> list[dict[str, Any]]:  # noqa: ANN401
        """Return the rows that a shipped query returns for this run; results are cached."""
        key = name, *sorted(parameters.items())
        if key not in self._answered:
            self._answered[key] = self.sql(QUERIES[name].sql, **parameters)
        return self._answered[key]

    def sql(self, text: str, **parameters: Any) -> list[dict[str, Any]]:  # noqa: ANN401
        """Run an SQL query, with parameters as in ``queries.sql``; return its rows.

        Raises:
            RunDirectoryError: The tables are damaged.
        """
        given = parameters_of(text, parameters)
        try:
            found = self.connection.execute(PARAMETER.sub(r"$\1", text), given)
            rows = found.fetchall()
        except duckdb.Error as error:
            said = f"the tables of {self.directory} cannot be read: {reason_of(error)}"
            raise RunDirectoryError(said) from error
        self.columns = [column[0] for column in found.description or ()]
        return [dict(zip(self.columns, row, strict=True)) for row in rows]

    def value(self, text: str, **parameters: Any) -> Any:  # noqa: ANN401
        """Return the value of an SQL query that returns one row with one column."""
        (row,) = self.sql(text, **parameters)
        (found,) = row.values()
        return found
