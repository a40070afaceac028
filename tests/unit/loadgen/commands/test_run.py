from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadgen.__main__ import main
from loadgen.clients.records import RequestCounters
from loadgen.commands.run_outcome import fail_if_invalid, show
from loadgen.commands.scenario_options import (
    make_scenario,
    scenario_of,
    scenario_parameters,
)
from loadgen.documents.kinds import is_in_documents_only
from loadgen.errors import ExitCode, LoadgenError, UsageError
from loadgen.run.options import RunOptions
from loadgen.run.run import RunResult, execute
from loadgen.scenario import NamespaceExpectation, Scenario
from loadgen.scenarios.registry import SCENARIOS
from loadgen.scenarios.storm.scenario import StormScenario
from loadgen.scenarios.stuck.scenario import StuckScenario
from loadgen.topics.manifest import expected_namespaces
from loadgen.units import parse_read_rate, parse_size
from tests.support.runs.stuck_runs import summary_json, unharmed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.documents.document import Document
    from loadgen.scenarios.kind import ScenarioKind

SCENARIO = StormScenario(
    service_url="pulsar://127.0.0.1:1", namespaces=(NamespaceExpectation(name="a/b"),), clients=4
)
VIRTUAL = ("--executor", "virtual")
STUCK = StuckScenario(service_url=SCENARIO.service_url, namespaces=SCENARIO.namespaces)
SUMMARY = {
    "schema_version": 1,
    "name": "n",
    "label": "n",
    "clients": 4,
    "answered": 3,
    "refused": {"TooManyRequests: full": 1},
    "wrong": 0,
    "timeout": 0,
    "disconnected": 0,
    "unreachable": 0,
    "latency_seconds": {"p50": 1, "p90": 1, "p99": 1, "p999": 1, "max": 1},
    "service_latency_seconds": None,
    "bytes": 1,
    "duration_seconds": 1,
    "start_error_seconds_max": 0.0,
    "client_start_error_seconds_max": 0.0,
    "generator_limited": False,
    "interrupted": False,
    "processes": {},
}


def result(**changes) -> RunResult:
    return RunResult(Path("out/runs/n"), {**SUMMARY, **changes}, ("it is wrong",))


def write_manifest(directory: Path) -> Path:
    entry = {"topics": 3, "hash": "0badcafe", "name_bytes": 9}
    namespaces = {"a/one": entry, "a/two": {**entry, "topics": 4}}
    content = {"schema_version": 1, "seed": 1, "topics": 7, "shape": {}, "namespaces": namespaces}
    (directory / "_manifest.json").write_text(json.dumps(content))
    return directory


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("100kB/s", 100_000), ("1MiB/s", 1_048_576), ("0", 0), ("1.5 M", 1_500_000),
        ("64KiB", 65_536), ("10K", 10_000), ("12345B/s", 12_345), ("1MB", 1_000_000),
        ("100kb/s", 100_000), ("64kib", 65_536),
    ],
)  # fmt: skip
def test_read_rates(text: str, rate: float) -> None:
    assert parse_read_rate(text) == rate


@pytest.mark.parametrize("text", ["fast", "-1", "", "1TB", "1kb/min"])
def test_other_read_rates_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--read-rate"):
        parse_read_rate(text)


def test_a_wrong_read_rate_is_quoted_as_it_was_typed() -> None:
    with pytest.raises(UsageError, match=r"^--read-rate '1xx' is not"):
        parse_read_rate("1xx")


def test_other_sizes_are_refused_by_the_name_of_their_option() -> None:
    assert parse_size("--receive-buffer", "64KiB") == 65_536
    with pytest.raises(UsageError, match=r"^--receive-buffer 'big' is .* such as 100kB or 1MiB$"):
        parse_size("--receive-buffer", "big")


