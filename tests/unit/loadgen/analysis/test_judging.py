from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from loadgen.analysis.judging import Verdict, judge, require_watched
from loadgen.analysis.measured import Measured
from loadgen.analysis.thresholds import parse_thresholds
from loadgen.clients.records import CLIENT_ROWS, ROWS
from loadgen.errors import UsageError

MB = 1 << 20
ACCOUNTED = {
    "limit_bytes": 50 * MB,
    "high_water_bytes": 40 * MB,
    "highest_scrape_bytes": 30 * MB,
    "final_bytes": 0,
}
BROKER = {
    "heap": None,
    "direct": ACCOUNTED,
    "outbound_pending_peak_bytes": None,
    "resident_peak_bytes": None,
    "resident_highest_scrape_bytes": 900 * MB,
    "resident_over_idle_bytes": 7 * MB,
    "resident_over_first_scrape_bytes": 5 * MB,
    "heap_queue_peak": 3,
    "direct_timeouts": 0,
    "cpu_seconds": 1.5,
}


def request(seconds: float, outcome: str = "answered", **changes: Any) -> dict[str, Any]:
    row = {
        "client": 0,
        "task": 0,
        "namespace": "t1/ns",
        "operation": "list",
        "group": "",
        "family": "cpp",
        "intended_start_seconds": 1.0,
        "started_seconds": 1.5,
        "first_byte_seconds": None,
        "finished_seconds": 1.0 + seconds,
        "outcome": outcome,
        "reason": "",
        "topics": 1,
        "bytes": 10,
        "topics_hash": "",
    }
    return row | changes


def client(number: int, back: float | None, **changes: Any) -> dict[str, Any]:
    row = {
        "client": number,
        "task": 0,
        "group": "g",
        "family": "cpp",
        "namespace": "t1/ns",
        "intended_start_seconds": 2.0,
        "connected_seconds": 2.1,
        "back_seconds": back,
        "outcome": "",
        "reason": "",
        "listings": number + 1,
        "reconnects": 0,
    }
    return row | changes


def measured(
    *requests: dict[str, Any], clients: tuple[dict[str, Any], ...] = (), **processes: Any
) -> Measured:
    return Measured(
        pa.Table.from_pylist(list(requests), schema=ROWS),
        pa.Table.from_pylist(list(clients), schema=CLIENT_ROWS),
        processes,
    )


def verdict(run: Measured, text: str) -> Verdict:
    (found,) = judge(parse_thresholds([text]), run)
    return found


REQUESTS = (
    *(request(each / 100) for each in range(60, 160)),
    request(9.0, "refused", reason="full"),
    request(30.0, "timeout"),
    request(5.0, family="java", namespace="t2/ns"),
    request(0.7, operation="watch"),
    request(0.8, "wrong", operation="watch"),
)


@pytest.mark.parametrize(
    ("text", "passed", "words"),
    [
        ("list{family=cpp}.response.p99 <= 1.58s", True, "1.58 s"),
        ("list{family=cpp}.response.p99 < 1.58s", False, "1.58 s"),
        ("list.response.max < 5s", False, "5.00 s"),
        ("list{tenant=t2}.service.p50 == 4.5s", True, "4.50 s"),
        ("list{namespace=t2/ns}.service.p50 == 4.5s", True, "4.50 s"),
        ("list{tenant=t}.answered.count == 0", True, "0"),
        ("list.refused.rate < 0.98%", True, "0.971 %"),
        ("list.failed.count == 1", True, "1"),
        ("watch.wrong.count == 0", False, "1"),
        ("requests.answered.count == 102", True, "102"),
        ("requests.failed.rate <= 2%", True, "1.9 %"),
        ("lookup.refused.count == 0", True, "0"),
        ("lookup.refused.rate == 0%", False, "not measured: nothing of it was asked for"),
        ("lookup.response.p99 < 1s", False, "not measured: there is none"),
    ],
)
def test_requests_are_judged_by_what_became_of_those_selected(
    text: str, passed: bool, words: str
) -> None:
    found = verdict(measured(*REQUESTS), text)
    assert (found.passed, found.found) == (passed, words)


