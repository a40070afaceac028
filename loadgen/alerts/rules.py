"""Prometheus alerting rules, and the times in a run at which their alerts fire."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from loadgen.alerts.promql import (
    NAME,
    Expression,
    NotEvaluatedError,
    Scrapes,
    parse_duration,
    parse_promql,
)
from loadgen.errors import UsageError, reason_of
from loadgen.places.sampling import LABEL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadgen.alerts.promql import Labels, Vector
    from loadgen.results.results import Results

_HERE = Path(__file__).resolve()
_PACKED = _HERE.with_name("alerts.yml")
SHIPPED_RULES = _PACKED if _PACKED.exists() else _HERE.parents[2] / "deploy" / "alerts.yml"
SCRAPE_SECONDS = 5.0
"""The interval of scrapes and of rules in deploy/prometheus.yml."""
QUIET_SECONDS, QUANTILE_SECONDS = 900.0, 600.0
"""Rules are evaluated for the first time after a run; a real Pulsar's quantiles forget a wait after
the second."""
_MOST_PAGES = 2_000
_PAGES = """WITH asked AS (
  SELECT process, seconds, metric, value, CAST(floor(seconds / :every) AS BIGINT) AS number
  FROM samples WHERE split_part(metric, '{', 1) IN (SELECT unnest(:names))
), latest AS (
  SELECT process AS process, number, max(seconds) AS seconds FROM asked GROUP BY process, number
)
SELECT a.process, a.number, a.metric, a.value FROM asked a JOIN latest l
  ON a.process = l.process AND a.seconds = l.seconds ORDER BY a.number"""


class Rule(NamedTuple):
    """A Prometheus alerting rule.

    Attributes:
        for_seconds: For how long the expression must be true before the alert fires.
        expression: None if the expression cannot be evaluated; ``why`` has the reason.
    """

    alert: str
    severity: str
    for_seconds: float
    expression: Expression | None
    why: str = ""


class Alert(NamedTuple):
    """A period in which an alerting rule was true for a server, in seconds since the run's start.

    Attributes:
        server: The server whose metrics made the rule true.
        fires: When the alert fired; None if the rule was not true for long enough.
        until: When the rule was no longer true; None if it was true to the end.
    """

    alert: str
    severity: str
    server: str
    since: float
    fires: float | None
    until: float | None


@dataclass(frozen=True)
class Alerts:
    """The result of evaluating alerting rules over the metrics of a run.

    It has the periods in which rules were true, and the rules that could not be evaluated, with the
    reason.

    Attributes:
        ended: When the run ended, in seconds since its agreed start; rules are evaluated beyond it.
    """

    rules: int
    ended: float
    found: tuple[Alert, ...]
    not_evaluated: Mapping[str, str]


def read_rules(path: Path) -> list[Rule]:
    """Read the Prometheus alerting rules in a file.

    Raises:
        UsageError: The file has no Prometheus alerting rules.
    """
    try:
        groups = yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
        said = [rule for group in groups for rule in group["rules"] if "alert" in rule]
        return [_rule(each) for each in said]
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        told = f"{path} is no file of Prometheus' alerting rules: {reason_of(error)}"
        raise UsageError(told) from None


def _rule(said: Mapping[str, Any]) -> Rule:
    expression, why = None, ""
    try:
        expression = parse_promql(str(said["expr"]))
    except NotEvaluatedError as error:
        why = str(error)
    lasting = parse_duration(str(said.get("for", "0s")))
    severity = str((said.get("labels") or {}).get("severity", ""))
    return Rule(str(said["alert"]), severity, lasting, expression, why)


def alerts_of(run: Results, path: Path = SHIPPED_RULES) -> Alerts:
    """Evaluate the alerting rules in a file over the server metrics sampled in a run.

    Metrics count as unchanged before the first sample and after the run's end.

    Raises:
        UsageError: The file has no Prometheus alerting rules.
    """
    rules = read_rules(path)
    names = {name for each in rules if each.expression for name in each.expression.metrics}
    every = max(SCRAPE_SECONDS, run.ended / _MOST_PAGES)
    scrapes, first = _scrapes(run, sorted(names), every)
    found: list[Alert] = []
    not_evaluated: dict[str, str] = {}
    for rule in rules:
        try:
            found += _true(rule, scrapes, first)
        except NotEvaluatedError as error:
            not_evaluated[rule.alert] = str(error)
    found.sort(key=lambda each: (each.fires is None, each.fires or each.since))
    return Alerts(len(rules), run.ended, tuple(found), not_evaluated)


def _scrapes(run: Results, names: Sequence[str], every: float) -> tuple[Scrapes, int]:
    """Return a run's samples as the pages that Prometheus would have scraped, one per interval.

    Also returns the number of the first page's interval.
    """
    rows = run.sql(_PAGES, every=every, names=list(names))
    first, last = (rows[0]["number"], rows[-1]["number"]) if rows else (0, 0)
    pages: list[dict[str, Vector]] = [{} for _ in range(first, last + 1)]
    for row in rows:
        metric, _, labels = row["metric"].partition("{")
        own = {NAME: metric, "job": row["process"], "instance": row["process"]}
        series = tuple(sorted({**dict(LABEL.findall(labels)), **own}.items()))
        pages[row["number"] - first].setdefault(metric, {})[series] = row["value"]
    forgotten = {
        metric: {series: v for series, v in found.items() if "quantile" not in dict(series)}
        for metric, found in pages[-1].items()
    }
    pages += [pages[-1]] * round(QUANTILE_SECONDS / every)
    pages += [forgotten] * round((QUIET_SECONDS - QUANTILE_SECONDS) / every)
    return Scrapes(every, pages), first


def _true(rule: Rule, scrapes: Scrapes, first: int) -> Iterator[Alert]:
    """Yield an alert for each period in which an alerting rule was true for a server."""
    if rule.expression is None:
        raise NotEvaluatedError(rule.why)
    if not any(rule.expression.metrics & page.keys() for page in scrapes.pages):
        raise NotEvaluatedError("none of its metrics was sampled")
    since: dict[Labels, float] = {}
    last = len(scrapes.pages)
    for number in range(last + 1):
        at = (first + number + 1) * scrapes.every
        true = rule.expression.evaluate(scrapes, number) if number < last else {}
        for series in [each for each in since if each not in true]:
            begun = since.pop(series)
            fires = begun + rule.for_seconds
            ended = at if number < last else None
            server = dict(series).get("instance", "")
            yield Alert(
                rule.alert, rule.severity, server, begun, fires if fires < at else None, ended
            )
        for series in true:
            since.setdefault(series, at)