def test_a_corpus_names_the_namespaces_and_what_they_hold(tmp_path) -> None:
    found = expected_namespaces(write_manifest(tmp_path), [])
    assert [(each.name, each.topics, each.hash) for each in found] == [
        ("a/one", 3, "0badcafe"),
        ("a/two", 4, "0badcafe"),
    ]


def test_named_namespaces_of_a_corpus_are_chosen_from_it(tmp_path) -> None:
    corpus = write_manifest(tmp_path)
    assert [each.topics for each in expected_namespaces(corpus, ["a/two"])] == [4]
    with pytest.raises(UsageError, match=r"a/three is not in .*_manifest\.json"):
        expected_namespaces(corpus, ["a/three"])


def test_without_a_corpus_nothing_is_known_of_a_namespace() -> None:
    assert expected_namespaces(None, ["a/b"]) == (NamespaceExpectation(name="a/b"),)
    with pytest.raises(UsageError, match="--corpus DIR"):
        expected_namespaces(None, [])
    with pytest.raises(UsageError, match="tenant/namespace"):
        expected_namespaces(None, ["public"])


def test_a_wrong_parameter_is_named_by_its_option() -> None:
    values = SCENARIO.model_dump(exclude={"kind"})
    with pytest.raises(UsageError, match=r"--read-rate -1"):
        make_scenario("storm", **{**values, "read_rate_bytes_per_second": -1})


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        ("storm", {"stuck_pipelined": 9}, "--stuck-pipelined belongs to --scenario stuck: leave"),
        ("storm", {"stuck_namespaces": ()}, "--stuck-namespace belongs to --scenario stuck"),
        ("stuck", {"spread_seconds": 3.0}, "--spread-seconds belongs to --scenario storm: leave"),
        ("stuck", {"seed": 1}, "--seed belongs to --scenario storm: leave it out with stuck"),
        ("stuck", {"stuck_peers": -1}, "--stuck-peers -1: must be at least 0"),
        ("stuck", {"interval_seconds": 0.0}, "--interval-seconds 0.0: must be at least 0.001"),
        ("stuck", {"duration_seconds": 1.0}, "^--stuck-at-seconds 2 is not before the end of"),
    ],
)
def test_stuck_options_that_do_not_fit_are_one_sentence(
    kind: str, options: dict[str, object], sentence: str
) -> None:
    given = {"service_url": SCENARIO.service_url, "namespaces": SCENARIO.namespaces}
    with pytest.raises(UsageError, match=sentence):
        make_scenario(kind, **given, **options)


def test_what_was_not_given_takes_the_scenarios_own_default() -> None:
    given = {"service_url": SCENARIO.service_url, "namespaces": SCENARIO.namespaces}
    nothing = {"clients": None, "read_rate_bytes_per_second": None, "stuck_peers": None}
    storm, stuck = (make_scenario(kind, **given, **nothing) for kind in ("storm", "stuck"))
    assert (storm.clients, storm.read_rate_bytes_per_second) == (1000, 100_000)
    assert isinstance(stuck, StuckScenario)
    assert (stuck.clients, stuck.read_rate_bytes_per_second, stuck.stuck_peers) == (10, 0, 1)


def given_on_the_command_line(**given) -> Scenario:
    """A scenario ``stuck`` of these options alone."""
    nothing = dict.fromkeys(each.name for each in scenario_parameters())
    return scenario_of(
        {**nothing, "scenario": "stuck", "service_url": SCENARIO.service_url, **given}
    )


def test_stuck_namespaces_of_a_corpus_are_chosen_from_it(tmp_path) -> None:
    corpus = write_manifest(tmp_path)
    assert given_on_the_command_line(corpus=corpus, stuck_namespaces=[]).stuck_namespaces == ()
    chosen = given_on_the_command_line(corpus=corpus, stuck_namespaces=["a/two"])
    assert [each.topics for each in chosen.stuck_namespaces] == [4]
    with pytest.raises(UsageError, match=r"^--stuck-namespace a/three is not in"):
        given_on_the_command_line(corpus=corpus, stuck_namespaces=["a/three"])


