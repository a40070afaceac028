"""Tables and sentences about a run's alerts and about memory peaks between two scrapes.

The HTML page and the terminal show the same rows and sentences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.alerts.rules import QUANTILE_SECONDS, QUIET_SECONDS, SCRAPE_SECONDS
from loadgen.results.questions import QUERIES
from loadgen.units import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadgen.alerts.rules import Alerts
    from loadgen.results.results import Results

_MINUTES = 100.0
_GO_ON = (
    f"Rules are evaluated for {QUIET_SECONDS / 60:.0f} minutes after the run: timeouts count for 2 "
    f"of them, waits for {QUANTILE_SECONDS / 60:.0f}."
)
_GAPS = f"""WITH samples_of AS (
  SELECT process, seconds FROM samples WHERE figure = 'heap.used' AND seconds BETWEEN 0 AND :ended
  UNION SELECT process, unnest([0.0, :ended]) FROM samples WHERE figure = 'heap.used'
), gaps AS (
  SELECT process, seconds - lag(seconds) OVER (PARTITION BY process ORDER BY seconds) AS gap
  FROM samples_of
)
SELECT process, max(gap) AS longest FROM gaps GROUP BY process
HAVING longest > {2 * SCRAPE_SECONDS} ORDER BY process"""
_SEEN = f"""WITH told AS ({QUERIES["servers"].sql}), placed AS (
  SELECT process, figure, value, row_number() OVER (PARTITION BY process, figure,
      floor(seconds / :every) ORDER BY seconds DESC) AS place FROM samples
), scraped AS (
  SELECT process, figure, max(value) AS seen FROM placed WHERE place = 1 GROUP BY ALL
)
SELECT t.process, t.figure, t.max AS most, s.seen, l.last AS "limit", o.rise AS timeouts FROM told t
LEFT JOIN scraped s ON s.process = t.process AND s.figure = t.figure
LEFT JOIN told l ON l.process = t.process AND t.figure LIKE '%used'
  AND l.figure = replace(t.figure, 'used', 'limit')
LEFT JOIN told o ON o.process = t.process AND o.figure = split_part(t.figure, '.', 1) || '.timeouts'
WHERE regexp_matches(t.figure, '^(heap|direct)\\.(used|waiting)$')
ORDER BY t.process, split_part(t.figure, '.', 1) DESC, t.figure"""
"""A query for peaks in all samples and in the scraped ones: scrapes miss a storm's short peaks."""


def seen_by_scrapes(run: Results) -> list[dict[str, Any]]:
    """Return the real and the scraped peak of each server's memory and waiting requests."""
    return run.sql(_SEEN, every=SCRAPE_SECONDS)


def gap_sentences(run: Results) -> list[str]:
    """Return a sentence for each server of a running cluster that seldom answered a scrape."""
    if not run.run.get("service_url"):
        return []  # A server of the run's own is away while it is restarted.
    return [
        f"Between two samples of the {row['process']} lie up to {format_seconds(row['longest'])}: "
        "its /metrics/ takes long (exposeTopicLevelMetricsInPrometheus?), so that peaks and alerts "
        "between them are not shown."
        for row in run.sql(_GAPS, ended=run.ended)
    ]


def seen_rows(seen: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """Yield a table row for each metric of each server, except metrics that stayed 0."""
    for row in seen:
        kind, _, what = row["figure"].partition(".")
        write = format_bytes if what == "used" else _requests
        limit = "" if row["limit"] is None else format_bytes(row["limit"])
        if row["most"]:
            yield {
                "server": f"{row['process']}: {'waiting for ' * (what == 'waiting')}{kind} memory",
                "at most": write(row["most"]),
                f"scraped each {SCRAPE_SECONDS:g} s": write(row["seen"]),
                "limit": limit,
                "timed out": "" if limit or row["timeouts"] is None else _requests(row["timeouts"]),
            }


def _requests(count: float) -> str:
    return plural(round(count), "request")


def alert_rows(alerts: Alerts) -> Iterator[dict[str, str]]:
    """Yield a table row for each period in which an alerting rule was true."""
    for each in alerts.found:
        lasted = (alerts.ended + QUIET_SECONDS if each.until is None else each.until) - each.since
        yield {
            "alert": each.alert,
            "fires": "never" if each.fires is None else format_seconds(each.fires),
            "true from": format_seconds(each.since),
            "true for": f"{lasted / 60:.1f} min" if lasted >= _MINUTES else format_seconds(lasted),
            "severity": each.severity,
            "server": each.server,
        }


def alert_sentences(alerts: Alerts) -> list[str]:
    """Return sentences on the alerts that fire and the rules that could not be evaluated.

    Further sentences say if an alert goes on after the run or can never fire.
    """
    fired = {each.alert for each in alerts.found if each.fires is not None}
    found = [f"Alerts that fire: {len(fired) or 'none'} of {alerts.rules}."]
    if any(each.fires is None for each in alerts.found):
        found.append("A rule fires once it was true for its own time; never: it was true for less.")
    if any(each.until is None or each.until > alerts.ended for each in alerts.found):
        found.append(_GO_ON)
    if alerts.not_evaluated:
        why = "; ".join(f"{name} ({why})" for name, why in alerts.not_evaluated.items())
        found.append(f"Not evaluated: {why}.")
    return found
