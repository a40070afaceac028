"""The schedule of topics that come and go follows from the scenario alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.watch_churn.scenario import (
    WatchChurnScenario,
    changes_of,
    watcher_plans,
)

NAMESPACES = tuple(NamespaceExpectation(name=f"load/ns-{each}") for each in range(3))


def scenario(**changes) -> WatchChurnScenario:
    return WatchChurnScenario(**{"namespaces": NAMESPACES, "clients": 7, **changes})


@given(
    rate=st.floats(min_value=0.5, max_value=200),
    stays=st.floats(min_value=0.1, max_value=5),
    more=st.floats(min_value=0.1, max_value=20),
    namespace=st.integers(min_value=0, max_value=2),
)
def test_every_topic_that_comes_goes_again_no_sooner_than_agreed(
    rate: float, stays: float, more: float, namespace: int
) -> None:
    wanted = scenario(
        clients=1, changes_per_second=rate, topic_seconds=stays, churn_seconds=stays + more
    )
    changes = changes_of(wanted, namespace)
    assert [each.due_seconds for each in changes] == sorted(each.due_seconds for each in changes)
    came = {each.topic: each.due_seconds for each in changes if each.created}
    went = {each.topic: each.due_seconds for each in changes if not each.created}
    assert came.keys() == went.keys()
    assert len(changes) == 2 * len(came)
    assert all(went[topic] - came[topic] >= stays - 1e-6 for topic in came)


def test_the_rate_is_that_of_creations_and_deletions_together() -> None:
    changes = changes_of(scenario(changes_per_second=20, topic_seconds=1, churn_seconds=11), 0)
    middle = [each for each in changes if 2 <= each.due_seconds < 10]
    assert len(middle) == pytest.approx(160, abs=2)


def test_each_watcher_belongs_to_one_namespace() -> None:
    plans = [watcher_plans(scenario(), number) for number in range(3)]
    assert [[each.client for each in part] for part in plans] == [[0, 3, 6], [1, 4], [2, 5]]
    assert {each.namespace.name for each in plans[1]} == {"load/ns-1"}


def test_topics_that_would_outlive_the_run_are_refused() -> None:
    with pytest.raises(ValidationError, match="--topic-seconds 10 is not less"):
        scenario(topic_seconds=10)


def test_more_updates_than_a_run_keeps_are_refused() -> None:
    with pytest.raises(ValidationError, match="make 5,000,000 updates"):
        scenario(clients=50_000)
