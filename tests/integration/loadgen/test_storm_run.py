"""A whole run in worker processes against a stand-in server, and what goes wrong."""

from __future__ import annotations

import signal
import socket
import threading
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import proto.PulsarApi_pb2 as pb
from loadgen.analysis.thresholds import parse_thresholds
from loadgen.clients.connect import raise_open_file_limit
from loadgen.errors import ExitCode, LoadgenError
from loadgen.executors.processes import run_in_processes
from loadgen.executors.worker import run_task
from loadgen.report.files.derived import DERIVED_NAMES
from loadgen.results.reading import load_run
from loadgen.results.writing import summarized
from loadgen.run.options import RunOptions
from loadgen.run.run import execute
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.storm.scenario import StormScenario
from loadgen.tasks.task import TaskPlan
from proto.topic_hash import topics_hash
from tests.support.peers.stand_in_broker import StandInBroker, running, topic_names

if TYPE_CHECKING:
    from loadgen.clients.records import RequestCounters

NAMES = {f"load/ns-{index}": topic_names(f"load/ns-{index}", 500, 100) for index in range(3)}
RIGHT = tuple(
    NamespaceExpectation(name=name, topics=500, hash=topics_hash(names))
    for name, names in NAMES.items()
)

FILES = {
    "scenario.yaml",
    "scenario-resolved.yaml",
    "server-settings.json",
    "run.json",
    "summary.json",
    "requests.parquet",
    "server-metrics.parquet",
    *DERIVED_NAMES,
}


def scenario(url: str, **changes) -> StormScenario:
    values = {
        "service_url": url,
        "namespaces": RIGHT,
        "clients": 20,
        "read_rate_bytes_per_second": 200_000,
        "timeout_seconds": 30,
    }
    return StormScenario(**{**values, **changes})


def outcomes(directory) -> list[tuple[str, str]]:
    rows = pq.read_table(directory / "requests.parquet").sort_by("client").to_pylist()
    return [(row["outcome"], row["reason"]) for row in rows]


def test_worker_processes_run_the_whole_storm(tmp_path) -> None:
    # Given
    broker = StandInBroker(NAMES, ping_first=True)
    with running(broker) as url:
        # When
        result = execute(scenario(url), RunOptions("storm", label="Storm", out=tmp_path))
    # Then
    assert result.summary["answered"] == 20
    assert result.summary["wrong"] == 0
    assert sorted(broker.requests) == sorted(RIGHT[client % 3].name for client in range(20))
    assert broker.pongs == 20
    assert {path.name for path in result.directory.iterdir()} >= FILES
    run = load_run(result.directory)
    assert run.summary.label == "Storm"
    assert run.description["tasks"][1]["clients"] == 10
    assert len(run.requests.latencies("answered")) == 20
    rows = pq.read_table(result.directory / "requests.parquet").to_pylist()
    assert {row["topics"] for row in rows} == {500}
    assert {(row["operation"], row["family"]) for row in rows} == {("list", "once")}
    # 51 kB at 200 kB/s, less the first burst of a tenth of a second
    assert min(row["finished_seconds"] - row["first_byte_seconds"] for row in rows) >= 0.14


def test_ctrl_c_keeps_what_has_ended(tmp_path) -> None:
    # Given a server that answers one namespace of two
    broker = StandInBroker(NAMES, ignore=frozenset({"load/ns-1"}))

    def interrupt(counters: RequestCounters) -> None:
        if counters.answered == 4 and not interrupted:
            interrupted.append(counters)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    interrupted: list[RequestCounters] = []
    handler = signal.getsignal(signal.SIGINT)
    with running(broker) as url:
        # When there is a Ctrl-C after the last of its answers
        result = execute(
            scenario(url, clients=8, namespaces=RIGHT[:2]),
            RunOptions("half", out=tmp_path, on_progress=interrupt, drain_seconds=0),
        )
    # Then the run directory holds them and says that it is not whole
    assert outcomes(result.directory) == [("answered", "")] * 4
    assert result.summary["interrupted"]
    assert result.exit_code is ExitCode.INTERRUPTED
    assert load_run(result.directory).summary.interrupted
    assert {path.name for path in result.directory.iterdir()} >= FILES
    assert signal.getsignal(signal.SIGINT) is handler