CLIENTS = (client(0, 3.0), client(1, 12.0), client(2, 4.0, family="go"))


@pytest.mark.parametrize(
    ("text", "passed", "words"),
    [
        ("clients.back.rate >= 100%", True, "100 %"),
        ("clients.back.p100 < 10s", False, "10.0 s"),
        ("clients{family=go}.back.max < 10s", True, "2.00 s"),
        ("clients.back.p50 <= 2s", True, "2.00 s"),
        ("clients.listings.max <= 3", True, "3"),
        ("clients.reconnects.max == 0", True, "0"),
        ("clients{family=none}.back.rate > 0%", False, "not measured: nothing of it was asked for"),
        ("clients{family=none}.listings.max > 0", False, "not measured: no client was meant"),
    ],
)
def test_clients_are_judged_by_when_they_were_back(text: str, passed: bool, words: str) -> None:
    found = verdict(measured(clients=CLIENTS), text)
    assert (found.passed, found.found) == (passed, words)


def test_a_client_that_is_never_back_is_slower_than_any_threshold() -> None:
    # Given
    run = measured(clients=(client(0, 3.0), client(1, None)))
    # When
    last, half = (verdict(run, f"clients.back.{each} < 60min") for each in ("p100", "p50"))
    # Then
    assert (last.passed, last.value, last.found) == (False, None, "never")
    assert half.passed


def test_a_client_without_a_row_of_its_own_is_back_at_its_first_answer() -> None:
    # Given one that was refused first, and one that was only refused
    run = measured(
        request(1.0, "refused", client=0),
        request(3.0, client=0, intended_start_seconds=2.0, finished_seconds=4.0),
        request(9.0, client=0, intended_start_seconds=5.0),
        request(2.0, "refused", client=1),
    )
    # Then
    assert verdict(run, "clients.back.count == 1").passed
    assert verdict(run, "clients.back.p50 == 3s").passed
    assert verdict(run, "clients.listings.max == 3").passed


@pytest.mark.parametrize(
    ("text", "passed", "words"),
    [
        ("broker.direct.used.max <= limit", True, "40 MB of 50 MB"),
        ("broker.direct.used.max < 41943040", False, "40 MB"),
        ("broker.direct.used.final == 0", True, "0 MB"),
        ("broker.heap.used.max <= limit", False, "not measured: the broker does not tell it"),
        ("broker.heap.waiting.max < 4", True, "3"),
        ("broker.direct.timeouts.count == 0", True, "0"),
        ("broker.resident.max < 1GiB", True, "900 MB"),
        ("broker.resident.rise <= 7MiB", True, "7.0 MB"),
        ("broker.unread.max < 1GiB", False, "not measured: the broker does not tell it"),
        ("broker.cpu.seconds < 2s", True, "1.50 s"),
        ("proxy.resident.max < 1GiB", False, "not measured: nobody watched the proxy: name "
         "--proxy-admin-url"),
    ],
)  # fmt: skip
def test_servers_are_judged_by_what_they_told(text: str, passed: bool, words: str) -> None:
    found = verdict(measured(broker=BROKER), text)
    assert (found.passed, found.found) == (passed, words)


def test_without_a_mark_of_its_own_a_servers_highest_scrape_counts() -> None:
    told = {**BROKER, "direct": {**ACCOUNTED, "high_water_bytes": None}}
    assert verdict(measured(broker=told), "broker.direct.used.max == 30MiB").passed


def test_a_threshold_on_a_server_that_nobody_watches_is_refused_before_the_run() -> None:
    wanted = parse_thresholds(["list.wrong.count == 0", "proxy.resident.max < 1GiB"])
    require_watched(wanted, ["broker", "proxy"])
    with pytest.raises(
        UsageError, match=r"'proxy.resident.max < 1GiB' needs .*--proxy-admin-url .*, or give the"
    ):
        require_watched(wanted, ["broker"])
