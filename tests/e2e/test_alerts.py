"""Alerts on recorded storms: each fires when due, and only then."""

import json
import math
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tools.storm_pictures import IMAGES, PICTURES, drawn
from tools.storms import (
    DEPLOY,
    STORMS,
    all_stored,
    kept,
    packed,
    promtool_document,
    rules,
    stored,
    unpacked,
)

STORED = all_stored()
LARGEST_BYTES = 200_000
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="promtool is not installed (Debian: apt-get install prometheus).",
)


@needs_promtool
@pytest.mark.parametrize("name", [storm.name for storm in STORED])
def test_alerts_fire_in_a_stored_storm_at_its_stored_times(tmp_path: Path, name: str) -> None:
    shutil.copy(DEPLOY / "alerts.yml", tmp_path)
    document = promtool_document([stored(name)])
    (tmp_path / "alerts_test.yml").write_text(json.dumps(document), encoding="utf-8")
    done = subprocess.run(
        ["promtool", "test", "rules", "alerts_test.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alert", rules())
def test_each_alert_fires_in_some_but_not_all_storms_of_a_real_broker(alert) -> None:
    real = [storm for storm in STORED if storm.name.endswith("-real")]
    fired = {any(each.alert == alert for each in storm.firing) for storm in real}
    assert fired == {True, False}


def test_a_storm_within_the_limits_fires_no_alert() -> None:
    assert stored("calm-real").firing == ()


def test_series_and_phases_of_a_stored_storm_are_complete_and_in_order() -> None:
    for storm in STORED:
        lengths = {len(values) for named in storm.series.values() for values in named.values()}
        assert len(lengths) == 1, storm.name
        for begin, until in (span for each in storm.firing for span in each.spans):
            assert 0 <= begin <= until <= storm.seconds, storm.name
        for (_, until, _), (begin, _, _) in pairwise(storm.phases):
            assert until <= begin, storm.name


def test_stored_storms_stay_below_their_size_limit() -> None:
    assert sum(path.stat().st_size for path in STORMS.iterdir()) < LARGEST_BYTES


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_of_the_stored_storms_are_up_to_date(name: str) -> None:
    assert (IMAGES / name).read_text(encoding="utf-8") == drawn(name), (
        "python tools/storm_pictures.py draws them"
    )


def test_packed_values_are_short_and_unpack_to_the_same_values() -> None:
    values = [None, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 7.5, None, None, None, None]
    text = packed(values)
    assert text == "_ 1 1 0x4 7.5 _x4"
    assert unpacked(text) == values


def test_a_stored_scrape_keeps_the_samples_of_alerts_and_sums_over_groups() -> None:
    page = """# TYPE pulsar_broker_topic_list_heap_queue_size gauge
pulsar_broker_topic_list_heap_queue_size{cluster="standalone"} 3.0
pulsar_broker_topic_list_heap_wait_time_ms{cluster="standalone",quantile="0.99"} NaN
pulsar_broker_topic_list_heap_wait_time_ms{cluster="standalone",quantile="0.5"} 1.0
pulsar_broker_topic_list_heap_wait_time_ms_created{cluster="standalone"} 1.7e9
pulsar_broker_lookup_pending_requests{cluster="standalone"} 1.0
loadgen_requests_total{run="r",scenario="s",group="a",operation="list",outcome="answered"} 2.0
loadgen_requests_total{run="r",scenario="s",group="b",operation="list",outcome="answered"} 5.0
"""
    found = kept(page)
    wait = found.pop('pulsar_broker_topic_list_heap_wait_time_ms{quantile="0.99"}')
    assert math.isnan(wait)  # kept: rules must tolerate NaN
    assert found == {
        "pulsar_broker_topic_list_heap_queue_size": 3.0,
        'loadgen_requests_total{operation="list",outcome="answered"}': 7.0,
    }
