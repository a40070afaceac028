"""Studies with real runs, in virtual time: a sweep in two processes, and the whole demo."""

import json
from pathlib import Path

from loadgen.errors import ExitCode
from loadgen.studies.demo import DemoOptions, run_demo
from loadgen.studies.sweep import SweepOptions, parse_varied, sweep


def test_a_sweep_has_equal_figures_in_worker_processes_and_in_this_process(tmp_path: Path) -> None:
    varied = [parse_varied("servers.profile=pulsar,floodgate")]
    done: list[int] = []
    points = sweep(
        SweepOptions("stuck", varied=varied, workers=2, out=tmp_path / "two"),
        done.append,
    )
    again = sweep(SweepOptions("stuck", varied=varied, out=tmp_path / "one"))
    assert done == [1, 2]
    assert [point.passed for point in points] == [False, True]
    assert points[0].missed == ("healthy.list.answered == 100%: 62.5 %",)
    assert [point.figures for point in points] == [point.figures for point in again]


def test_the_demo_compares_both_profiles_and_passes_its_checks(tmp_path: Path) -> None:
    options = DemoOptions(10_000, 1, clients=100, out=tmp_path, place="virtual")
    steps: list[str] = []
    found = run_demo(options, steps.append)
    off, pulsar, floodgate, *_ = found.runs
    assert max(off.of_servers("unread")) > max(pulsar.of_servers("unread"))
    assert [len(each.summary.expectations) for each in (off, pulsar, floodgate)] == [1, 5, 5]
    assert floodgate.summary.total.answered == 100
    assert [check.name for check in found.checks if not check.passed] == []
    sentences = {check.name: check.sentence for check in found.checks}
    assert "one client that reads nothing blocks all others" in sentences["stuck_starves_pulsar"]
    assert "healthy.list.answered == 100%: 100 %" in sentences["stuck-floodgate"]
    assert found.exit_code is ExitCode.PASSED
    assert found.last_words[0].startswith("Real consumers retry.")
    assert json.loads((tmp_path / "summary.json").read_text())["clients"] == 100
    assert steps[0] == "Limits off: 100 clients list topics at the same moment"
