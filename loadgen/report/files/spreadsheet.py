"""``summary.csv``: every figure of a summary in a line of its own, so that files can be joined."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def render_csv(summary: Mapping[str, object]) -> str:
    """Render the figures of a summary as ``run,figure,value``, each named as its place in JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("run", "figure", "value"))
    writer.writerows((summary["name"], name, value) for name, value in _figures(summary))
    return out.getvalue()


def _figures(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    """Yield what is at the end of each path; what nobody measured is empty."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _figures(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _figures(inner, f"{name}.{index}")
    else:
        yield name, "" if value is None else value
