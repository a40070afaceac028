"""The figures of a run by the names of measures: what thresholds are judged on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from loadgen.analysis.measures import ALL_REQUESTS, CLIENTS, FAILED, SERVERS
from loadgen.clients.records import CLIENT_ROWS, Outcome
from loadgen.results.latency import nearest_rank

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadgen.analysis.thresholds import Threshold
    from loadgen.clients.records import TaskReport

_SUCCEEDED = (Outcome.ANSWERED.value, Outcome.REFUSED.value)


class NotMeasuredError(Exception):
    """Nobody measured what a threshold asks for; the message says why."""


@dataclass(frozen=True)
class Measured:
    """The rows of a run and what its servers needed.

    Attributes:
        requests: With the columns of ``ROWS``.
        clients: With those of ``CLIENT_ROWS``. Without rows a client is back at its first answer.
        processes: What the summary says of each watched server.
    """

    requests: pa.Table
    clients: pa.Table
    processes: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of_reports(
        cls, reports: Sequence[TaskReport], processes: Mapping[str, Mapping[str, Any]]
    ) -> Measured:
        """Return what the tasks of a run reported."""
        return cls(
            pa.concat_tables([report.rows for report in reports]),
            pa.concat_tables([report.clients for report in reports]),
            processes,
        )

    def value(self, threshold: Threshold) -> float:
        """Return the figure that a threshold is about; infinite for what never happened.

        Raises:
            NotMeasuredError: There is none.
        """
        subject, name = threshold.subject, threshold.measure.name
        if subject in SERVERS:
            return self._of_server(subject, name)
        if subject == CLIENTS:
            return _of_clients(self._chosen_clients(threshold), name, threshold.percentile)
        return _of_requests(self._chosen_requests(threshold), name, threshold.percentile)

    def limit(self, threshold: Threshold) -> float | None:
        """Return the limit that a server has for what a threshold measures; None if unknown."""
        kind = threshold.measure.name.partition(".")[0]
        accounted = self.processes.get(threshold.subject, {}).get(kind)
        return None if not isinstance(accounted, dict) else accounted.get("limit_bytes")

    def _chosen_requests(self, threshold: Threshold) -> pa.Table:
        chosen = _selected(self.requests, threshold.selectors)
        if threshold.subject != ALL_REQUESTS:
            chosen = chosen.filter(pc.equal(chosen["operation"], threshold.subject))
        return chosen

    def _chosen_clients(self, threshold: Threshold) -> pa.Table:
        clients = self.clients if self.clients.num_rows else clients_of_requests(self.requests)
        return _selected(clients, threshold.selectors)

    def _of_server(self, process: str, name: str) -> float:
        told = self.processes.get(process)
        if told is None:
            raise NotMeasuredError(f"nobody watched the {process}: name --{process}-admin-url")
        kind, _, of_kind = name.partition(".")
        if kind in ("heap", "direct") and of_kind.startswith("used"):
            found = _used(told[kind], of_kind)
        else:
            known = (told.get(field) for field in _FIELDS[name])
            found = next((each for each in known if each is not None), None)
        if found is None:
            raise NotMeasuredError(f"the {process} does not tell it")
        return float(found)


_FIELDS = {
    **{f"{kind}.waiting.max": (f"{kind}_queue_peak",) for kind in ("heap", "direct")},
    **{f"{kind}.timeouts.count": (f"{kind}_timeouts",) for kind in ("heap", "direct")},
    "resident.max": ("resident_peak_bytes", "resident_highest_scrape_bytes"),
    "resident.rise": ("resident_over_idle_bytes", "resident_over_first_scrape_bytes"),
    "unread.max": ("outbound_pending_peak_bytes",),
    "cpu.seconds": ("cpu_seconds",),
    "again.seconds": ("again_seconds",),
}
"""Places in the summary of a server's figure: the first that is known counts."""


