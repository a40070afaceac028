"""Opens run directories as tables for SQL: DuckDB over Parquet files.

No row is copied: a run opens at once, whatever its size, and questions need bounded memory. The
files of a run that is in a store are copied to this machine first.
"""

from __future__ import annotations

import json
import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import duckdb

from loadgen.errors import LoadgenError, UsageError, reason_of
from loadgen.results.questions import PARAMETER, QUERIES, parameters_of
from loadgen.results.tables import RUN_VERSION, TABLES, part_of, parts_of
from loadgen.stored import copied_here

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_MEMORY, _THREADS = "256MB", 2
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
"""Makes tables of run.json. A group that is ``deaf`` never reads, or not for a while; a group that
``reads`` takes all bytes at once. Moments are seconds since the agreed start."""
MEASURED = """SELECT q.* FROM requests q WHERE EXISTS (SELECT 1 FROM runs w
  WHERE w.run = q.run AND q.due >= w.measured_from AND q.due < w.measured_until)"""
"""Requests that were due while figures are taken; valid in Spark SQL, too."""
VIEWS = (*TABLES, "measured", "groups", "runs")
"""The tables that a question may be about."""


class RunDirectoryError(UsageError):
    """A run directory is missing, incomplete, or not of this version."""


def read_run(directory: Path) -> dict[str, Any]:
    """Read ``run.json``.

    Raises:
        RunDirectoryError: The directory is no run of this version.
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
    """Return the files of a run's table: those that ``run.json`` names, whatever is beside them."""
    if "files" in run:
        return [directory / table / name for name in run["files"].get(table, ())]
    return parts_of(directory, table)


def _require_files(directory: Path, run: dict[str, Any]) -> None:
    """Refuse a run that has lost a file: one that it names, or of an older run one of a task."""
    # Of a run that lost tasks it names the others alone.
    tasks = [part_of(directory, "", each["task"]).name for each in run.get("tasks", ())]
    for table, names in run.get("files", {"requests": tasks, "events": tasks}).items():
        found = sum((directory / table / name).exists() for name in names)
        if found < len(names):
            raise RunDirectoryError(
                f"{directory / table} has {found} of {len(names)} files: the run is no longer "
                "whole; copy it again, or run the scenario again"
            )


def _whole_folders(
    directories: Sequence[Path], runs: Sequence[dict[str, Any]], copies: Path
) -> Iterator[Path]:
    """Yield the folders with the rows of runs, of runs in a store their copies.

    Raises:
        RunDirectoryError: A run has lost a file.
    """
    for number, (directory, run) in enumerate(zip(directories, runs, strict=True)):
        # Every figure is a question: rows of a store come to this machine once.
        folder = copied_here(directory, copies / str(number))
        _require_files(folder, run)
        yield folder


class Results:
    """The tables of a run, or of several runs, opened.

    Attributes:
        directory: The directory of the run, or of the first run.
        run: Its ``run.json``.
        columns: The columns of the last answer.
        spill: The folder for data that does not fit into DuckDB's memory, and for copies of runs
            that are in a store.
        folders: The directories, or their copies.
    """

    def __init__(self, directories: Sequence[Path]) -> None:
        runs = [read_run(directory) for directory in directories]
        self.directory, self.run = directories[0], runs[0]
        names = [run["run"] for run in runs]
        if twice := next((each for each in names if names.count(each) > 1), None):
            raise RunDirectoryError(f"two of these runs are called {twice}: ask them one by one")
        self.columns: list[str] = []
        self._answered: dict[tuple[object, ...], list[dict[str, Any]]] = {}
        self._spill = tempfile.TemporaryDirectory(prefix="loadgen-sql-")
        self.spill = self._spill.name
        try:
            self.folders = [*_whole_folders(directories, runs, Path(self.spill))]
        except LoadgenError:
            self._spill.cleanup()
            raise
        self.connection = duckdb.connect(
            config={
                "memory_limit": _MEMORY,
                "threads": _THREADS,
                "temp_directory": self.spill,
                "preserve_insertion_order": False,
                "autoinstall_known_extensions": False,
            }
        )
        for name, schema in TABLES.items():
            told = zip(self.folders, runs, strict=True)
            if files := [str(path) for each, run in told for path in files_of(each, run, name)]:
                try:
                    self._view_files(name, files)
                except duckdb.Error as error:
                    self.close()
                    said = f"{name} of {self.directory} cannot be read: {reason_of(error)}"
                    raise RunDirectoryError(said) from None
            else:
                self.connection.register(name, schema.empty_table())
        as_json = "CREATE TABLE told AS SELECT CAST(unnest($1) AS JSON) AS run"
        self.connection.execute(as_json, [[*map(json.dumps, runs)]])
        self.connection.execute(_TOLD)
        self._view_measured()

    def _view_files(self, name: str, files: list[str]) -> None:
        """View files as a table; a column that they lack, as they are older, is null."""
        found = self.connection.read_parquet(files, union_by_name=True)
        if {*TABLES[name].names} <= {*found.columns}:
            found.create_view(name)
            return
        found.create_view(f"_{name}")
        self.connection.register(f"_no_{name}", TABLES[name].empty_table())
        more = f"SELECT * FROM _{name} UNION ALL BY NAME SELECT * FROM _no_{name}"
        self.connection.execute(f"CREATE VIEW {name} AS {more}")

    def _view_measured(self) -> None:
        told = self.connection.execute("SELECT measured_from, measured_until FROM runs").fetchall()
        measured = MEASURED
        if len(told) == 1:  # Constants: of 20 million rows a question takes a third of the time.
            since, until = (f"CAST('{each}' AS DOUBLE)" for each in told[0])
            measured = f"SELECT * FROM requests WHERE due >= {since} AND due < {until}"
        self.connection.execute(f"CREATE VIEW measured AS {measured}")

    @classmethod
    def open(cls, *directories: Path) -> Self:
        """Open a run, or several runs, whose rows have the name of the run in ``run``.

        Raises:
            RunDirectoryError: A directory is no run of this version.
        """
        return cls(directories)

    def close(self) -> None:
        """Close the tables."""
        self.connection.close()
        self._spill.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def ended(self) -> float:
        """The end of the last request; 0 without a request."""
        return float(self.value("SELECT coalesce(max(done), 0E0) FROM requests"))

    @property
    def document(self) -> dict[str, Any]:
        """The scenario, as it was resolved."""
        return self.run.get("document") or {}

    def query(self, name: str, **parameters: Any) -> list[dict[str, Any]]:  # noqa: ANN401
        """Return the rows of a shipped question about one run, which are kept."""
        key = name, *sorted(parameters.items())
        if key not in self._answered:
            self._answered[key] = self.sql(QUERIES[name].sql, **parameters)
        return self._answered[key]

    def sql(self, text: str, **parameters: Any) -> list[dict[str, Any]]:  # noqa: ANN401
        """Return the rows of a question in the form of ``queries.sql``.

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
        """Return the only value of a question's only row."""
        (row,) = self.sql(text, **parameters)
        (found,) = row.values()
        return found
