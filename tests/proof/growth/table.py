"""The table of growth: a row for each operation, columns for each number of names."""

import io
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from tests.proof.growth.measuring import BOUND_MILLIS, Row

COLUMNS = 100


def growth_table(title: str, by_names: Mapping[int, Sequence[Row]]) -> str:
    """Return a table as text: of each row the worst of all places, for each number of names.

    Args:
        title: The rows' common title.
        by_names: The rows of each number of names.
    """
    table = Table(title=f"{title}: s, MB more, longest turn in ms", title_justify="left")
    table.width = COLUMNS
    table.add_column("", ratio=1, no_wrap=True)
    for names in by_names:
        table.add_column(_short(names), justify="right", no_wrap=True)
    rows = dict.fromkeys(row.what for found in by_names.values() for row in found)
    for what in rows:
        table.add_row(what, *(_cell(what, found) for found in by_names.values()))
    text = io.StringIO()
    Console(file=text, width=COLUMNS).print(table)
    return text.getvalue()


def _short(names: int) -> str:
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if names >= size:
            return f"{names / size:g} {unit}"
    return str(names)


def _cell(what: str, rows: Sequence[Row]) -> str:
    found = [row for row in rows if row.what == what]
    if not found:
        return "-"
    if any(row.error for row in found):
        return "FAILED"
    seconds = max(row.seconds for row in found)
    megabytes = max(row.grown_bytes for row in found) / 1e6
    millis = max(row.millis for row in found)
    mark = "!" if millis > BOUND_MILLIS else ""
    return f"{_digits(seconds)} {megabytes:5.0f} {mark + format(millis, '.0f'):>4}"


def _digits(seconds: float) -> str:
    return f"{seconds:6.1f}" if seconds >= 10 else f"{seconds:6.3f}"
