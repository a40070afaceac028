"""The demo's story with stand-ins for servers and storm: order, files, verdict, exit code."""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from loadgen.commands.demo import show
from loadgen.topics.reading import OwnTopics, read_own_topics
from loadgen.topics.plan import TopicPlan
from loadgen.demo.demo import run_demo
from loadgen.demo.result import DemoOptions
from loadgen.errors import ExitCode, LoadgenError
from loadgen.live.steps import StepDisplay
from loadgen.places.operator_files import OwnCluster, OwnServer, read_own_server
from loadgen.run.run import RunResult
from loadgen.places.server_process import ServerLaunch, ServerProcess
from tests.support.runs.run_directories import STORMS, edit_json, write_run
from tests.support.runs.stuck_runs import write_stuck_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadgen.demo.result import DemoResult
    from loadgen.run.options import RunOptions
    from loadgen.scenarios.storm.scenario import StormScenario

CLIENTS = 40


class Stage:
    """Stands in for servers and storm and writes down what happens."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.launches: list[ServerLaunch] = []
        self.scenarios: list[StormScenario] = []
        self.wrong: dict[str, int] = {}
        self.interrupted: set[str] = set()
        self.unseen: set[str] = set()

    @contextmanager
    def running_server(self, launch: ServerLaunch) -> Iterator[ServerProcess]:
        self.launches.append(launch)
        self.events.append(f"start {launch.module}")
        port = 7000 + len(self.launches)
        url = f"pulsar://127.0.0.1:{port}"
        try:
            yield ServerProcess(launch.module, port, url, "http://127.0.0.1:1")
        finally:
            self.events.append(f"stop {launch.module}")

    def execute(self, scenario: StormScenario, options: RunOptions) -> Any:
        self.scenarios.append(scenario)
        self.events.append(f"storm {options.name}")
        if options.name.startswith("stuck-"):
            return self._beside_a_peer(options)
        storm = next(storm for storm in STORMS if storm.name == options.name)
        directory = write_run(options.out / options.name, storm, CLIENTS)
        edit_json(directory / "summary.json", wrong=self.wrong.get(options.name, 0))
        summary = json.loads((directory / "summary.json").read_text())
        for process in summary["processes"].values() if options.name in self.unseen else ():
            process["outbound_pending_peak_bytes"] = 0
        return RunResult(directory, {**summary, "interrupted": options.name in self.interrupted})

    def _beside_a_peer(self, options: RunOptions) -> Any:
        directory = write_stuck_run(options.out / options.name)
        edit_json(directory / "summary.json", wrong=self.wrong.get(options.name, 0))
        summary = json.loads((directory / "summary.json").read_text())
        return RunResult(directory, {**summary, "interrupted": options.name in self.interrupted})


def set_up(patch: pytest.MonkeyPatch) -> Stage:
    stage = Stage()
    for module in ("demo", "stuck"):
        patch.setattr(f"loadgen.demo.{module}.running_server", stage.running_server)
        patch.setattr(f"loadgen.demo.{module}.execute", stage.execute)
    return stage


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return set_up(monkeypatch)


@dataclass(frozen=True)
class Shown:
    """A demo that has ended well, with all its defaults."""

    stage: Stage
    out: Path
    result: DemoResult
    printed: str


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    out = tmp_path_factory.mktemp("shown")
    with pytest.MonkeyPatch.context() as patch:
        stage = set_up(patch)
        return Shown(stage, out, *run(out))


def run(out: Path, **given: Any) -> tuple[DemoResult, str]:
    console = Console(file=io.StringIO(), width=100)
    values: dict[str, Any] = {
        "topics": TopicPlan(400, 4, 7),
        "clients": CLIENTS,
        "read_rate_bytes_per_second": 100_000.0,
        "out": out,
        "executor": "process",
    }
    options = DemoOptions(**{**values, **given})
    with StepDisplay(console).shown() as steps:
        result = run_demo(options, steps)
    assert isinstance(console.file, io.StringIO)
    return result, console.file.getvalue()


def test_every_run_has_fresh_servers(shown: Shown) -> None:
    expected = [
        event
        for name in ("off", "pulsar", "floodgate")
        for event in ("start broker", "start proxy", f"storm {name}", "stop proxy", "stop broker")
    ]
    assert shown.stage.events[: len(expected)] == expected


def test_the_second_part_has_a_fresh_broker_for_each_profile(shown: Shown) -> None:
    expected = [
        event
        for name in ("stuck-pulsar", "stuck-floodgate")
        for event in ("start broker", f"storm {name}", "stop broker")
    ]
    assert shown.stage.events[-len(expected) :] == expected
    profiles = [launch.settings["floodgateProfile"] for launch in shown.stage.launches[-2:]]
    assert profiles == ["pulsar", "floodgate"]


def test_the_second_part_asks_the_broker_for_its_own_topics(shown: Shown) -> None:
    stage = shown.stage
    assert stage.launches[-1].arguments == ("--import", str(shown.out / "stuck-topics"))
    scenario = stage.scenarios[-1]
    assert scenario.service_url == f"pulsar://127.0.0.1:{7000 + len(stage.launches)}"
    assert [namespace.topics for namespace in scenario.namespaces] == [4000]
    assert all(namespace.hash for namespace in scenario.namespaces)


def test_interrupted_storm_ends_the_demo(stage: Stage, tmp_path: Path) -> None:
    # Given
    stage.interrupted = {"pulsar"}
    # When
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    # Then the servers are stopped and half a run passes for nothing
    assert stage.events[-3:] == ["storm pulsar", "stop proxy", "stop broker"]
    assert not (tmp_path / "report.html").exists()


def test_interrupted_second_part_ends_the_demo(stage: Stage, tmp_path: Path) -> None:
    stage.interrupted = {"stuck-pulsar"}
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    assert stage.events[-2:] == ["storm stuck-pulsar", "stop broker"]
    assert not (tmp_path / "report.html").exists()


def test_broker_loads_the_topics_and_clients_ask_the_proxy(shown: Shown) -> None:
    stage = shown.stage
    broker, proxy = stage.launches[:2]
    assert broker.arguments == ("--import", str(shown.out / "topics"))
    assert proxy.settings["brokerServiceURL"] == "pulsar://127.0.0.1:7001"
    assert stage.scenarios[0].service_url == "pulsar://127.0.0.1:7002"
    assert stage.scenarios[0].requests_per_client == 1


def test_right_answers_are_known_from_the_corpus(shown: Shown) -> None:
    asked = shown.stage.scenarios[0].namespaces
    assert [namespace.topics for namespace in asked] == [100] * 4
    assert all(namespace.hash for namespace in asked)


def test_results_are_written(shown: Shown) -> None:
    result = shown.result
    document = json.loads(result.summary.read_text())
    assert set(document["runs"]) == {"off", "pulsar", "floodgate"}
    assert set(document["stuck"]) == {"stuck-pulsar", "stuck-floodgate"}
    assert {"stuck_starves_pulsar", "broker_over_idle"} <= {c["name"] for c in document["checks"]}
    assert document["schema_version"] == 1
    assert all(
        set(check) == {"name", "passed", "sentence", "neutral", "judged"}
        for check in document["checks"]
    )
    assert result.report.read_text().startswith("<!doctype html>")


def test_steps_are_plain_lines_without_a_terminal(shown: Shown) -> None:
    assert "Making 400 topics in 4 namespaces …" in shown.printed
    assert "Limits off: 40 clients list topics …" in shown.printed
    assert "\x1b" not in shown.printed


def test_topics_stay_only_if_wanted(shown: Shown, stage: Stage, tmp_path: Path) -> None:
    run(tmp_path, keep=True)
    for out, keep in ((tmp_path, True), (shown.out, False)):
        assert (out / "topics" / "manifest.json").exists() is keep
        assert (out / "stuck-topics" / "manifest.json").exists() is keep


@pytest.mark.parametrize("name", ["floodgate", "stuck-pulsar"])
def test_wrong_answer_ends_in_its_exit_code(stage: Stage, tmp_path: Path, name: str) -> None:
    stage.wrong[name] = 1
    result, _ = run(tmp_path)
    assert result.exit_code is ExitCode.CORRECTNESS


# --- an operator's own cluster ---------------------------------------------------------------


@pytest.fixture
def own_topics(tmp_path: Path) -> OwnTopics:
    path = tmp_path / "topics.txt"
    names = [f"persistent://a/large/topic-{number}" for number in range(30)]
    path.write_text("\n".join([*names, "persistent://a/small/t"]) + "\n")
    return read_own_topics(path)


def own_cluster(directory: Path, *, proxy: bool = True) -> OwnCluster:
    broker = directory / "broker.conf"
    broker.write_text("maxTopicListInFlightHeapMemSizeMB=7\nbrokerServicePort=6650\n")
    found = OwnServer("proxy", None, {"servicePort": "6651"}) if proxy else None
    return OwnCluster(read_own_server("broker", broker), found)


def test_a_rehearsal_is_three_storms_on_the_largest_namespace(
    stage: Stage, tmp_path: Path, own_topics: OwnTopics
) -> None:
    result, _ = run(tmp_path, topics=own_topics, own=own_cluster(tmp_path))
    # Then the operator's topics were listed, and there was no second part
    storms = [event for event in stage.events if event.startswith("storm")]
    assert storms == ["storm off", "storm pulsar", "storm floodgate"]
    for scenario in stage.scenarios:
        assert [namespace.name for namespace in scenario.namespaces] == ["a/large"]
    assert result.stuck == {}


def test_a_rehearsals_servers_have_the_operators_files(
    stage: Stage, tmp_path: Path, own_topics: OwnTopics
) -> None:
    run(tmp_path, topics=own_topics, own=own_cluster(tmp_path))
    broker, proxy = stage.launches[2:4]
    topics = str(tmp_path / "topics.txt")
    assert broker.arguments == (str(tmp_path / "broker.conf"), "--import", topics)
    assert "maxTopicListInFlightHeapMemSizeMB" not in broker.settings
    assert broker.settings["brokerServicePort"] == "0"
    assert proxy.settings["brokerServiceURL"] == "pulsar://127.0.0.1:7003"
    assert (tmp_path / "topics.txt").exists()


def test_without_a_proxy_clients_ask_the_broker(
    stage: Stage, tmp_path: Path, own_topics: OwnTopics
) -> None:
    own = own_cluster(tmp_path, proxy=False)
    run(tmp_path, topics=own_topics, own=own, namespaces=("a/small",))
    assert [launch.module for launch in stage.launches] == ["broker"] * 3
    assert stage.scenarios[0].service_url == "pulsar://127.0.0.1:7001"
    assert [namespace.name for namespace in stage.scenarios[0].namespaces] == ["a/small"]


def test_a_rehearsal_says_what_was_set_aside_and_draws_its_picture(
    stage: Stage, tmp_path: Path, own_topics: OwnTopics
) -> None:
    result, _ = run(tmp_path, topics=own_topics, own=own_cluster(tmp_path))
    document = json.loads(result.summary.read_text())
    assert "brokerServicePort" in document["notes"][0]
    assert document["stuck"] == {}
    page = result.report.read_text()
    assert "A restart storm on a/large" in page
    assert "Set aside from" in page
    assert [path.name for path in result.pictures] == ["demo.png", "demo-dark.png"]


def test_refusals_and_memory_of_a_rehearsal_are_nobodys_to_judge(
    stage: Stage, tmp_path: Path, own_topics: OwnTopics
) -> None:
    result, _ = run(tmp_path, topics=own_topics, own=own_cluster(tmp_path))
    assert {check.name for check in result.checks} == {
        "every_client_heard",
        "within_limits",
        "everything_returned",
    }


def test_a_rehearsal_that_shows_too_little_says_so_everywhere_it_is_read(
    stage: Stage, tmp_path: Path, own_topics: OwnTopics
) -> None:
    # Given
    stage.unseen.add("off")
    # When
    result, _ = run(tmp_path, topics=own_topics, own=own_cluster(tmp_path))
    # Then
    assert result.hidden is not None
    assert result.hidden.startswith("This storm is too small")
    assert result.hidden in json.loads(result.summary.read_text())["notes"]
    assert "This storm is too small" in result.report.read_text()
    # When
    printed = io.StringIO()
    show(Console(file=printed, width=1000), result)
    # Then
    assert result.hidden in printed.getvalue()


def test_made_topics_can_be_listed_under_an_operators_limits(stage: Stage, tmp_path: Path) -> None:
    run(tmp_path, own=own_cluster(tmp_path, proxy=False))
    importing = ("--import", str(tmp_path / "topics"))
    assert stage.launches[0].arguments == (str(tmp_path / "broker.conf"), *importing)
    assert len(stage.scenarios[0].namespaces) == 4


def test_results_of_an_earlier_demo_do_not_survive_a_failure(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given the results of an earlier demo
    run(tmp_path)

    # When the next one fails on the way
    def fail(*_: object) -> None:
        raise LoadgenError("no")

    monkeypatch.setattr("loadgen.demo.demo.execute", fail)
    with pytest.raises(LoadgenError):
        run(tmp_path)

    # Then nothing can be mistaken for its result, and no server is left
    assert not (tmp_path / "report.html").exists()
    assert not (tmp_path / "summary.json").exists()
