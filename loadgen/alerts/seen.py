"""How much of what a server held a scrape sees: the peaks of a storm fall between two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.alerts.rules import SCRAPE_SECONDS

if TYPE_CHECKING:
    from loadgen.results.results import Results

_FIGURES = tuple(f"{kind}.{what}" for kind in ("heap", "direct") for what in ("used", "waiting"))
# Of each interval a scrape sees one moment.
_SEEN = """SELECT process, figure, max(value) AS seen FROM (
  SELECT process, figure, value, row_number() OVER (PARTITION BY process, figure,
      floor(seconds / :every) ORDER BY seconds DESC) AS place
  FROM samples WHERE figure IS NOT NULL)
WHERE place = 1 GROUP BY ALL"""


def seen_by_scrapes(run: Results, every: float = SCRAPE_SECONDS) -> list[dict[str, Any]]:
    """Return what servers held and who waited at most, and what of it a scrape sees at most."""
    figures = {(row["process"], row["figure"]): row for row in run.query("servers")}
    found = run.sql(_SEEN, every=every)
    seen = {(row["process"], row["figure"]): row["seen"] for row in found}
    return [
        {
            "process": process,
            "figure": figure,
            "most": figures[process, figure]["max"],
            "seen": seen.get((process, figure)),
            "limit": figures.get((process, figure.replace("used", "limit")), {}).get("last")
            if figure.endswith("used")
            else None,
            "timeouts": figures.get((process, f"{figure.partition('.')[0]}.timeouts"), {}).get(
                "rise"
            ),
        }
        for process in ("broker", "proxy")
        for figure in _FIGURES
        if (process, figure) in figures
    ]
