"""A simulation ends when it is told to: by the clock of who runs it, or by Ctrl-C."""

from __future__ import annotations

import signal

import pytest

from loadgen.documents.reading import parse_document
from loadgen.virtual.loop import CutError
from loadgen.virtual.simulation import run_in_virtual_time

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
