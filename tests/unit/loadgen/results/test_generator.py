from __future__ import annotations

import errno
import os
from typing import Any

import pyarrow as pa
import pytest

from loadgen.clients.records import ROWS, TaskFacts
from loadgen.results.generator import generator_document


def rows(count: int, reason: str = "") -> list[dict[str, Any]]:
    row = dict.fromkeys(ROWS.names, 0) | dict.fromkeys(
        ("namespace", "operation", "group", "family", "topics_hash"), ""
    )
    return [{**row, "outcome": "unreachable" if reason else "answered", "reason": reason}] * count


def limits(*facts: dict[str, Any], found: list[dict[str, Any]] | None = None, **more) -> list[str]:
    table = pa.Table.from_pylist(rows(100) if found is None else found, schema=ROWS)
    tasks = [TaskFacts(0, 1, 0.0, 0.0, 0.0, **each) for each in facts or ({},)]
    document = generator_document(table, tasks, **more)
    assert document["generator_limited"] is bool(document["generator_limits"])
    return document["generator_limits"]


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"moments": 100, "lag_p99_seconds": 0.011}, "1 % of its moments came 11 ms late, over"),
        ({"loop_lag_p99_seconds": 0.26}, "its event loop was 260 ms late, over the limit of 250"),
        ({"measured_seconds": 4.0, "cpu_seconds": 3.9}, "a task used 98% of a core, of at most"),
    ],
)
def test_each_limit_of_the_generator_has_its_sentence(facts, sentence: str) -> None:
    (said,) = limits({}, facts)
    assert sentence in said


@pytest.mark.parametrize(
    "facts",
    [
        {"moments": 100, "lag_p99_seconds": 0.01},
        # Of few moments the 99th percentile is the latest: start errors judge those.
        {"moments": 99, "lag_p99_seconds": 0.04},
        {"loop_lag_p99_seconds": 0.25, "loop_lag_max_seconds": 2.0},
        {"measured_seconds": 4.0, "cpu_seconds": 3.8},
        # A short burst keeps a core busy while it lasts.
        {"measured_seconds": 1.9, "cpu_seconds": 1.9},
    ],
)
def test_what_is_within_the_limits_is_no_sentence(facts) -> None:
    assert not limits(facts)


@pytest.mark.parametrize(
    ("reason", "own", "limited"),
    [
        (os.strerror(errno.EMFILE), 6, True),
        (os.strerror(errno.EADDRNOTAVAIL), 6, True),
        (os.strerror(errno.EMFILE), 5, False),
        ("Connection refused", 90, False),  # that is the server's doing
    ],
)
def test_requests_that_this_machine_could_not_start_are_its_own_fault(
    reason: str, own: int, limited: bool
) -> None:
    said = limits(found=rows(100 - own) + rows(own, reason))
    assert said == (
        ["only 94.0% of the planned requests could be started, of at least 95%"] * limited
    )


def test_requests_of_the_schedule_that_have_no_row_were_not_started() -> None:
    assert limits(planned=106)
    assert not limits(planned=105)
    assert not limits({"interrupted": True}, planned=1000)
    assert not limits(found=[], planned=None)