def test_sizes_and_speeds_are_read_by_the_ends_of_their_fields_names() -> None:
    found = given_on_the_command_line(
        namespaces=["a/b"],
        read_rate_bytes_per_second="1kB/s",
        stuck_receive_buffer_bytes="1KiB",
    )
    assert (found.read_rate_bytes_per_second, found.stuck_receive_buffer_bytes) == (1000, 1024)


@pytest.mark.parametrize("kind", SCENARIOS.values(), ids=list(SCENARIOS))
def test_every_field_of_a_scenario_is_an_option_with_help_and_a_default(kind: ScenarioKind) -> None:
    # When
    options = {each.name: each.annotation.__metadata__[0] for each in scenario_parameters()}
    # Then
    for field, info in kind.model.model_fields.items():
        if field == "kind" or is_in_documents_only(field, info):
            continue
        assert options[field].help, field
        own = field not in Scenario.model_fields
        panel = options[field].rich_help_panel
        # Scenarios may share an option.
        assert (
            panel is None if not own else kind.name in panel.removeprefix("Scenario ").split(", ")
        )
        assert r"\[default: " in options[field].help or not own


@pytest.mark.parametrize("option", ["--stuck-read-rate", "--stuck-receive-buffer"])
def test_a_stuck_peers_size_that_is_none_is_refused_by_its_option(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--service-url", SCENARIO.service_url, "--namespace", "a/b", option, "much"]
    monkeypatch.setattr("sys.argv", ["loadgen", "run", "--scenario", "stuck", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == ExitCode.USAGE
    assert f"{option} 'much" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--service-url", "foo"], "loadgen: --service-url 'foo': not of the form pulsar://host"),
        (
            ["--service-url", "http://a:1"],
            "loadgen: --service-url 'http://a:1': not of the form pulsar://host:port\n",
        ),
        (["--executor", "sprk"], "for '--executor': 'sprk' is not one of 'spark', 'process'"),
        (["--clients", "ten"], "for '--clients': 'ten' must be a whole number"),
        (["--timeout-seconds", "soon"], "for '--timeout-seconds': 'soon' must be a number"),
        (["--clients", "0"], "loadgen: --clients 0: must be at least 1\n"),
        (["--repeats", "0", "--dry-run"], "loadgen: --repeats 0: must be 1 to 1,000\n"),
        (["--corpus", __file__], "a corpus is a folder, as `loadgen topics` makes it\n"),
    ],
)
def test_a_wrong_option_is_one_sentence_before_anything_is_asked(
    arguments: list[str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    given = ["--service-url", SCENARIO.service_url, "--namespace", "a/b", *arguments]
    monkeypatch.setattr("sys.argv", ["loadgen", "run", *given])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == ExitCode.USAGE
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "loadgen: no scenario given: name one (`loadgen scenarios` lists them)"),
        (["--scenario", "strom"], "there is no scenario 'strom'; did you mean storm?"),
        (
            ["storm", "--scenario", "stuck"],
            "storm and --scenario stuck name two scenarios: give one of them",
        ),
        (["storm", "--stuck-peers", "2"], "--stuck-peers belongs to --scenario stuck: leave it"),
        (["storm", "--clients", "0"], "loadgen: --clients 0: must be at least 1\n"),
        (["storm", "--family", "go"], "--family is for scenarios with groups; storm has none\n"),
        (["storm", "--profile", "pulsr"], "--profile 'pulsr' does not exist; did you mean pulsar?"),
        (["restart-storm", "--family", "gopher"], "--family 'gopher' is none; there are once, pol"),
        (["restart-storm", "--clients", "4"], "--clients 4: the scenario has 5 groups of at least"),
        (["storm", "--namespace", "a/b"], "--namespace a/b needs a server that has it: add its"),
        (["--scenario", "client-memory", "--tasks", "2"], "--tasks 2 does not fit 1 client: "),
        (["storm", *VIRTUAL, "--service-url", "pulsar://127.0.0.1:1"], ": leave out --service-url"),
        (["storm", *VIRTUAL, "--abort-early"], "is not ended early: leave out --abort-early"),
        (["watch-churn", *VIRTUAL, "--dry-run"], "watch-churn does not run in virtual time"),
    ],
)
def test_a_scenario_that_cannot_be_run_is_one_sentence_before_a_server_is_started(
    words: list[str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Given
    @contextmanager
    def cluster_for(document: Document, options: RunOptions, _: object, **more) -> Iterator[object]:
        yield document.scenario, options

    monkeypatch.setattr("loadgen.commands.run.cluster_for", cluster_for)
    monkeypatch.setattr("sys.argv", ["loadgen", "run", "--executor", "process", *words])
    # When
    with pytest.raises(SystemExit) as ended:
        main()
    # Then
    assert ended.value.code == ExitCode.USAGE
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"executor": "threads"}, "is none of spark, process, virtual"),
        ({"tasks": 5}, "does not fit 4 clients"),
        ({"name": "a/b"}, "name of a run's directory"),
        ({"broker_pid": 1}, "--broker-pid needs --broker-admin-url"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_anything_is_touched(
    options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        execute(SCENARIO, RunOptions(**{"name": "n", **options}))


def test_an_unreachable_server_is_one_sentence(tmp_path) -> None:
    with pytest.raises(LoadgenError, match=r"pulsar://127\.0\.0\.1:1 cannot be reached") as caught:
        execute(SCENARIO, RunOptions("n", out=tmp_path))
    assert caught.value.exit_code is ExitCode.INTERNAL
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"wrong": 1}, ExitCode.CORRECTNESS),
        ({"wrong": 1, "generator_limited": True}, ExitCode.CORRECTNESS),
        ({"generator_limited": True}, ExitCode.GENERATOR_LIMITED),
        ({"generator_limited": True, "interrupted": True}, ExitCode.INTERRUPTED),
        ({"wrong": 1, "interrupted": True}, ExitCode.CORRECTNESS),
        ({"answered": 0, "refused": {}, "unreachable": 4}, ExitCode.INTERNAL),
        ({"held": ["7 MB of heap memory in the broker"]}, ExitCode.CORRECTNESS),
        ({"aborted": "list.wrong.count == 0", "interrupted": True}, ExitCode.THRESHOLDS),
    ],
)
def test_runs_that_say_nothing_about_the_server_fail(changes, code: ExitCode) -> None:
    with pytest.raises(LoadgenError) as caught:
        fail_if_invalid(result(**changes), SCENARIO)
    assert caught.value.exit_code is code


