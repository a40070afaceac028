"""A run ends early only when an expectation can no longer be met."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.behaviours.list import List
from loadgen.engine.rows import Outcome
from loadgen.engine.totals import Totals
from loadgen.results.expectations import OPERATORS, parse_expectations
from loadgen.results.judging import missed_early

PLANNED = List(name="steady", count=100)
ENDLESS = List(name="steady", count=100, every=1.0)


def counted(**ended: int) -> Totals:
    return Totals(started=1, ended={f"steady list {outcome}": n for outcome, n in ended.items()})


def missed(text: str, totals: Totals, group: List = PLANNED) -> bool:
    return missed_early(parse_expectations([text]), [group], totals) == text


@pytest.mark.parametrize(
    ("text", "ended", "expected"),
    [
        ("list.refused.rate < 10%", {"refused": 9}, False),
        ("list.refused.rate < 10%", {"refused": 10}, True),
        ("list.refused.count == 0", {"refused": 1}, True),
        ("list.refused.count == 5", {"answered": 95}, False),
        ("list.refused.count == 5", {"timeout": 96}, True),
        ("list.refused.count == 5", {"refused": 6}, True),
        ("list.refused.count != 100", {"refused": 100}, True),
        ("list.answered.rate >= 90%", {"refused": 10}, False),
        ("list.answered.rate >= 90%", {"refused": 11}, True),
        ("list.answered.rate > 90%", {"refused": 10}, True),
        ("list.failed.count <= 1", {"timeout": 1, "disconnected": 1}, True),
        # An answer may turn out to be wrong when the run is over.
        ("list.wrong.count >= 1", {"answered": 100}, False),
        ("list.answered.count < 50", {"answered": 60}, False),
        # Another operation, or a result unknown before the end.
        ("watch.refused.count == 0", {"refused": 50}, False),
        ("requests.refused.count == 0", {"refused": 1}, True),
        ("list.response.p99 < 1ms", {"refused": 50}, False),
        ("steady.list.refused.count == 0", {"refused": 1}, True),
        ("late.list.refused.count == 0", {"refused": 1}, False),
        ("list{family=cpp}.refused.count == 0", {"refused": 50}, False),
        ("clients.back.count >= 100", {"refused": 50}, False),
    ],
)
def test_a_run_ends_early_only_if_its_expectation_can_no_longer_be_met(
    text, ended, expected
) -> None:
    assert missed(text, counted(**ended)) is expected


def test_a_rate_is_never_missed_early_if_the_number_of_requests_is_unknown() -> None:
    assert not missed("list.refused.rate < 1%", counted(refused=99), ENDLESS)
    assert missed("list.refused.count < 99", counted(refused=99), ENDLESS)


def test_no_expectation_is_judged_before_the_first_request() -> None:
    waiting = Totals(ended={"steady list unreachable": 1})
    assert not missed("list.unreachable.count == 0", waiting)


SETTLED = [each.value for each in Outcome if each is not Outcome.WRONG]


@given(
    so_far=st.lists(st.sampled_from(SETTLED), max_size=6),
    rest=st.lists(st.sampled_from(SETTLED), max_size=6),
    sign=st.sampled_from(list(OPERATORS)),
    what=st.sampled_from([each.value for each in Outcome]),
    value=st.integers(0, 8),
    how=st.sampled_from(["count", "rate"]),
)
def test_no_run_that_would_have_passed_is_ended_early(so_far, rest, sign, what, value, how) -> None:
    # A run whose expectation holds at the end: the run is not ended early.
    planned = len(so_far) + len(rest)
    found = [*so_far, *rest].count(what)
    written = f"{value}" if how == "count" else f"{value * 12.5}%"
    bound, end = (value, found) if how == "count" else (value / 8, found / max(1, planned))
    if not OPERATORS[sign](end, bound):
        return
    totals = counted(**Counter(so_far))
    group = List(name="steady", count=max(1, planned))
    assert planned == 0 or not missed(f"list.{what}.{how} {sign} {written}", totals, group)
