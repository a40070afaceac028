"""The demo's second part passes only if it showed the truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadgen.demo.checks import stuck_checks
from tests.support.runs.stuck_runs import stuck_summaries


def failed(name: str = "", phase: str = "stuck", **changes: Any) -> set[str]:
    """Which checks fail when one phase of one run was otherwise."""
    runs = stuck_summaries()
    if name:
        figures = runs[name].stuck
        changed = replace(getattr(figures, phase), **changes)
        runs[name] = replace(runs[name], stuck=replace(figures, **{phase: changed}))
    return {check.name for check in stuck_checks(runs) if not check.passed}


def test_good_runs_pass_with_sentences() -> None:
    checks = stuck_checks(stuck_summaries())
    assert all(check.passed for check in checks)
    assert all(check.sentence.endswith(".") for check in checks)
    assert "Of 60 listings due while it was connected, 0 were answered" in checks[0].sentence


def test_a_reproduced_fault_gets_no_tick() -> None:
    starves, recovers, harmless = stuck_checks(stuck_summaries())
    assert starves.sentence.startswith("Reproduced: ")
    assert [check.mark for check in (starves, recovers, harmless)] == ["!", "✓", "✓"]


@pytest.mark.parametrize(
    "changes",
    [{"answered_in_phase": 1}, {"clients_refused": 9}, {"failed": 1}, {"requests": 0}],
)
def test_pulsar_that_serves_anybody_beside_the_peer_shows_nothing(changes: dict[str, int]) -> None:
    assert failed("stuck-pulsar", **changes) == {"stuck_starves_pulsar"}


@pytest.mark.parametrize("changes", [{"answered": 8}, {"requests": 0, "answered": 0}])
def test_pulsar_that_does_not_recover_fails(changes: dict[str, int]) -> None:
    assert failed("stuck-pulsar", "after", **changes) == {"stuck_leaves_pulsar"}


def test_floodgate_must_answer_everybody() -> None:
    runs = stuck_summaries()
    runs["stuck-floodgate"] = replace(
        runs["stuck-floodgate"], answered=79, refused={"TooManyRequests: full": 1}
    )
    (check,) = [check for check in stuck_checks(runs) if not check.passed]
    assert check.name == "stuck_harms_nobody_in_floodgate"
    assert "79 of 80 listings and refused 1" in check.sentence


def test_floodgate_must_lose_no_healthy_connection() -> None:
    runs = stuck_summaries()
    run = runs["stuck-floodgate"]
    runs["stuck-floodgate"] = replace(run, stuck=replace(run.stuck, connections_lost=1))
    assert [c.name for c in stuck_checks(runs) if not c.passed] == [
        "stuck_harms_nobody_in_floodgate"
    ]


def test_floodgate_without_a_peer_shows_nothing() -> None:
    assert failed("stuck-floodgate", requests=0) == {"stuck_harms_nobody_in_floodgate"}
