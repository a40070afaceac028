"""The verdict on a run beside silent clients, and what a broker that pauses is held to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loadgen.errors import ExitCode, LoadgenError
from loadgen.results.verdict import verdict_of
from loadgen.scenarios.produce_beside_silent.scenario import SilentScenario
from loadgen.scenarios.produce_beside_silent.summary import (
    checks_document,
    require_expected,
    silent_document,
    verdict,
)
from loadgen.stuck_peers.summary import PeerEnd, PeerRecord
from server.configuration.flow import PAUSE_KEY
from tests.support.runs.stuck_runs import SCENARIO as SCHEDULE
from tests.support.runs.stuck_runs import report, row

SILENT = {
    "producers": 3,
    "producers_held_up": 2,
    "producers_closed": 1,
    "messages_sent": 700,
    "messages_wanted": 900,
    "late_seconds": 0.01,
}
BECAME = "; of 3 silent producers 2 held up and 1 closed, after 700 of 900 messages."
SCENARIO = SilentScenario(
    service_url="pulsar://127.0.0.1:6650",
    namespaces=SCHEDULE.namespaces,
    silent_producers=2,
    silent_consumers=1,
    silent_messages=100,
)


def judged(
    requests: int = 100, answered: int = 100, p99: float | None = 0.002, late: float = 0.01
) -> tuple[str, bool]:
    """Return the verdict on a run whose producers waited 1 ms before."""
    before = {"requests": 100, "answered": 100, "latency_seconds": {"p99": 0.001}}
    beside = {"requests": requests, "answered": answered, "latency_seconds": {"p99": p99}}
    silent = {**SILENT, "beside": beside, "late_seconds": late}
    return verdict({"before": before, "stuck": beside}, silent)


@pytest.mark.parametrize(
    ("changes", "sentence", "harmed"),
    [
        (
            {},
            "Nobody was harmed: every message beside silent clients got its receipt, p99",
            False,
        ),
        ({"p99": 0.5}, "Silent clients slowed the producers beside them: p99 1 ms before,", True),
        ({"p99": 0.5, "late": 0.4}, "Not to be judged: p99 1 ms before, 500 ms beside", False),
        ({"answered": 60}, "harmed the producers beside them: 40 of 100 messages got no", True),
        ({"requests": 0, "answered": 0}, "Nothing was due before or beside the silent", False),
    ],
)
def test_the_verdict(changes: dict[str, Any], sentence: str, harmed: bool) -> None:
    text, found = judged(**changes)
    assert sentence in text
    assert text.endswith(BECAME)
    assert found is harmed


def silent_client(number: int, **changes: Any) -> PeerRecord:
    """Return a silent client that was there from 2 s to 10 s."""
    left = {"asked_seconds": 2.0, "gone_seconds": 10.0, "end": PeerEnd.LEFT, "sent": 60}
    return PeerRecord(number, "public/default", **{**left, **changes})


def described(*clients: PeerRecord) -> dict[str, Any]:
    """Return the figures of a run with messages due at 1, 2.5 and 5 s; the second one is slow."""
    rows = [row(0, 1.0, 1.001), row(0, 2.5, 3.3), row(0, 5.0, 5.002)]
    return silent_document(SCENARIO, [report(rows, clients)])


def test_messages_are_judged_once_every_silent_producer_is_held_up_or_closed() -> None:
    # Given
    held_up = silent_client(0, held_up_seconds=3.0)
    closed = silent_client(1, gone_seconds=4.0, end=PeerEnd.CLOSED)
    # When
    silent = described(held_up, closed, silent_client(2))["silent"]
    # Then
    assert (silent["producers_held_up"], silent["producers_closed"]) == (1, 1)
    assert silent["beside"]["requests"] == 1
    assert not silent["harmed"]
    assert (silent["messages_sent"], silent["messages_wanted"]) == (120, 200)


@pytest.mark.parametrize("since", [None, 9.5], ids=["never", "only just"])
def test_while_one_goes_on_every_message_beside_it_counts(since: float | None) -> None:
    # When
    silent = described(
        silent_client(0, held_up_seconds=3.0), silent_client(1, held_up_seconds=since)
    )["silent"]
    # Then
    assert silent["producers_held_up"] == 1
    assert silent["beside"]["requests"] == 2
    assert silent["harmed"]


def summary(pausing: str | None, *clients: PeerRecord) -> dict[str, Any]:
    """Return a run's summary beside a broker that says whether it pauses; None: says nothing."""
    settings = {} if pausing is None else {PAUSE_KEY: pausing}
    return {**described(*clients), "servers": {"broker": {"version": "x", "settings": settings}}}


@pytest.mark.parametrize("pausing", ["false", None])
def test_nothing_is_expected_of_a_broker_that_does_not_pause(pausing: str | None) -> None:
    require_expected(summary(pausing, silent_client(0), silent_client(1)), Path("r"))


def test_a_broker_that_pauses_holds_up_whoever_does_not_read() -> None:
    held_up = [silent_client(number, held_up_seconds=3.0) for number in (0, 1)]
    require_expected(summary("true", *held_up), Path("r"))


@pytest.mark.parametrize(
    ("since", "sentence"),
    [
        (None, "slowed the producers beside them.*That should not be, as the broker has"),
        (1.0, "1 of 2 silent producers could go on to the end.*use more --silent-messages"),
    ],
)
def test_a_broker_that_pauses_and_lets_them_go_on_fails_the_run(
    since: float | None, sentence: str
) -> None:
    # Given
    found = summary("true", silent_client(0), silent_client(1))
    found["silent"]["harmed"] = since is None
    found["silent"]["producers_held_up"] = 1
    # When
    with pytest.raises(LoadgenError, match=sentence) as caught:
        require_expected(found, Path("r"))
    # Then
    assert caught.value.exit_code is ExitCode.THRESHOLDS
    checks = checks_document(found)["silent"]["checks"]
    assert [check["passed"] for check in checks] == [True, since is not None, False]


def test_the_verdict_is_a_check_of_the_run_like_any_others() -> None:
    # Given
    found = summary("false", silent_client(0), silent_client(1))
    found |= {"wrong": 0, "answered": 2, "generator_limited": False}
    # When
    checks = verdict_of({**found, **checks_document(found)}).thresholds
    # Then
    assert [(each.name, each.passed) for each in checks] == [
        ("silent clients", True), ("beside silent clients", True),
    ]  # fmt: skip
    assert checks[0].sentence == "2 of 2 silent clients began."
    assert checks[1].sentence == found["silent"]["verdict"]
    assert checks[1].mark == "–"  # noqa: RUF001


def test_a_silent_client_that_could_not_begin_is_told_first() -> None:
    lost = silent_client(0, asked_seconds=None, end=PeerEnd.UNREACHABLE)
    with pytest.raises(LoadgenError, match=r"1 of 2 silent clients got no producer.*in r\)"):
        require_expected(summary("true", lost, silent_client(1)), Path("r"))
