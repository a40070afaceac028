import os
import subprocess
import sys
from collections import Counter

import pytest

from loadgen.documents.model import Document
from loadgen.places.virtual import VirtualRun, run_in_virtual_time

ANSWER_BYTES = 1_530_000
"""Approximate duration of a list of these topics."""
LIMIT_MB = 15


def slow_storm(profile: str) -> VirtualRun:
    keys = {f"maxTopicListInFlight{kind}MemSizeMB": str(LIMIT_MB) for kind in ("Heap", "Direct")}
    for kind in ("Heap", "Direct"):
        keys[f"maxTopicListInFlight{kind}MemSizePermitsAcquireTimeoutMillis"] = "3000"
    keys["floodgateSocketSendBufferBytes"] = "65536"
    group = {
        "name": "slow",
        "do": "list",
        "count": 50,
        "read": {"rate": "45kB/s"},
        "timeout": "60s",
    }
    return run_in_virtual_time(
        Document.model_validate(
            {
                "name": "slow-storm",
                "topics": {"namespaces": 1, "per_namespace": 15_000},
                "servers": {"profile": profile, "broker": keys},
                "clients": [group],
            }
        )
    )


def outcomes(run: VirtualRun) -> Counter[str]:
    return Counter(str(row.outcome) for row in run.rows.requests)


def test_with_profile_pulsar_only_as_many_slow_clients_are_answered_as_fit() -> None:
    # When every client reads for longer than others may wait
    run = slow_storm("pulsar")
    fit = LIMIT_MB * 1024 * 1024 // ANSWER_BYTES
    found = outcomes(run)
    assert found["refused"] == 50 - found["answered"]
    assert abs(found["answered"] - fit) <= 1


def test_with_profile_floodgate_all_slow_clients_are_answered() -> None:
    assert outcomes(slow_storm("floodgate")) == {"answered": 50}


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
def test_no_memory_is_held_after_all_clients_have_disconnected(profile: str) -> None:
    run = slow_storm(profile)
    assert run.facts.cpu_seconds == 0  # no generator limit
    assert run.samples.seen_at_the_end == {"broker"}
    assert not run.samples.holds_memory("broker")


def test_the_same_scenario_gives_the_same_rows_in_another_process() -> None:
    code = (
        "from tests.integration.loadgen.test_virtual_time import slow_storm;"
        "import hashlib; run = slow_storm('pulsar');"
        "print(hashlib.sha256(str(run.rows).encode()).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
