"""Our PromQL evaluates scrapes as promtool does."""

from __future__ import annotations

import math
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from loadgen.alerts.promql import NAME, NotEvaluatedError, Scrapes, parse_duration, parse_promql

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.alerts.promql import Vector

EVERY = 5.0
SERIES = {
    'used{i="a"}': [10, 10, 90, 95, 95, 20, 10, 10],
    'used{i="b"}': [50, None, None, 60, 60, 60, None, None],
    'limit{i="a"}': [100] * 8,
    'limit{i="b"}': [0] * 8,
    'limit{i="c"}': [100] * 8,
    'lost_total{i="a"}': [3, 3, 7, 40, 41, 41, 41, 41],
    'lost_total{i="b"}': [5, 9, 0, 2, 2, 2, 30, 30],
    'wait{i="a",quantile="0.99"}': [None, 4, 9, 9, 9, 9, 9, 9],
    'wait{i="a",quantile="0.5"}': [None, 1, 2, 2, 2, 2, 2, 2],
}
# No range is a whole number of scrapes: Prometheus 2 then counts both ends, and 3 only one.
EXPRESSIONS = [
    "used",
    'used{i=~"a|c"}',
    'wait{quantile="0.99"} > 4',
    "used / (limit > 0) > 0.8",
    "used / limit",
    "10 - used * 2 + 1",
    "rate(lost_total[19s])",
    "increase(lost_total[19s]) > 1",
    "increase(lost_total[299s])",
    "max_over_time(used[14s])",
    "avg_over_time(used[14s])",
    "count_over_time(used[19s])",
    "used > 20 and limit > 50",
    "used > 80 or lost_total > 5",
    'used unless limit == 0',
    "10 > used",
    "used > 2 * 40 - 10",
    "sum by (i) (wait)",
    "max(used) without (i)",
    "-used",
    "count(used)",
]  # fmt: skip


def series_of(name: str, text: str) -> tuple[tuple[str, str], ...]:
    labels = [each.split("=") for each in text.rstrip("}").split(",")]
    return tuple(sorted([(NAME, name), *((key, value.strip('"')) for key, value in labels)]))


def scrapes() -> Scrapes:
    pages: list[dict[str, Vector]] = [{} for _ in range(8)]
    for series, values in SERIES.items():
        name, _, labels = series.partition("{")
        for page, value in zip(pages, values, strict=True):
            if value is not None:
                page.setdefault(name, {})[series_of(name, labels)] = float(value)
    return Scrapes(EVERY, pages)


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not here")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_each_expression_evaluates_as_in_promtool(expression: str, tmp_path: Path) -> None:
    # Before the first scrape, which our pages precede indefinitely, as many scrapes as matter
    before, asked = 60, parse_promql(expression).evaluate
    quiet = {s: [v[0]] * before + [*v] for s, v in SERIES.items()}
    expected = []
    for number in range(8):
        try:
            found = asked(scrapes(), number)
        except NotEvaluatedError:
            continue  # both refuse several matching series
        expected.append({
            # The last digits depend on the order of sums; rounded series have no name.
            "expr": f"round(({expression}), 0.001)",
            "eval_time": f"{int((before + number) * EVERY)}s",
            "exp_samples": [
                {
                    "labels": "{" + ",".join(f'{k}="{v}"' for k, v in s if k != NAME) + "}",
                    "value": math.floor(value * 1000 + 0.5) / 1000 if value < math.inf else value,
                }
                for s, value in found.items()
            ],
        })  # fmt: skip
    test = {
        "interval": "5s",
        "input_series": [
            {"series": s, "values": " ".join("stale" if x is None else str(x) for x in values)}
            for s, values in quiet.items()
        ],
        "promql_expr_test": expected,
    }
    file = tmp_path / "test.yml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "5s", "tests": [test]}))
    told = subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("histogram_quantile(0.9, x)", "the function histogram_quantile is not known here"),
        ("x offset 5m", "'offset' is not understood"),
        ("a / on(i) b", "the function on is not known here"),
        ("a % 2", "'%' is not understood"),
        ("1 > 0", "'>' needs series, not numbers"),
        ("x and 1", "'and' needs series, not numbers"),
        ("sum(1)", "1 is no series"),
        ("5 * 60", "'5 . 60' is not understood"),
        ("rate(x[5m:30s])", "':30s' stands where ] should"),
        ("x{i>'a'}", "'>' compares no label"),
        ("x >", "the end.* is no word"),
        ("x ) y", "is not understood"),
    ],
)
def test_an_unsupported_expression_is_refused_with_the_part_that_is_not_understood(
    expression: str, why: str
) -> None:
    with pytest.raises(NotEvaluatedError, match=why):
        parse_promql(expression)


def test_an_expression_lists_the_metrics_that_are_read() -> None:
    found = parse_promql('rate(a_total[5m]) > 1 or max by (i) (b{x="y"}) / (c > 0) > 0.8')
    assert found.metrics == {"a_total", "b", "c"}


def test_a_duration_may_combine_several_units() -> None:
    assert parse_duration("1m30s") == 90
    assert parse_duration("500ms") == 0.5
