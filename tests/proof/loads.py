"""Loads against the servers of a proof, and the judged figures."""

from pathlib import Path
from typing import Any

from loadgen.documents.model import Document
from loadgen.places.experiment import experiment
from loadgen.places.options import RunOptions
from loadgen.results.results import Results

_ENDS = """SELECT what, text, count(*) AS n FROM events WHERE what IN ('refused', 'lost')
  GROUP BY what, text ORDER BY n DESC, text"""
# All are connected before the start; later connections are events.
_CONNECTIONS = """SELECT count_if(what = 'connected') - count_if(what = 'connection-lost')
  FROM events"""


def carried_out(document: Document, options: RunOptions) -> dict[str, Any]:
    """Run a document and return the results of its clients, all groups together.

    Raises:
        LoadgenError: The run failed.
    """
    return figures_of(experiment(document, options))


def figures_of(directory: Path) -> dict[str, Any]:
    """Return requests by outcome, clients' results by reason, and figures of the servers."""
    with Results.open(directory) as results:
        (total,) = results.query("all") or [{"answered": 0, "wrong": 0}]
        groups, ends = results.query("back"), results.sql(_ENDS)
        clients = sum(row["clients"] for row in groups)
        refused, lost = (
            {row["text"]: row["n"] for row in ends if row["what"] == what}
            for what in ("refused", "lost")
        )
        back = sum(row["back"] for row in groups)
        return {
            "answered": total["answered"],
            "wrong": total["wrong"],
            "clients": clients,
            "connections": clients + (results.value(_CONNECTIONS) or 0),
            "back": back,
            "back_seconds": {key: max(row[key] for row in groups) for key in ("p50", "max")},
            "refused": refused,
            "lost": lost,
            "unfinished": clients - back - sum(refused.values()) - sum(lost.values()),
            "servers": {
                f"{row['process']}.{row['figure']}": row["max"] for row in results.query("servers")
            },
        }
