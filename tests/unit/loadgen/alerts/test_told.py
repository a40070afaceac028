from pathlib import Path

import pytest

from loadgen.alerts.rules import Alert, Alerts
from loadgen.alerts.told import (
    alert_rows,
    alert_sentences,
    gap_sentences,
    seen_by_scrapes,
    seen_rows,
)
from loadgen.results.results import Results
from tests.support.runs.recorded_run import record_run, request, sample


def test_a_memory_peak_between_two_scrapes_is_missing_from_the_scraped_values(tmp_path) -> None:
    samples = [
        *(sample("heap.used", second, 5e6 * (second < 3)) for second in range(10)),
        sample("heap.used", 10, 3e6),
        sample("heap.limit", 1, 20 * 1024 * 1024),
        sample("heap.timeouts", 0, 0),
        sample("heap.timeouts", 9, 7),
        sample("direct.used", 0, 0),
    ]
    with Results.open(record_run(tmp_path / "run", samples=samples)) as run:
        found = seen_by_scrapes(run)
    heap, direct = found
    assert (heap["most"], heap["seen"], heap["timeouts"]) == (5e6, 3e6, 7)
    assert direct["most"] == 0
    assert [row["server"] for row in seen_rows(found)] == ["broker: heap memory"]


def test_an_alert_reports_how_long_its_rule_was_true_and_when_the_alert_fired() -> None:
    alerts = Alerts(
        3,
        27.0,
        (
            Alert("Wait", "warning", "broker", 15.0, 15.0, 635.0),
            Alert("High", "warning", "broker", 20.0, 30.0, None),
            Alert("Full", "critical", "proxy", 5.0, None, 15.0),
        ),
        {},
    )
    assert [[*row.values()][1:4] for row in alert_rows(alerts)] == [
        ["15.0 s", "15.0 s", "10.3 min"],
        ["30.0 s", "20.0 s", "15.1 min"],
        ["never", "5.00 s", "10.0 s"],
    ]
    told = " ".join(alert_sentences(alerts))
    assert told.startswith("Alerts that fire: 2 of 3. A rule fires once it was true for its own")
    assert "evaluated for 15 minutes after the run" in told


@pytest.mark.parametrize(("url", "longest"), [("pulsar://127.0.0.1:6650", ["45.0 s"]), ("", [])])
def test_a_cluster_that_seldom_answers_scrapes_is_named(url, longest, tmp_path: Path) -> None:
    samples = [sample("heap.used", second, 1.0) for second in (-2, 1, 46)]
    samples += [sample("resident", second, 1.0, "proxy") for second in range(46)]
    told = [request(done=46.0)]
    with Results.open(record_run(tmp_path / "r", told, samples=samples, service_url=url)) as run:
        found = gap_sentences(run)
    assert [each.partition("up to ")[2].partition(":")[0] for each in found] == longest


def test_a_run_without_alerts_reports_only_that_no_alert_fires() -> None:
    assert alert_sentences(Alerts(3, 27.0, (), {})) == ["Alerts that fire: none of 3."]
