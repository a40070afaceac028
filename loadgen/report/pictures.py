"""Pictures for documents: charts of finished runs beside each other, as one SVG file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.errors import LoadgenError, UsageError
from loadgen.report.drawing import picture
from loadgen.report.run_charts import CHARTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadgen.report.charts import Bars, Chart
    from loadgen.results.results import Results


def picture_of(runs: Sequence[Results], names: Sequence[str], columns: int = 2) -> str:
    """Return charts of runs as one SVG.

    Args:
        runs: One, or several to be overlaid.
        names: Of charts as pages have them: ``servers``, or one of them, ``servers.resident``.
        columns: So many stand beside each other.

    Raises:
        UsageError: There is no chart of that name, or these runs have nothing for it.
    """
    drawn: list[Chart | Bars] = []
    for name in names:
        kind, _, key = name.partition(".")
        if kind not in CHARTS:
            raise UsageError(f"there is no chart {kind[:80]}: name one of {', '.join(CHARTS)}")
        found = list(CHARTS[kind](runs))
        chosen = [each for each in found if key in ("", each.key)]
        if not chosen:
            known = ", ".join(f"{kind}.{each.key}" for each in found if each.key) or "none"
            raise UsageError(f"these runs have nothing for the chart {name[:80]}; there is {known}")
        drawn += chosen
    return picture(drawn, columns)


def write_picture(path: Path, drawn: str) -> None:
    """Write a picture, or a page of them.

    Raises:
        LoadgenError: It cannot be written there.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise LoadgenError(
            f"{path} cannot be written: {error.strerror}; choose another --out"
        ) from error
