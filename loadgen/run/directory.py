"""The directory of a run: which files may be in it, and how a run's data get there."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from loadgen.analysis.histograms import HDR_DIRECTORY, forget_histograms
from loadgen.errors import LoadgenError, UsageError
from loadgen.report.files.derived import DERIVED_NAMES, write_derived
from loadgen.results.schema import Summary
from loadgen.results.writing import write_clients, write_json, write_requests, write_server_metrics
from loadgen.scenarios.registry import SCENARIOS, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from loadgen.clients.records import TaskReport
    from loadgen.scenario import Scenario
    from loadgen.servers.series import WatchedServers

_LONGEST_NAME_BYTES = 200
"""File systems have 255; repeats get a number, and servers a folder beside it."""
_SHOWN = 60
_LOG = ".log"
CLIENTS_NAME = "clients.parquet"
_DOCUMENTS = ("run.json", "summary.json", "server-settings.json")
SCENARIO_NAME, RESOLVED_NAME = "scenario.yaml", "scenario-resolved.yaml"
_TABLES = ("requests.parquet", "server-metrics.parquet")
# Files that not every run writes: an older one would pass for a part of the new run. The last one
# is the name that the page had.
_EXTRAS = (CLIENTS_NAME, *(name for kind in SCENARIOS.values() for name in kind.files))
_OLD_PAGE = "report.html"
_OF_A_RUN = {
    *_DOCUMENTS,
    SCENARIO_NAME,
    RESOLVED_NAME,
    *_TABLES,
    *_EXTRAS,
    *DERIVED_NAMES,
    _OLD_PAGE,
    HDR_DIRECTORY,
}


@dataclass(frozen=True)
class RunDocuments:
    """The documents of a run.

    Attributes:
        contents: Of the JSON files, by name.
        as_written: The scenario's document as its author wrote it; empty if the command line said
            it all.
        resolved: The document that says everything itself; empty: it is made of the scenario.
    """

    contents: Mapping[str, Mapping[str, Any]]
    as_written: str = ""
    resolved: str = ""


def require_directory_name(name: str) -> None:
    """Refuse a run's name that cannot be that of a directory among others.

    Raises:
        UsageError: It cannot.
    """
    unfit = "/" in name or name.startswith(".") or not name.isprintable()
    if not name or unfit or len(name.encode(errors="surrogateescape")) > _LONGEST_NAME_BYTES:
        shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
        raise UsageError(
            f"--name {shown!r} cannot be the name of a run's directory: take up to "
            f"{_LONGEST_NAME_BYTES} bytes, no slash or control character, and no dot at the "
            "beginning (--out says where it is)"
        )


@contextmanager
def replaceable_run_directory(directory: Path) -> Iterator[None]:
    """Make a directory for a run; take it away again if the block leaves it empty.

    A Ctrl-C before there are figures leaves no servers' logs either.

    Raises:
        UsageError: It cannot be made, or holds a file that no run has written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        others = [path.name for path in directory.iterdir() if not _is_of_a_run(path.name)]
    except OSError as error:
        raise UsageError(
            f"{directory} cannot be the run's directory ({error.strerror}): choose another --out"
        ) from None
    if others:
        raise UsageError(
            f"{directory} holds {min(others)}, which no run has written: choose another --name or "
            "--out"
        )
    try:
        yield
    except BaseException as error:
        with suppress(OSError):
            if isinstance(error, KeyboardInterrupt):
                _forget_logs(directory)
            directory.rmdir()
        raise


def _forget_logs(directory: Path) -> None:
    files = list(directory.iterdir())
    if all(each.suffix == _LOG for each in files):
        for each in files:
            each.unlink()


def write_run(
    directory: Path,
    scenario: Scenario,
    reports: Sequence[TaskReport],
    watch: WatchedServers,
    documents: RunDocuments,
) -> None:
    """Write a run: its data, and then everything that is made of them.

    Args:
        directory: Its directory; files of an older run there are replaced or removed.
        scenario: What was run.
        reports: What the tasks report.
        watch: What the servers told.
        documents: Written as they are.

    Raises:
        LoadgenError: A file cannot be written.
        ValidationError: The summary has not the form that its schema states; all is written.
    """
    try:
        forget_extras(directory)
        kind_of(scenario).write(directory, reports)
        write_requests(directory / "requests.parquet", reports)
        write_clients(directory / CLIENTS_NAME, reports)
        offset_seconds = reports[0].facts.t0_epoch_seconds - (time.time() - time.perf_counter())
        write_server_metrics(directory / "server-metrics.parquet", watch, offset_seconds)
        for name, document in documents.contents.items():
            write_json(directory / name, dict(document))
        texts = {SCENARIO_NAME: documents.as_written, RESOLVED_NAME: documents.resolved}
        for name, text in texts.items():
            said = text or _as_yaml(_document(scenario, defaults=name == RESOLVED_NAME))
            (directory / name).write_text(said, encoding="utf-8")
    except OSError as error:
        raise LoadgenError(f"the run cannot be written to {directory}: {error}") from error
    write_derived(directory)
    Summary.model_validate(documents.contents["summary.json"])


def forget_extras(directory: Path) -> None:
    """Remove files of an older run or its report that the new run may not write.

    Raises:
        OSError: The directory cannot be written.
    """
    for name in (*_EXTRAS, *DERIVED_NAMES, _OLD_PAGE):
        (directory / name).unlink(missing_ok=True)
    forget_histograms(directory / HDR_DIRECTORY)


def _is_of_a_run(name: str) -> bool:
    # The demo keeps the servers' logs beside the run.
    return name in _OF_A_RUN or name.endswith(_LOG)


def _document(scenario: Scenario, *, defaults: bool) -> dict[str, Any]:
    """Return a scenario in the form of a document; without defaults only what differs."""
    load = scenario.model_dump(mode="json", exclude_defaults=not defaults, exclude={"kind"})
    return {"kind": scenario.kind, "load": load}


def _as_yaml(document: Mapping[str, Any]) -> str:
    # The C library's: a scenario may list many thousands of namespaces.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(dict(document), Dumper=dumper, sort_keys=False, allow_unicode=True))
