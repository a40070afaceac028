"""A simulation ends when it is told to: by the clock of who runs it, or by Ctrl-C."""

from __future__ import annotations

import gc
import signal
import weakref

import pytest

from loadgen.cluster import ClusterPlan, FurtherTopics, TopicsPlan
from loadgen.documents.reading import parse_document
from loadgen.errors import UsageError
from loadgen.virtual.loop import CutError
from loadgen.virtual.simulation import require_virtual, run_in_virtual_time, uncollected

DOCUMENT = parse_document("""
kind: discovery
cluster:
  topics: {namespaces: 2, per_namespace: 10}
load:
  groups: [{name: all, clients: 200}]
""")


def test_a_storm_is_cut_and_the_next_one_runs() -> None:
    # Given: time for the first namespace, and for 1,000 events
    asked = iter([True, True, True, False])
    # When
    with pytest.raises(CutError):
        run_in_virtual_time(DOCUMENT.scenario, DOCUMENT.cluster, may_go_on=lambda: next(asked))
    # Then
    assert not list(asked)
    run = run_in_virtual_time(DOCUMENT.scenario, DOCUMENT.cluster)
    assert run.reports[0].rows.num_rows == 200


def test_ctrl_c_ends_a_storm_where_it_is() -> None:
    # Given
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    asked = []

    def interrupted() -> bool:
        asked.append("may it go on?")
        signal.raise_signal(signal.SIGINT)
        return True

    # When
    try:
        with pytest.raises(KeyboardInterrupt):
            run_in_virtual_time(DOCUMENT.scenario, DOCUMENT.cluster, may_go_on=interrupted)
    finally:
        after = signal.signal(signal.SIGINT, before)
    # Then
    assert len(asked) == 1
    assert after is signal.default_int_handler


class Circle:
    def __init__(self) -> None:
        self.itself = self


def test_no_garbage_is_looked_for_while_a_simulation_runs() -> None:
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_a_simulation_left_in_circles_is_gone_behind_it() -> None:
    # Given
    with uncollected():
        left = weakref.ref(Circle())
        assert left() is not None
    # Then
    assert left() is None


def test_a_simulation_in_a_block_without_collector_leaves_it_off() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_more_topics_than_memory_may_hold_are_refused() -> None:
    # Given
    topics = TopicsPlan(
        namespaces=1, further=(FurtherTopics(namespaces=20, per_namespace=2_000_000),)
    )
    # Then
    with pytest.raises(UsageError, match=r"40,010,000 topics; .* at most 20,000,000 in memory"):
        require_virtual(DOCUMENT.scenario, ClusterPlan(topics=topics))


def test_namespaces_of_all_sizes_together_have_a_bound() -> None:
    with pytest.raises(ValueError, match="100,001 namespaces in all; at most 100,000"):
        TopicsPlan(namespaces=1, further=(FurtherTopics(namespaces=100_000, per_namespace=1),))
