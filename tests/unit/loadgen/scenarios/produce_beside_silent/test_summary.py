"""The verdict on a run beside silent clients."""

from __future__ import annotations

import pytest

from loadgen.scenarios.produce_beside_silent.summary import verdict

SILENT = {"closed": 1, "held_up": 2}


def figures(requests: int = 100, answered: int = 100, p99: float = 0.002) -> dict[str, object]:
    """Return those of a run whose producers waited 1 ms before."""
    before = {"requests": 100, "answered": 100, "latency_seconds": {"p99": 0.001}}
    beside = {"requests": requests, "answered": answered, "latency_seconds": {"p99": p99}}
    return {"peers": 3, "phases": {"before": before, "stuck": beside}}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "Silent clients held up nobody but themselves: p99 1.0 ms before, 2.0 ms beside"),
        ({"p99": 0.5}, "Silent clients slowed the producers beside them: p99 1.0 ms before, 500.0"),
        ({"answered": 60}, "hurt the producers beside them: 40 of 100 messages got no receipt"),
        ({"requests": 0, "answered": 0}, "Nothing was due before or beside the silent clients"),
    ],
)
def test_the_verdict(changes: dict[str, float], sentence: str) -> None:
    text = verdict(figures(**changes), SILENT)
    assert sentence in text
    assert text.endswith("(of 3 silent clients 1 closed, 2 held up).")