def test_peers_that_could_not_connect_fail_the_run() -> None:
    with pytest.raises(LoadgenError, match=r"2 of 3 stuck peers could not connect; .*\.parquet"):
        fail_if_invalid(result(stuck={"peers": 3, "unreachable": 2}), STUCK)


def test_a_namespace_that_lists_nothing_fails_the_run_unless_that_is_said() -> None:
    # Given
    empty = RunResult(Path("out/runs/n"), SUMMARY, empty_namespaces=("a/b", "a/c"))
    # When, Then
    with pytest.raises(LoadgenError, match=r"2 namespaces listed no topics: a/b, a/c\. Check"):
        fail_if_invalid(empty, SCENARIO)
    fail_if_invalid(empty, SCENARIO, allow_empty=True)


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    """Run the command on a namespace that lists nothing."""

    def listed_nothing(_: object, options: RunOptions) -> RunResult:
        options.on_progress(RequestCounters(connected=1))
        return RunResult(Path("out/runs/n"), SUMMARY, empty_namespaces=("a/b",))

    monkeypatch.setattr("loadgen.commands.run.execute", listed_nothing)
    where = ["--service-url", "pulsar://127.0.0.1:1", "--namespace", "a/b"]
    monkeypatch.setattr(sys, "argv", ["loadgen", "run", *where, *options])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_that_a_namespace_is_empty_is_said_on_the_command_line(monkeypatch) -> None:
    assert run(monkeypatch) == ExitCode.INTERNAL
    assert run(monkeypatch, "--allow-empty") == ExitCode.PASSED


