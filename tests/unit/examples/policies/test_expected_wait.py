"""The policy of docs/your-own-policy.md equals the page's, and works as described."""

import re
from pathlib import Path

import pytest

from examples.policies.expected_wait import ExpectedWait
from limiter.admission.rules import AdmissionRules
from limiter.errors import PermitAcquireRefusedError
from limiter.semaphore.async_semaphore import AsyncSemaphore
from loadgen.documents.reading import read_document
from loadgen.engine.rows import Outcome
from loadgen.places.virtual import run_in_virtual_time
from loadgen.results.expectations import parse_expectation
from tests.support.clocks.manual_clock import ManualClock

ROOT = Path(__file__).parents[4]
STORM = ROOT / "examples" / "policies" / "expected-wait.yaml"
SMALL = ("clients.cpp.count=60", "clients.cpp.read.rate=50kB/s", "phases.measure=5s")


@pytest.mark.parametrize("name", ["expected_wait.py", "expected-wait.yaml"])
def test_the_page_shows_the_complete_example(name: str) -> None:
    page = (ROOT / "docs" / "your-own-policy.md").read_text(encoding="utf-8")
    fenced = re.findall(r"```\w+\n(.*?)```", page, re.DOTALL)
    assert (ROOT / "examples" / "policies" / name).read_text(encoding="utf-8") in fenced


def test_only_a_waiter_with_an_expected_wait_above_ten_seconds_is_refused() -> None:
    # Twelve requests wait, and ten permits are released each second
    clock = ManualClock()
    semaphore = AsyncSemaphore(10, 0, 25.0, clock, rules=AdmissionRules(ExpectedWait))
    held = semaphore.request(10, owner="holder").result()
    waiters = [semaphore.request(10, owner=number) for number in range(12)]
    assert not any(each.done for each in waiters)
    clock.advance(1.0)
    semaphore.release(held)
    assert waiters[0].permit is not None
    refused = [number for number, each in enumerate(waiters) if each.error is not None]
    assert refused == [11]
    with pytest.raises(PermitAcquireRefusedError, match="longer than 10 s"):
        waiters[-1].result()
    assert semaphore.statistics().refused == {"expected_wait": 1}


def test_refused_clients_in_virtual_time_get_the_reason_of_the_policy() -> None:
    policy = "examples.policies.expected_wait:ExpectedWait"
    key = f"servers.broker.floodgateAdmissionPolicy={policy}"
    document = read_document(str(STORM), [*SMALL, key], parse_expectation)
    run = run_in_virtual_time(document)
    refused = [row for row in run.rows.requests if row.outcome is Outcome.REFUSED]
    reasons = {row.reason for row in refused}
    assert reasons == {"TooManyRequests: The wait would be longer than <n> s"}
    metric = 'floodgate_topic_list_requests_total{type="direct",outcome="expected_wait"}'
    assert max(run.samples.series("broker", metric)[1]) > 0
    assert run.servers["broker"]["settings"]["floodgateAdmissionPolicy"] == policy
