"""Recorded calls of a real Pulsar's admin REST, replayed in order on a broker.

Another broker may be the target: see ``golden_targets``. The broker must be new: each call depends
on the changes of earlier calls, and on no other state.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.golden.exchange import load_deviations
from tests.support.golden.masks import complaint
from tests.support.golden.rest import (
    RestAnswer,
    ask,
    load_calls,
    rest_differences,
)
from tests.support.golden.targets import FOREIGN_BROKER, Target, golden_broker

pytestmark = pytest.mark.processes

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = load_calls(GOLDEN)
DEVIATIONS = load_deviations(GOLDEN / "deviations.toml")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Return a broker for this module."""
    with golden_broker(tmp_path_factory.mktemp("golden-rest")) as target:
        if not target.web:
            pytest.skip("FLOODGATE_GOLDEN_WEB names no web port to replay this against.")
        yield target


@pytest.fixture(scope="module")
def answers(broker: Target) -> dict[str, RestAnswer]:
    """Return the answers of all calls, in the recording's order."""
    return {case.name: ask(broker.web, case.request, case.headers) for case in CASES}


def test_status_headers_and_body_of_every_recorded_answer_agree(answers, broker) -> None:
    complaints = {}
    for case in CASES:
        found = rest_differences(case, answers[case.name], broker.address, broker.web)
        deviation = None if FOREIGN_BROKER else DEVIATIONS.get((case.name, "broker"))
        complaints[case.name] = complaint(found, deviation)
    assert not {name: said for name, said in complaints.items() if said}


def test_the_dynamic_keys_equal_the_recorded_dynamic_keys(answers) -> None:
    keys = json.loads((GOLDEN / "broker-keys.json").read_text(encoding="utf-8"))
    recorded = {entry["key"] for entry in keys if entry.get("dynamic")}
    names = json.loads(answers["dynamic names"].body)
    assert set(names) == recorded
    assert len(names) == len(recorded)


def test_the_whole_recording_is_replayed() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) == 207


def test_every_deviation_of_a_call_names_a_recorded_case() -> None:
    calls = {name for name, _ in DEVIATIONS if "/" not in name}
    unknown = sorted(calls - {case.name for case in CASES})
    assert not unknown, f"deviations.toml names calls that are not replayed: {unknown}"
