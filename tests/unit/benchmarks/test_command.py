import json
from io import StringIO
from pathlib import Path

from rich.console import Console
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.registry import BENCHES
from benchmarks.result import BenchOptions, BenchResult, Figure
from benchmarks.tables import TERMINAL_COLUMNS, result_table


def test_a_run_leaves_its_figures_in_the_results_file(tmp_path: Path) -> None:
    arguments = ["--only", "limiter", "--rounds", "2", "--seconds", "0.02", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    written = json.loads((tmp_path / "results.json").read_text())
    assert written == json.loads(done.stdout)
    figures = written["benchmarks"]["limiter"]["figures"]
    assert {len(figure["values"]) for figure in figures} == {2}
    assert all(figure["median"] > 0 for figure in figures)


def test_an_unknown_benchmark_is_refused_with_the_names_there_are() -> None:
    done = CliRunner().invoke(app, ["--only", "nothing"])
    assert done.exit_code == 2
    assert "'nothing' is none of" in done.output


def test_every_benchmark_of_the_registry_can_be_imported() -> None:
    for bench in BENCHES.values():
        module = __import__(bench.module, fromlist=["run"])
        assert callable(module.run), bench.module


def test_a_table_fits_a_hundred_columns() -> None:
    figures = [Figure("a name " * 12, "listings/s", [1234567.0, 1.0], goal=200_000.0)]
    page = StringIO()
    table = result_table("title", BenchResult(figures, ["a remark " * 30]))
    Console(file=page, width=2 * TERMINAL_COLUMNS).print(table)
    assert max(len(line.rstrip()) for line in page.getvalue().splitlines()) <= TERMINAL_COLUMNS


def test_a_goal_that_is_not_to_be_exceeded_is_shown_as_one() -> None:
    figures = [Figure("time", "times", [1.2], goal=1.5, at_most=True), Figure("rate", "1/s", [1.0])]
    page = StringIO()
    Console(file=page, width=TERMINAL_COLUMNS).print(result_table("", BenchResult(figures)))
    assert "≤ 1.5 met" in page.getvalue()


def test_the_options_of_a_run_are_seven_rounds_of_two_seconds() -> None:
    assert (BenchOptions().rounds, BenchOptions().seconds) == (7, 2.0)
