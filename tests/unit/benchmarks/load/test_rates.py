"""Both sides of the benchmark do the same amount of work, and ratios are those of one round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from benchmarks.load.rates import ask, figures_of, large_run, plain_topics
from loadgen.results.results import QUERIES
from loadgen.topics.plan import TopicPlan

if TYPE_CHECKING:
    from pathlib import Path


def test_a_plain_loop_makes_as_many_names_as_a_plan_has(tmp_path: Path) -> None:
    plain_topics(TopicPlan(1_000, 10, seed=1), tmp_path / "plain.parquet")
    names = pq.read_table(tmp_path / "plain.parquet")["topic"].to_pylist()
    assert names == sorted(set(names))
    assert (len(names), sum(map(len, names)) // 1_000) == (1_000, 100)


def test_a_run_is_as_large_as_it_has_to_be_and_answers_all_questions(tmp_path: Path) -> None:
    directory = large_run(tmp_path, 5_000)
    assert pq.read_table(directory / "requests").num_rows == 5_000
    ask(directory, *QUERIES)


def test_ratios_are_those_of_a_round() -> None:
    sides = ("topics", "plain topics", "by-group", "all questions", "count by group")
    figures = figures_of(
        100, [dict.fromkeys(sides, 2.0), {**dict.fromkeys(sides, 1.0), "topics": 2.0}]
    )
    found = {figure.name: figure.values for figure in figures}
    assert found["topics made, one process"] == [50, 50]
    assert found["topics / plain loop"] == [1, 0.5]