def test_ctrl_c_before_any_request_has_ended_leaves_no_directory(tmp_path) -> None:
    # Given
    broker = StandInBroker(NAMES, ignore=frozenset({"load/ns-0"}))
    interrupted: list[RequestCounters] = []

    def interrupt(counters: RequestCounters) -> None:
        if counters.started == 4 and not interrupted:
            interrupted.append(counters)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    with running(broker) as url, pytest.raises(KeyboardInterrupt):
        # When
        execute(
            scenario(url, clients=4, namespaces=RIGHT[:1]),
            RunOptions("none", out=tmp_path, on_progress=interrupt, drain_seconds=0),
        )
    # Then
    assert not list(tmp_path.iterdir())


def test_ctrl_c_lets_requests_under_way_end_and_begins_nothing_new(tmp_path) -> None:
    # Given clients that start over a long time, and read for some seconds
    interrupted: list[RequestCounters] = []

    def interrupt(counters: RequestCounters) -> None:
        if counters.started > counters.answered and not interrupted:
            interrupted.append(counters)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    slow = {"clients": 40, "spread_seconds": 400.0, "read_rate_bytes_per_second": 40_000}
    with running(StandInBroker(NAMES)) as url:
        # When
        result = execute(
            scenario(url, **slow), RunOptions("drained", out=tmp_path, on_progress=interrupt)
        )
    # Then those that were reading have their answers
    assert result.exit_code is ExitCode.INTERRUPTED
    assert result.summary["answered"] >= interrupted[0].started > interrupted[0].answered
    assert set(outcomes(result.directory)) == {("answered", "")}


def test_a_run_whose_threshold_can_no_longer_be_met_ends_early(tmp_path, monkeypatch) -> None:
    # Given a server that refuses everybody
    monkeypatch.setattr("loadgen.analysis.abort.DELAY_SECONDS", 0.0)
    refuse = dict.fromkeys(NAMES, (pb.ServerError.TooManyRequests, "full"))
    wanted = ("list.refused.rate < 5%", "list.wrong.count == 0")
    options = RunOptions(
        "aborted", out=tmp_path, thresholds=parse_thresholds(wanted), abort_early=True
    )
    with running(StandInBroker(NAMES, refuse=refuse)) as url:
        # When
        result = execute(scenario(url, clients=200, spread_seconds=20.0), options)
    # Then
    assert result.exit_code is ExitCode.THRESHOLDS
    assert result.aborted == wanted[0]
    assert [each["threshold"] for each in result.missed_thresholds] == [wanted[0]]
    assert 10 <= sum(result.summary["refused"].values()) < 100


def test_every_misbehaviour_of_a_server_has_its_outcome(tmp_path) -> None:
    # Given
    message = "Cannot acquire permits for direct memory"
    broker = StandInBroker(
        NAMES,
        refuse={"load/ns-0": (pb.ServerError.TooManyRequests, message)},
        hang_up=frozenset({"load/ns-1"}),
    )
    with running(broker) as url:
        # When
        result = execute(
            scenario(url, clients=4, namespaces=RIGHT[:2]), RunOptions("bad", out=tmp_path)
        )
    # Then
    refused = ("refused", f"TooManyRequests: {message}")
    assert outcomes(result.directory) == 2 * [refused, ("disconnected", "closed by the server")]
    assert result.summary["refused"] == {refused[1]: 2}
    assert result.summary["latency_seconds"] is None


