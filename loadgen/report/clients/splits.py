"""Latencies of a run, split by what its requests differ in: outcome, family, tenant, size.

One percentile over lists of all sizes and clients of all families says little.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from loadgen.analysis.splits import splits_of as all_splits
from loadgen.results.latency import nearest_rank
from loadgen.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadgen.analysis.splits import Split as Cell
    from loadgen.results.summary import Run

SHARES = (0.5, 0.9, 0.99, 0.999, 0.9999, 1.0)
HEADS = ("p50", "p90", "p99", "p99.9", "p99.99", "max")
_MOST = 8
_LEAST = 5
"""Requests of the largest part."""
_ROUNDING = 1e-9
TOO_FEW = "–"  # noqa: RUF001 - what the page shows for no figure


@dataclass(frozen=True)
class Split:
    """Requests that have something in common, and the response times of those that ended.

    Attributes:
        seconds: Sorted.
    """

    group: str
    name: str
    requests: int
    seconds: Sequence[float]

    def cells(self) -> list[str]:
        """Write its percentiles; one that so few requests cannot have is left out."""
        return [
            format_seconds(nearest_rank(self.seconds, share)) if self._has(share) else TOO_FEW
            for share in SHARES
            if len(self.seconds)
        ] or [TOO_FEW] * len(SHARES)

    def _has(self, share: float) -> bool:
        """Tell whether a request lies beyond the percentile; the slowest is always there."""
        return share == 1 or len(self.seconds) * (1 - share) > 1 - _ROUNDING


def splits_of(run: Run) -> list[Split]:
    """Return the splits of a run: by outcome of all, the others of what was answered."""
    cells = all_splits(run.rows, most=run.rows.num_rows)
    answered = [cell for cell in cells if cell.outcome == "answered"]
    found = last = list(_by("Outcome", cells, lambda cell: cell.outcome))
    for group, name in _OF_ANSWERED.items():
        parts = list(_by(group, answered, name))
        # One part says nothing new, nor do parts of a few.
        if len(parts) > 1 and parts[0].requests >= _LEAST and _figures(parts) != _figures(last):
            found = [*found, *parts]
        last = parts
    return found


_OF_ANSWERED: dict[str, Callable[[Cell], str]] = {
    "Operation, answered": lambda cell: cell.operation,
    "Family, answered": lambda cell: cell.family,
    "Tenant, answered": lambda cell: cell.tenant,
    "Size of the answer": lambda cell: (
        f"up to {format_bytes(cell.up_to_bytes)}" if cell.up_to_bytes else "nothing"
    ),
}


def _by(group: str, cells: Sequence[Cell], name: Callable[[Cell], str]) -> Iterator[Split]:
    """Yield a split for each name, the most frequent first."""
    parts: defaultdict[str, list[Any]] = defaultdict(list)
    for cell in cells:
        parts[name(cell) or "none"].append(cell.response_seconds)
    joined: dict[str, Any]
    joined = {name: np.sort(np.concatenate(each)) for name, each in parts.items()}
    for each in sorted(joined, key=lambda name: (-len(joined[name]), name))[:_MOST]:
        yield Split(group, each, len(joined[each]), joined[each])


def _figures(parts: Sequence[Split]) -> list[tuple[int, list[str]]]:
    return [(part.requests, part.cells()) for part in parts]


def render_splits(run: Run) -> str:
    """Render the splits of one run as a table."""
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("requests", *HEADS))
    body, group = [], ""
    for split in splits_of(run):
        if split.group != group:
            group = split.group
            span = len(HEADS) + 2
            body.append(f'<tr><th scope="rowgroup" colspan="{span}">{escape(group)}</th></tr>')
        cells = "".join(
            f"<td>{cell}</td>" for cell in (format_count(split.requests), *split.cells())
        )
        body.append(f'<tr><th scope="row">{escape(split.name)}</th>{cells}</tr>')
    return (
        f'<div class="scroll"><table class="splits"><thead><tr><th></th>{heads}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )
