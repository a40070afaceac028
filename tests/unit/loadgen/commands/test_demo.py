"""What a user types at `loadgen demo`, `picture` and `report`, and the sentences that come back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from loadgen.demo.result import DemoResult
from loadgen.demo.topics import topics_of_operator
from loadgen.results.checks import CheckResult
from loadgen.results.reading import load_summary

from loadgen.__main__ import main
from loadgen.report.drawing import LARGEST_PICTURE_BYTES
from tests.support.runs.client_memory_runs import write_client_memory_run
from tests.support.runs.run_directories import edit_json, write_three_runs
from tests.support.runs.stuck_runs import stuck_summaries, write_stuck_runs

if TYPE_CHECKING:
    from pathlib import Path


def call(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """The exit code of ``loadgen`` with these arguments."""
    monkeypatch.setattr("sys.argv", ["loadgen", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    code = ended.value.code
    return code if isinstance(code, int) else 0


@pytest.fixture
def demo_directory(tmp_path: Path) -> Path:
    write_three_runs(tmp_path / "runs", clients=60)
    write_stuck_runs(tmp_path / "runs")
    (tmp_path / "summary.json").write_text(json.dumps({"schema_version": 1}))
    return tmp_path


def test_picture_is_drawn_for_light_and_dark_pages(
    demo_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = demo_directory / "images"
    assert call(monkeypatch, "picture", "--demo", demo_directory, "--out", out) == 0
    assert {path.name for path in out.iterdir()} == {
        "demo.png",
        "demo-dark.png",
        "stuck.png",
        "stuck-dark.png",
    }
    assert all(path.stat().st_size <= LARGEST_PICTURE_BYTES for path in out.iterdir())


def test_a_rehearsal_has_a_picture_of_its_storms_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_three_runs(tmp_path / "runs", clients=20)
    (tmp_path / "summary.json").write_text(json.dumps({"schema_version": 1}))
    out = tmp_path / "images"
    assert call(monkeypatch, "picture", "--demo", tmp_path, "--out", out) == 0
    assert {path.name for path in out.iterdir()} == {"demo.png", "demo-dark.png"}


def test_a_run_of_client_memory_has_a_picture_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, out = write_client_memory_run(tmp_path / "run"), tmp_path / "images"
    assert call(monkeypatch, "picture", run, "--out", out) == 0
    assert {path.name for path in out.iterdir()} == {"client-memory.png", "client-memory-dark.png"}
    assert call(monkeypatch, "picture", run, run, "--out", out) == 2


def test_picture_without_a_demo_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "picture", "--demo", tmp_path) == 2
    assert "make one with `loadgen demo`" in capsys.readouterr().err


def test_report_is_made_again_from_directories(
    demo_directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = demo_directory / "again.html"
    runs = [demo_directory / "runs" / name for name in ("off", "floodgate")]
    assert call(monkeypatch, "report", *runs, "--out", out) == 0
    assert "no limit" in capsys.readouterr().out
    assert out.exists()


def test_report_of_nothing_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "report", tmp_path / "nothing") == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "is not a run directory" in error


@pytest.mark.parametrize(
    "arguments",
    [
        ("--topics", 5, "--namespaces", 10),
        ("--read-rate", "slow"),
        ("--executor", "cluster"),
        ("--clients", 0),
        ("--nonsense",),
        ("--topics", "no-such-file"),
        ("--topics", 0),
        ("--namespace", "a/b"),
        ("--skip-invalid",),
        ("--broker-conf", "no-such-file"),
    ],
)
def test_bad_demo_options_start_nothing(
    arguments: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loadgen.commands.demo.run_demo", pytest.fail, raising=False)
    assert call(monkeypatch, "demo", "--out", tmp_path, *arguments) == 2


def test_topics_that_are_neither_a_number_nor_a_file_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "demo", "--topics", "topics.tx") == 2
    error = capsys.readouterr().err
    assert error.startswith("loadgen: --topics topics.tx is neither a number (50000, 1M) nor a ")
    assert error.count("\n") == 1


def test_a_file_of_topics_is_a_rehearsal_and_says_what_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given
    (tmp_path / "topics.txt").write_text("persistent://a/b/c\npersistent://a/d/e\n")
    (tmp_path / "broker.conf").write_text("brokerServicePort=6650\n")
    asked = []
    result = DemoResult({}, {}, [], tmp_path / "r", tmp_path / "s", 1.0, hidden="It is small.")
    monkeypatch.setattr(
        "loadgen.commands.demo.run_demo", lambda options, _: asked.append(options) or result
    )
    # When
    files = ("--topics", tmp_path / "topics.txt", "--broker-conf", tmp_path / "broker.conf")
    assert call(monkeypatch, "demo", *files, "--namespace", "a/b", "--out", tmp_path) == 0
    # Then
    (options,) = asked
    assert options.topics.topics == 2
    assert (options.own.broker.file, options.own.proxy) == (tmp_path / "broker.conf", None)
    assert options.namespaces == ("a/b",)
    printed = capsys.readouterr().out
    assert "as all is local here: brokerServicePort." in printed
    assert "Without --proxy-conf there is no proxy: clients ask the broker." in printed
    assert "! It is small." in printed


def test_a_rehearsals_proxy_has_the_operators_proxy_conf(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given
    path = tmp_path / "proxy.conf"
    path.write_text("servicePort=6651\n")
    asked = []
    result = DemoResult({}, {}, [], tmp_path / "r", tmp_path / "s", 1.0)
    monkeypatch.setattr(
        "loadgen.commands.demo.run_demo", lambda options, _: asked.append(options) or result
    )
    # When
    assert call(monkeypatch, "demo", "--proxy-conf", path, "--out", tmp_path) == 0
    # Then
    proxy = asked[0].own.proxy
    assert (proxy.role, proxy.file, proxy.keys) == ("proxy", path, {"servicePort": "6651"})


def test_invalid_topics_of_a_file_can_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given
    path, asked = tmp_path / "topics.txt", []
    path.write_text("persistent://a/b/c\nbroken\n")
    fine = tmp_path / "fine.txt"
    fine.write_text("persistent://a/b/c\n")
    result = DemoResult({}, {}, [], tmp_path / "r", tmp_path / "s", 1.0)
    monkeypatch.setattr(
        "loadgen.commands.demo.run_demo", lambda options, _: asked.append(options) or result
    )
    # When it is not said, it ends before anything runs
    assert call(monkeypatch, "demo", "--topics", path, "--out", tmp_path) == 2
    assert asked == []
    assert "leave invalid topics out with --skip-invalid" in capsys.readouterr().err
    # And when it is, the brokers are told so
    assert call(monkeypatch, "demo", "--topics", path, "--skip-invalid", "--out", tmp_path) == 0
    importing = topics_of_operator(asked[0].topics, ()).import_arguments
    assert importing == ("--import", str(path), "--skip-invalid")
    assert "line 2: 'broken' is not a full topic name" in capsys.readouterr().out
    # Also where only they find what is invalid, as they look at more than names
    assert call(monkeypatch, "demo", "--topics", fine, "--skip-invalid", "--out", tmp_path) == 0
    importing = topics_of_operator(asked[1].topics, ()).import_arguments
    assert importing == ("--import", str(fine), "--skip-invalid")


def test_namespaces_to_make_do_not_go_with_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "topics.txt").write_text("persistent://a/b/c\n")
    path = tmp_path / "topics.txt"
    assert call(monkeypatch, "demo", "--topics", path, "--namespaces", 3) == 2
    assert "--namespaces needs a number of topics" in capsys.readouterr().err


def test_interrupted_demo_says_that_everything_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("loadgen.commands.demo.run_demo", interrupt)
    assert call(monkeypatch, "demo", "--out", tmp_path) == 130
    assert "broker, proxy and Spark are stopped" in capsys.readouterr().err


def test_failed_check_is_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a demo with a check that failed
    checks = [CheckResult("x", False, "The effect was [hidden].")]
    result = DemoResult({}, {}, checks, tmp_path / "report.html", tmp_path / "summary.json", 1.0)
    monkeypatch.setattr("loadgen.commands.demo.run_demo", lambda *_: result)

    # Then the process says so, in words and in its code
    assert call(monkeypatch, "demo", "--out", tmp_path) == 99
    assert "✗ The effect was [hidden]." in capsys.readouterr().out


def test_both_parts_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given
    checks = [CheckResult("x", True, "Fine.")]
    paths = (tmp_path / "report.html", tmp_path / "summary.json")
    result = DemoResult(stuck_summaries(), stuck_summaries(), checks, *paths, 1.0)
    monkeypatch.setattr("loadgen.commands.demo.run_demo", lambda *_: result)
    # When / Then
    assert call(monkeypatch, "demo", "--out", tmp_path) == 0
    assert capsys.readouterr().out.count("answered in that time") == 2


def test_late_generator_is_said_in_plain_words_and_fails_nothing(
    demo_directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a demo during which the machine was busy for a moment
    late = {"generator_limited": True, "start_error_seconds_max": 0.073}
    edit_json(demo_directory / "runs" / "pulsar" / "summary.json", **late)
    names = ("off", "pulsar", "floodgate")
    summaries = {name: load_summary(demo_directory / "runs" / name) for name in names}
    page, figures = demo_directory / "report.html", demo_directory / "summary.json"
    result = DemoResult(summaries, {}, [CheckResult("x", True, "Fine.")], page, figures, 1.0)
    monkeypatch.setattr("loadgen.commands.demo.run_demo", lambda *_: result)

    # Then that run alone says so
    assert call(monkeypatch, "demo", "--out", demo_directory) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("! ")]
    assert len(told) == 1
    assert told[0].startswith("! Limits on, profile pulsar: The load generator began 73 ms late")
