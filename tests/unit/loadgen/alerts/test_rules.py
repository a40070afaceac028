"""Alerts fire when their rule was true for long enough, before or after a run, too."""

from pathlib import Path
from typing import Any

import pytest

from loadgen.alerts.rules import SHIPPED_RULES, Alert, alerts_of, read_rules
from loadgen.errors import UsageError
from loadgen.results.results import Results
from tests.support.runs.recorded_run import record_run

RULES = """groups:
  - name: all
    rules:
      - {record: ignored, expr: x}
      - {alert: Full, expr: 'used / limit > 0.8', for: 10s, labels: {severity: warning}}
      - {alert: Lost, expr: 'increase(lost_total[1m]) > 0', for: 30s}
      - {alert: Slow, expr: 'wait{quantile="0.99"} > 5', for: 1m}
      - {alert: Odd, expr: 'predict_linear(used[5m], 60) > 1'}
      - {alert: Unseen, expr: 'nothing > 1'}
"""


def sampled(metric: str, values: dict[float, float]) -> list[dict[str, Any]]:
    row = {"run": "r", "process": "broker", "at": 0, "metric": metric, "figure": None}
    return [{**row, "seconds": seconds, "value": value} for seconds, value in values.items()]


def told_of(samples: list[dict[str, Any]], tmp_path: Path) -> Any:
    rules = tmp_path / "rules.yml"
    rules.write_text(RULES)
    with Results.open(record_run(tmp_path / "run", samples=samples)) as run:
        return alerts_of(run, rules)


def test_an_alert_fires_only_if_its_rule_stays_true_for_the_required_time(tmp_path: Path) -> None:
    # Limits full from 5 to 25 s, then again for a moment covered by two scrapes
    used = {n / 2: 90.0 if 10 <= n < 50 or 80 <= n < 90 else 10.0 for n in range(120)}
    limits = dict.fromkeys(used, 100.0)
    found = told_of([*sampled("used", used), *sampled("limit", limits)], tmp_path)
    assert found.found == (
        Alert("Full", "warning", "broker", 10.0, 20.0, 30.0),
        Alert("Full", "warning", "broker", 45.0, None, 50.0),
    )
    assert found.rules == 5
    assert found.not_evaluated == {
        "Lost": "none of its metrics was sampled",
        "Slow": "none of its metrics was sampled",
        "Odd": "the function predict_linear is not known here",
        "Unseen": "none of its metrics was sampled",
    }


def test_a_counter_that_rises_at_the_end_of_a_run_fires_an_alert_after_the_run(tmp_path) -> None:
    lost = {n / 2: float(n > 16) for n in range(20)}
    (alert,) = told_of(sampled("lost_total", lost), tmp_path).found
    assert (alert.alert, alert.since, alert.fires, alert.until) == ("Lost", 10.0, 40.0, 65.0)


def test_an_alert_on_a_quantile_of_waits_ends_ten_minutes_after_the_run(tmp_path: Path) -> None:
    waits = {n / 2: 9.0 for n in range(20)}
    (alert,) = told_of(sampled('wait{quantile="0.99"}', waits), tmp_path).found
    assert (alert.fires, alert.until) == (65.0, 615.0)


def test_an_alert_is_interrupted_while_a_server_has_no_samples(tmp_path: Path) -> None:
    used = {n / 2: 90.0 for n in range(120) if not 20 <= n < 60}
    found = told_of([*sampled("used", used), *sampled("limit", dict.fromkeys(used, 100.0))],
                    tmp_path)  # fmt: skip
    assert [(each.since, each.until) for each in found.found] == [(35.0, None), (5.0, 15.0)]


def test_every_shipped_alerting_rule_can_be_evaluated() -> None:
    rules = read_rules(SHIPPED_RULES)
    assert len(rules) > 5
    assert not [(each.alert, each.why) for each in rules if each.expression is None]


@pytest.mark.parametrize("text", ["[]", "groups: 3", "groups: [{rules: [{alert: x}]}]", "a: ["])
def test_a_missing_file_or_a_file_without_alerting_rules_is_refused(text: str, tmp_path) -> None:
    file = tmp_path / "rules.yml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"rules\.yml is no file of Prometheus' alerting rules"):
        read_rules(file)
    with pytest.raises(UsageError, match="No such file"):
        read_rules(tmp_path / "none.yml")
