"""Splits the requests of a run by operation, outcome, family, tenant and size of the answer.

A single percentile over lists of all sizes and clients of all families says little. Splits are
bounded: the largest are kept, the rest is one row that says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from loadgen.clients.records import Outcome
from loadgen.results.latency import percentiles

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_SPLITS = 200
OTHER = "other"
_NAMES = ("operation", "outcome", "family", "tenant")


@dataclass(frozen=True)
class Split:
    """Requests that are alike.

    Attributes:
        up_to_bytes: The size class of their answers: a power of two, 0 of none.
        merged: How many smaller splits are in it; 0 of one that stands for itself.
        response_seconds: From the intended start to the end.
        service_seconds: From the true start; shorter where requests were never sent.
    """

    operation: str
    outcome: str
    family: str
    tenant: str
    up_to_bytes: int
    response_seconds: np.ndarray
    service_seconds: np.ndarray
    merged: int = 0

    def document(self) -> dict[str, Any]:
        """Return it as the summary says it."""
        named = {name: getattr(self, name) for name in (*_NAMES, "up_to_bytes", "merged")}
        return {
            **named,
            "requests": len(self.response_seconds),
            "response_seconds": percentiles(self.response_seconds.tolist()),
            "service_seconds": percentiles(self.service_seconds.tolist()),
        }


def splits_of(requests: pa.Table, most: int = MOST_SPLITS) -> list[Split]:
    """Return the splits of requests, those with most requests first.

    Args:
        requests: With the columns of ``ROWS``.
        most: So many stand for themselves.
    """
    ended = requests.filter(pc.is_valid(requests["finished_seconds"]))
    if not ended.num_rows:
        return []
    keys = _keys(ended)
    groups = keys.group_by([*_NAMES, "size"]).aggregate([("row", "list")]).to_pylist()
    groups.sort(key=lambda group: (-len(group["row_list"]), *_named(group).values()))
    times = _times(ended)
    splits = [_split(_named(group), group["row_list"], times) for group in groups[:most]]
    rest = groups[most:]
    if rest:
        named = {**dict.fromkeys(_NAMES, OTHER), "up_to_bytes": 0, "merged": len(rest)}
        rows = [row for group in rest for row in group["row_list"]]
        splits.append(_split(named, rows, times))
    return splits


def _keys(ended: pa.Table) -> pa.Table:
    sizes = ended["bytes"].to_numpy()
    exponents = np.frexp(np.maximum(sizes - 1, 0))[1]
    classes = np.where(sizes > 0, np.left_shift(1, exponents.astype(np.int64)), 0)
    tenants = pc.list_element(pc.split_pattern(ended["namespace"], "/"), 0)
    return pa.table(
        {
            **{name: ended[name] for name in ("operation", "outcome", "family")},
            "tenant": tenants,
            "size": classes,
            "row": np.arange(ended.num_rows),
        }
    )


def _named(group: dict[str, Any]) -> dict[str, Any]:
    return {**{name: group[name] for name in _NAMES}, "up_to_bytes": group["size"]}


def _times(ended: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    finished = ended["finished_seconds"].to_numpy()
    intended = ended["intended_start_seconds"].to_numpy()
    # NaN of what was never sent.
    started = pc.fill_null(ended["started_seconds"], np.nan).to_numpy()
    return np.maximum(finished - intended, 0.0), np.maximum(finished - started, 0.0)


def _split(named: dict[str, Any], rows: Sequence[int], times: tuple[np.ndarray, ...]) -> Split:
    response, service = (each[np.asarray(rows, np.int64)] for each in times)
    return Split(**named, response_seconds=response, service_seconds=service[~np.isnan(service)])


def wholes_of(requests: pa.Table) -> list[Split]:
    """Return all answered requests of each operation, those merged in other splits included."""
    answered = requests.filter(pc.equal(requests["outcome"], Outcome.ANSWERED.value))
    named = {"outcome": Outcome.ANSWERED.value, "family": "", "tenant": "", "up_to_bytes": 0}
    wholes = []
    for operation in sorted(set(requests["operation"].to_pylist())):
        rows = answered.filter(pc.equal(answered["operation"], operation))
        everything = range(rows.num_rows)
        wholes.append(_split({"operation": operation, **named}, everything, _times(rows)))
    return wholes
