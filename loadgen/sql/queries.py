"""Questions that are asked of every run, as Spark SQL by name.

Percentiles are exact, by nearest rank, as those of summaries: Spark's percentile_disc.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Query:
    """A question and its SQL."""

    title: str
    sql: str


def _percentiles(value: str) -> str:
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
    each = [
        f"round(percentile_disc({share}) WITHIN GROUP (ORDER BY {value}), 6) AS {name}"
        for name, share in shares.items()
    ]
    return ",\n  ".join([*each, f"round(max({value}), 6) AS max"])


def _requests_by(column: str) -> Query:
    key = f", `{column}`" if column else ""
    where = f"by {column} and outcome" if column else "by outcome"
    return Query(
        f"Requests and their response times {where}.",
        f"SELECT run{key}, outcome, count(*) AS requests,\n  {_percentiles('response_seconds')}\n"
        f"FROM requests GROUP BY run{key}, outcome ORDER BY run{key}, outcome",
    )


_TIMELINE = """\
WITH asked AS (
  SELECT run, floor(finished_seconds) AS second,
    count_if(outcome = 'answered') AS answered, count_if(outcome = 'refused') AS refused,
    count_if(outcome NOT IN ('answered', 'refused')) AS others,
    round(percentile_disc(0.99) WITHIN GROUP (ORDER BY response_seconds), 6) AS p99
  FROM requests WHERE finished_seconds IS NOT NULL GROUP BY run, floor(finished_seconds)
), served AS (
  SELECT run, floor(at_seconds) AS second,
    max(value) FILTER (WHERE process = 'broker' AND figure = 'direct.used') AS broker_direct,
    max(value) FILTER (WHERE process = 'broker' AND figure = 'heap.used') AS broker_heap,
    max(value) FILTER (WHERE process = 'broker' AND figure = 'resident') AS broker_resident,
    max(value) FILTER (WHERE process = 'proxy' AND figure = 'direct.used') AS proxy_direct,
    max(value) FILTER (WHERE process = 'proxy' AND figure = 'resident') AS proxy_resident,
    max(value) FILTER (WHERE figure = 'direct.waiting') AS waiting
  FROM server_metrics WHERE at_seconds >= -5 GROUP BY run, floor(at_seconds)
)
SELECT * FROM asked FULL OUTER JOIN served USING (run, second) ORDER BY run, second"""

QUERIES = {
    "by-outcome": _requests_by(""),
    "by-family": _requests_by("family"),
    "by-tenant": _requests_by("tenant"),
    "back": Query(
        "How many clients of each family came back, and after how long.",
        "SELECT run, family, count(*) AS clients, count(back_seconds) AS back,\n  "
        f"{_percentiles('back_after_seconds')}\nFROM clients GROUP BY run, family "
        "ORDER BY run, family",
    ),
    "timeline": Query("What clients got and what servers held, second by second.", _TIMELINE),
    "runs": Query(
        "One line for each run.",
        "SELECT run, scenario, executor, clients, answered, refused, wrong, timeout, p50, p99, max,"
        " duration_seconds FROM runs ORDER BY started_at, run",
    ),
    "medians": Query(
        "Runs of one scenario, whose labels differ by a number at the end at most, together: "
        "medians, and how far they lie apart.",
        "SELECT scenario, regexp_replace(label, '[-_ ]?[0-9]+$', '') AS label, count(*) AS runs,\n"
        "  percentile(answered, 0.5) AS answered, percentile(refused, 0.5) AS refused,\n"
        "  round(percentile(p50, 0.5), 6) AS p50, round(percentile(p99, 0.5), 6) AS p99,\n"
        "  round(min(p99), 6) AS least_p99, round(max(p99), 6) AS most_p99\n"
        "FROM runs GROUP BY 1, 2, config_hash ORDER BY 1, 2",
    ),
}
