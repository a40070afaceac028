import json
from pathlib import Path

from tests.fuzz.__main__ import table
from tests.fuzz.campaign import Outcome, _add, amounts
from tests.fuzz.registry import TARGETS


def test_the_whole_amounts_are_ten_millions() -> None:
    whole = amounts(None, None, 1.0)
    assert sum(whole.values()) >= 10_000_000
    assert min(whole.values()) >= 50_000
    assert amounts(["frames"], 5, 1.0) == {"frames": 5}
    assert set(amounts(None, None, 1e-9).values()) == {1}
    assert set(whole) == set(TARGETS)


def test_figures_of_several_processes_are_added_up(tmp_path: Path) -> None:
    figures = {"inputs": 10, "refused": 1, "seconds": 1.0, "cpu_seconds": 1.0}
    figures |= {"longest_turn_ms": 3.0, "finds": {"x": 2}, "frames": 10, "valid": 4}
    (tmp_path / "figures.json").write_text(json.dumps(figures))
    outcome = Outcome("frames", seconds=2.0)
    for _ in range(2):
        _add(outcome, tmp_path / "figures.json")
    _add(outcome, tmp_path / "nothing.json")
    assert (outcome.inputs, outcome.finds, outcome.valid_share) == (20, {"x": 4}, 0.4)
    assert not outcome.found_nothing
    assert [list(column.cells) for column in table([outcome]).columns][1] == ["20", "20"]