@pytest.mark.parametrize(
    ("executor", "first"),
    [("spark", "starting Spark, which takes some seconds"), ("process", "connecting")],
)
def test_what_takes_a_while_is_said_first(monkeypatch, capsys, executor: str, first: str) -> None:
    run(monkeypatch, "--executor", executor)
    assert capsys.readouterr().err.startswith(f"{first}\n")


def test_with_json_nothing_but_the_error_is_beside_the_summary(monkeypatch, capsys) -> None:
    # When
    run(monkeypatch, "--json")
    # Then
    said = capsys.readouterr()
    (error,) = map(json.loads, said.err.splitlines())
    assert error["error"].startswith("1 namespace listed no topics: a/b.")
    assert json.loads(said.out) == SUMMARY


def test_a_late_generator_is_told_what_to_change() -> None:
    with pytest.raises(LoadgenError, match="--spread-seconds"):
        fail_if_invalid(result(generator_limited=True), SCENARIO)
    stuck = summary_json("x", unharmed()) | {"generator_limited": True}
    with pytest.raises(LoadgenError, match="--interval-seconds"):
        fail_if_invalid(RunResult(Path("out/runs/n"), stuck), STUCK)


def test_refusals_alone_do_not_fail_a_run() -> None:
    fail_if_invalid(result(answered=0, refused={"TooManyRequests: full": 4}), SCENARIO)
    assert result().exit_code is ExitCode.PASSED


def test_json_is_the_summary_and_nothing_else(capsys) -> None:
    show(result(), as_json=True)
    assert json.loads(capsys.readouterr().out) == SUMMARY


def test_people_get_a_table_and_the_place_of_everything(capsys) -> None:
    show(result(), as_json=False)
    printed = capsys.readouterr().out
    assert "answered" in printed
    assert "out/runs/n" in printed


MISSED = {"threshold": "list.response.p99 < 1s", "passed": False, "value": 2.0, "found": "2.00 s"}


def test_a_missed_threshold_fails_the_run_after_all_that_makes_figures_invalid(capsys) -> None:
    # Given
    missed = result(thresholds=[MISSED, {**MISSED, "passed": True}])
    # When
    with pytest.raises(LoadgenError, match=r"^1 threshold missed: .* < 1s \(2.00 s\)$") as caught:
        fail_if_invalid(missed, SCENARIO)
    show(missed, as_json=False)
    # Then
    assert caught.value.exit_code is missed.exit_code is ExitCode.THRESHOLDS
    assert "list.response.p99 < 1s" in capsys.readouterr().out
    late = result(thresholds=[MISSED], generator_limited=True)
    assert late.exit_code is ExitCode.GENERATOR_LIMITED


@pytest.mark.parametrize(
    ("threshold", "sentence"),
    [
        ("list.response.p99 < 2", "loadgen: threshold 'list.response.p99 < 2': "),
        ("broker.resident.max < 1GiB", "name --broker-admin-url"),
    ],
)
def test_a_threshold_that_cannot_be_judged_is_refused_before_anything_is_asked(
    threshold: str, sentence: str, monkeypatch, capsys
) -> None:
    where = ["--service-url", "pulsar://127.0.0.1:1", "--namespace", "a/b"]
    words = ["--executor", "process", "--threshold", threshold]
    monkeypatch.setattr(sys, "argv", ["loadgen", "run", *where, *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == ExitCode.USAGE
    assert sentence in capsys.readouterr().err