def test_a_server_that_does_not_answer_is_a_timeout(tmp_path) -> None:
    # Given
    with running(StandInBroker(NAMES, ignore=frozenset({"load/ns-0"}))) as url:
        wanted = scenario(url, clients=2, namespaces=RIGHT[:1], timeout_seconds=0.2)
        # When
        result = execute(wanted, RunOptions("silent", out=tmp_path))
    # Then
    assert outcomes(result.directory) == 2 * [("timeout", "no complete answer within 0.2 s")]


def test_namespaces_that_list_nothing_are_named_unless_that_was_known(tmp_path) -> None:
    # Given three without topics, one of them said to be so
    names = ("load/typo", "load/none", "load/ns-0")
    known = NamespaceExpectation(name="load/none", topics=0, hash=topics_hash([]))
    unknown = [NamespaceExpectation(name=name) for name in names if name != "load/none"]
    with running(StandInBroker(NAMES)) as url:
        # When
        result = execute(
            scenario(url, namespaces=(known, *unknown), clients=6), RunOptions("e", out=tmp_path)
        )
    # Then
    assert result.empty_namespaces == ("load/typo",)


def test_a_wrong_answer_fails_the_run(tmp_path) -> None:
    # Given a server whose answers lack a name, and nothing known of the namespace
    unknown = (NamespaceExpectation(name="load/ns-0"),)
    with running(StandInBroker(NAMES, lie=frozenset({"load/ns-0"}))) as url:
        # When
        result = execute(
            scenario(url, namespaces=unknown, clients=4), RunOptions("lie", out=tmp_path)
        )
    # Then
    assert result.summary["wrong"] == 4
    assert result.exit_code is ExitCode.CORRECTNESS
    assert "says hash" in result.problems[0]


def test_a_server_that_has_gone_leaves_rows_for_every_client() -> None:
    # Given a port that is taken, so that nobody else comes to listen there
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"pulsar://127.0.0.1:{taken.getsockname()[1]}"
        plan = TaskPlan(scenario=scenario(url, clients=3), task=0, tasks=1)
        # When
        report = run_task(plan, lambda now: now + 0.05)
    # Then
    rows = report.rows.to_pylist()
    assert [row["outcome"] for row in rows] == ["unreachable"] * 3
    assert {row["reason"] for row in rows} == {"Connection refused"}
    assert all(row["finished_seconds"] < 0 for row in rows)


def test_a_task_that_begins_too_late_says_how_late_it_was() -> None:
    # Given a T0 that has passed when it is agreed
    with running(StandInBroker(NAMES)) as url:
        plan = TaskPlan(scenario=scenario(url, clients=3), task=0, tasks=1)
        # When
        report = run_task(plan, lambda now: now - 0.3)
    # Then
    assert report.facts.start_error_seconds >= 0.3
    assert report.facts.client_start_error_seconds >= report.facts.start_error_seconds
    assert summarized([report])["generator_limited"]


def test_a_worker_that_fails_ends_the_run_with_its_last_word() -> None:
    with running(StandInBroker(NAMES)) as url:
        good = TaskPlan(scenario=scenario(url, clients=2), task=0, tasks=2)
        lost = scenario("pulsar://no-such-host.invalid:1", clients=2)
        with pytest.raises(LoadgenError, match=r"no-such-host\.invalid"):
            run_in_processes([good, TaskPlan(scenario=lost, task=1, tasks=2)])


def test_more_connections_than_files_are_refused_with_a_remedy() -> None:
    with pytest.raises(LoadgenError, match="ulimit -Hn"):
        raise_open_file_limit(10**9)


def test_clients_connect_from_the_address_of_their_plan() -> None:
    # Given clients numbered so high that they need another source address
    broker = StandInBroker(NAMES)
    with running(broker) as url:
        storm = scenario(url, clients=20_001)
        plan = TaskPlan(scenario=storm, task=20_000, tasks=20_001)
        # When
        report = run_task(plan, lambda now: now + 0.05)
    # Then
    assert report.rows["outcome"].to_pylist() == ["answered"]
    assert broker.peers == ["127.0.0.2"]
