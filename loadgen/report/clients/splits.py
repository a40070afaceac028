"""Latencies of a run, split by what its requests differ in: outcome, family, tenant, size.

One percentile over lists of all sizes and clients of all families says little.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from loadgen.results.latency import nearest_rank
from loadgen.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from loadgen.results.summary import Run

SHARES = (0.5, 0.9, 0.99, 0.999, 0.9999, 1.0)
HEADS = ("p50", "p90", "p99", "p99.9", "p99.99", "max")
_MOST_TENANTS = 8
_SIZES = 4
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
    rows = run.rows
    answered = rows.filter(pc.equal(rows["outcome"], "answered"))
    found = last = [*_by("Outcome", rows, rows["outcome"])]
    for group, table, values in (
        ("Operation, answered", answered, answered["operation"]),
        ("Family, answered", answered, answered["family"]),
        ("Group, answered", answered, answered["group"]),
        ("Tenant, answered", answered, _tenants(answered)),
    ):
        parts = list(_by(group, table, values))
        # One part says nothing new, nor do groups that are the families, nor parts of a few.
        told = len(parts) > 1 and parts[0].requests >= _LEAST
        if told and _figures(parts) != _figures(last):
            found = [*found, *parts]
        last = parts
    sizes = list(_by_size(answered))
    return [*found, *(sizes if len({each.name for each in sizes}) == len(sizes) else ())]


def _by(group: str, table: pa.Table, values: pa.ChunkedArray) -> Iterator[Split]:
    """Yield a split for each value, the most frequent first."""
    counted = pc.value_counts(values).to_pylist()
    counted.sort(key=lambda each: (-each["counts"], each["values"]))
    for each in counted[:_MOST_TENANTS]:
        part = table.filter(pc.equal(values, each["values"]))
        yield Split(group, each["values"] or "none", part.num_rows, _seconds(part))


def _figures(parts: Sequence[Split]) -> list[tuple[int, list[str]]]:
    return [(part.requests, part.cells()) for part in parts]


def _tenants(table: pa.Table) -> pa.ChunkedArray:
    return pc.replace_substring_regex(table["namespace"], "/.*", "")


def _by_size(answered: pa.Table) -> Iterator[Split]:
    """Yield up to four parts of equal count, from the smallest answers to the largest."""
    sizes = answered["bytes"].to_numpy()
    edges = np.unique(np.quantile(sizes, np.linspace(0, 1, _SIZES + 1))) if len(sizes) else sizes
    if len(edges) < 3:
        return
    for low, high in pairwise(edges):
        inside = (sizes >= low) & ((sizes < high) | (high == edges[-1]))
        part = answered.filter(inside)
        name = f"{format_bytes(float(low))} to {format_bytes(float(high))}"
        yield Split("Size of the answer", name, part.num_rows, _seconds(part))


def _seconds(table: pa.Table) -> Sequence[float]:
    took = pc.drop_null(pc.subtract(table["finished_seconds"], table["intended_start_seconds"]))
    values: npt.NDArray[np.float64] = np.sort(took.to_numpy())
    return values  # type: ignore[return-value]


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