def _used(accounted: Mapping[str, Any] | None, which: str) -> float | None:
    if accounted is None:
        return None
    if which == "used.final":
        return accounted["final_bytes"]  # type: ignore[no-any-return]
    mark = accounted["high_water_bytes"]
    return accounted["highest_scrape_bytes"] if mark is None else mark  # type: ignore[no-any-return]


def _selected(table: pa.Table, selectors: Sequence[tuple[str, str]]) -> pa.Table:
    for key, value in selectors:
        if key == "tenant":
            table = table.filter(pc.starts_with(table["namespace"], f"{value}/"))
        else:
            table = table.filter(pc.equal(table[key], value))
    return table


def _of_requests(requests: pa.Table, name: str, percentile: float | None) -> float:
    what, _, how = name.partition(".")
    if what in ("response", "service"):
        begun = "intended_start_seconds" if what == "response" else "started_seconds"
        answered = requests.filter(pc.equal(requests["outcome"], Outcome.ANSWERED.value))
        return _percentile(_seconds_between(answered, begun, "finished_seconds"), percentile)
    if what == FAILED:
        count = pc.sum(pc.invert(pc.is_in(requests["outcome"], pa.array(_SUCCEEDED)))).as_py()
    else:
        count = pc.sum(pc.equal(requests["outcome"], what)).as_py()
    return _count_or_share(count or 0, requests.num_rows, how)


def _of_clients(clients: pa.Table, name: str, percentile: float | None) -> float:
    what, _, how = name.partition(".")
    if what != "back":
        if not clients.num_rows:
            raise NotMeasuredError("no client was meant")
        least = how == "min"
        return float((pc.min if least else pc.max)(clients[what]).as_py())
    back = clients.num_rows - clients["back_seconds"].null_count
    if how in ("rate", "count"):
        return _count_or_share(back, clients.num_rows, how)
    took = _seconds_between(clients, "intended_start_seconds", "back_seconds")
    return _percentile(took, percentile)


def _count_or_share(count: int, of: int, how: str) -> float:
    if how == "count":
        return count
    if not of:
        raise NotMeasuredError("nothing of it was asked for")
    return count / of


def _percentile(values: np.ndarray, share: float | None) -> float:
    if not len(values):
        raise NotMeasuredError("there is none")
    return float(nearest_rank(np.sort(values), 1.0 if share is None else share))  # type: ignore[arg-type]


def _seconds_between(table: pa.Table, begun: str, ended: str) -> np.ndarray:
    took = pc.subtract(table[ended], table[begun])
    return pc.fill_null(took, math.inf).to_numpy()  # type: ignore[no-any-return]


def clients_of_requests(requests: pa.Table) -> pa.Table:
    """Return the clients of a run that has rows of requests alone: back is the first answer."""
    listed = requests.append_column(
        "answered_seconds",
        pc.if_else(
            pc.equal(requests["outcome"], Outcome.ANSWERED.value),
            requests["finished_seconds"],
            pa.scalar(None, pa.float64()),
        ),
    )
    found = listed.group_by(["client", "task", "group", "family", "namespace"]).aggregate(
        [("intended_start_seconds", "min"), ("answered_seconds", "min"), ("client", "count")]
    )
    nothing = pa.array([None] * found.num_rows, pa.float64())
    empty = pa.array([""] * found.num_rows, pa.string())
    none = pa.array([0] * found.num_rows, pa.int32())
    return pa.table(
        {
            **{name: found[name] for name in ("client", "task", "group", "family", "namespace")},
            "intended_start_seconds": found["intended_start_seconds_min"],
            "connected_seconds": nothing,
            "listed_seconds": found["answered_seconds_min"],
            "back_seconds": found["answered_seconds_min"],
            "outcome": empty,
            "reason": empty,
            "listings": pc.cast(found["client_count"], pa.int32()),
            "reconnects": none,
            "restarts": none,
            "connections": none,
        },
        schema=CLIENT_ROWS,
    )
