"""Table rows of the servers that produced the figures of several runs: versions, keys, values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.report.figure_row import FigureRow
from server.server_info import INFO_KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadgen.results.summary import RunSummary

NOT_TOLD = "not told"


def server_rows(summaries: Sequence[RunSummary]) -> list[FigureRow]:
    """Return a row for the version and for each key that a server of any run has told."""
    versions = [_cell({name: f.version for name, f in s.servers.items()}) for s in summaries]
    rows = [
        _row("Version", "told to clients", [s.server_version or "" for s in summaries]),
        _row("Version", "of each server", versions),
        *(_row("Keys", key, [_value(s, key) for s in summaries]) for key in INFO_KEYS),
    ]
    return [row for row in rows if any(cell != NOT_TOLD for cell in row.cells)]


def _value(summary: RunSummary, key: str) -> str:
    return _cell({name: facts.settings.get(key) for name, facts in summary.servers.items()})


def _cell(told: Mapping[str, str | None]) -> str:
    """Return one value where all servers tell the same, otherwise each with its server."""
    known = {process: value for process, value in told.items() if value}
    if len(known) == len(told) and len(set(known.values())) == 1:
        return next(iter(known.values()))
    return ", ".join(f"{process} {value}" for process, value in known.items())


def _row(group: str, measure: str, cells: Sequence[str]) -> FigureRow:
    told = [cell or NOT_TOLD for cell in cells]
    return FigureRow(group, measure, told, [False] * len(told))
