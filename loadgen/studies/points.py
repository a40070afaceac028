"""The points of a study: a point is a scenario with varied values, its run and its verdict.

A complete run of the same document in the same folder is used again, unless the module of its
admission policy has been changed since.
"""

from __future__ import annotations

import inspect
import json
import re
import zlib
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from loadgen.documents.reading import read_document
from loadgen.places.experiment import experiment
from loadgen.places.launcher import ServerFiles
from loadgen.places.options import RunOptions, resolved
from loadgen.results.expectations import SERVERS, parse_expectation, parse_expectations
from loadgen.results.judging import judge
from loadgen.results.results import Results, RunDirectoryError, read_run
from loadgen.results.units import in_words
from loadgen.results.verdict import Level, verdict_of
from server.configuration.common import POLICY_KEY
from server.configuration.loaded_class import UnusableClassError, is_class_path, loaded_class

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadgen.documents.model import Document
    from loadgen.places.options import Place

    Experiment = Callable[[Document, RunOptions], Path]

Value = Any
"""The value of a setting in a document: a number, a text, a mapping."""
SEED = "seed"
_OF_SERVERS = ("heap.used", "heap.waiting", "direct.used", "direct.waiting")
_ASKED = parse_expectations(
    [
        "clients.back.rate >= 0%",
        *(f"clients.back.{each} >= 0s" for each in ("p50", "p99", "max")),
        *(f"requests.{each}.rate >= 0%" for each in ("answered", "refused", "failed")),
        *(f"list.response.{each} >= 0s" for each in ("p50", "p99", "max")),
        *(f"{server}.{each}.max >= 0" for server in SERVERS for each in _OF_SERVERS),
    ]
)
FIGURES = {each.text.partition(" ")[0]: each.measure.unit for each in _ASKED}
"""The figures of each point, and their units."""
SHOWN = {
    "clients.back.rate": "back",
    "clients.back.p99": "back p99",
    "requests.refused.rate": "refused",
    "list.response.p99": "list p99",
    "broker.heap.used.max": "heap",
    "broker.direct.used.max": "direct",
}
"""Figures of the table, and the heads of their columns."""
_PLAIN = re.compile(r"[^A-Za-z0-9._=-]+")
_LONGEST_NAME = 100


@dataclass(frozen=True)
class Study:
    """The common part of all points of a study: the scenario, options and output folder.

    Attributes:
        target: The name of a shipped scenario, or the path of a scenario file.
        settings: Settings such as ``path=value``, applied to the scenario before the varied values.
        out: The folder of the run directories; finished runs in it are used again.
        place: The place where all points run.
        files: An operator's configuration files for the servers.
    """

    target: str
    settings: Sequence[str] = ()
    out: Path = Path("out/study")
    place: Place = "virtual"
    files: ServerFiles = field(default_factory=ServerFiles)

    def job(self, values: Mapping[str, Value]) -> Job:
        """Return the job that runs the scenario with the given values.

        Raises:
            UsageError: The scenario does not accept a value, which the message names.
        """
        said = [f"{path}={json.dumps(value)}" for path, value in values.items()]
        document = read_document(self.target, [*self.settings, *said], parse_expectation)
        return Job(values, document, replace(self, out=self.out.resolve()))


class Job(NamedTuple):
    """A point that is still to be run, possibly in another process or a Spark task.

    Attributes:
        values: The varied values, by ``--set`` path.
        document: The scenario document with these values.
    """

    values: Mapping[str, Value]
    document: Document
    study: Study

    @property
    def options(self) -> RunOptions:
        """The options with which the point is run."""
        told = json.dumps(self.values, sort_keys=True)
        name = _PLAIN.sub("-", values_text(self.values) or self.document.name).strip("-.")
        return RunOptions(
            out=self.study.out,
            name=f"{name[:_LONGEST_NAME]}-{zlib.crc32(told.encode()):08x}",
            # Runs with other seeds are repeats, which share a label.
            label=values_text({path: one for path, one in self.values.items() if path != SEED}),
            place=self.study.place,
            files=self.study.files,
        )


@dataclass(frozen=True)
class Point:
    """The outcome of one point of a study: its values, figures and verdict, named as in JSON.

    Attributes:
        figures: Figures by name; None if not measured, infinite if the event never happened.
        passed: True if all expectations were met.
        missed: The sentences of the findings that are not fine, the worst first.
        run: The directory of the point's run.
    """

    values: Mapping[str, Value]
    figures: Mapping[str, float | None]
    passed: bool
    level: Level
    verdict: str
    missed: tuple[str, ...]
    run: Path

    @property
    def valid(self) -> bool:
        """True if the run is reliable, so that it shows whether expectations hold."""
        return self.level in (Level.FINE, Level.MISSED)

    @property
    def place(self) -> str:
        """The varied values of the point as text."""
        return values_text(self.values)


def values_text(values: Mapping[str, Value]) -> str:
    """Format varied values as text, each after its path, as in command-line options."""
    return ", ".join(f"{path}={in_short(value)}" for path, value in values.items())


def in_short(value: Value) -> str:
    """Format a value as text, as in a command-line option."""
    return value if isinstance(value, str) else json.dumps(value)


def figure_text(name: str, value: float | None) -> str:
    """Format a figure with its unit; a dash if it was not measured."""
    return "-" if value is None else in_words(FIGURES[name], value)


def run_job(job: Job, run: Experiment = experiment) -> Point:
    """Run a point, or reuse its finished run, and judge it.

    In virtual time the outcome is the same in any process.

    Raises:
        LoadgenError: The run could not be made.
        KeyboardInterrupt: The run was interrupted; an incomplete run has no result.
    """
    directory = kept(job.document, job.options) or run(job.document, job.options)
    with Results.open(directory) as results:
        verdict, asked = verdict_of(results), judge(_ASKED, results)
    if verdict.level is Level.INTERRUPTED:
        raise KeyboardInterrupt
    figures = {name: each.value for name, each in zip(FIGURES, asked, strict=True)}
    missed = tuple(each.sentence for each in verdict.failed)
    return Point(job.values, figures, verdict.fine, verdict.level, verdict.word, missed, directory)


def kept(document: Document, options: RunOptions) -> Path | None:
    """Return the directory of a finished run of the same scenario; None if there is no such run.

    Raises:
        UsageError: The scenario and the options do not fit each other.
    """
    document, options = resolved(document, options)
    directory = options.out / options.name
    try:
        told = read_run(directory)
    except RunDirectoryError:
        return None
    same = told.get("document") == document.model_dump(mode="json", by_alias=True)
    whole = not any(told.get(each) for each in ("interrupted", "aborted", "lost"))
    same = same and told.get("place") == options.place
    return directory if same and whole and not _policy_changed(document, told) else None


def _policy_changed(document: Document, told: Mapping[str, Any]) -> bool:
    """Return True if a policy of the scenario's servers has a module newer than a run."""
    servers = document.servers
    policies = {str(keys.get(POLICY_KEY)) for keys in (servers.broker, servers.proxy or {})}
    for path in filter(is_class_path, policies):
        try:
            changed = Path(inspect.getfile(loaded_class(path, object))).stat().st_mtime
        except (UnusableClassError, OSError, TypeError):
            return True  # The run says what is wrong with the class.
        if changed > datetime.fromisoformat(told["started_at"]).timestamp():
            return True
    return False
