"""Healthy clients beside stuck peers, as ``loadgen run`` drives them, against real brokers.

Limits hold two lists, permits wait for a second, so a few seconds of the scenario's own schedule
show what the recorded case shows in a minute.
"""

from __future__ import annotations

import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from loadgen.executors.worker import run_task
from loadgen.report.page import render_report
from loadgen.results.reading import load_run
from loadgen.run.options import RunOptions
from loadgen.run.run import RunResult, execute
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.stuck.scenario import StuckScenario
from loadgen.stuck_peers.summary import PEERS_NAME
from loadgen.tasks.task import TaskPlan
from proto.version import FLOODGATE_VERSION, SERVER_VERSION
from tests.support.peers.stand_in_broker import StandInBroker, running, topic_names
from tests.support.processes.server_process import running_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.processes.server_process import ServerProcess

NAMESPACE = "public/default"
TOPICS = 4_000
CLIENTS = 5


@contextmanager
def broker(directory: Path, profile: str, **keys: str) -> Iterator[ServerProcess]:
    """A broker whose limits hold two lists of its one namespace."""
    names = topic_names(NAMESPACE, TOPICS, 93)
    (directory / "topics.txt").write_text("\n".join(names) + "\n")
    settings = {
        "brokerServicePort": "0",
        "webServicePort": "0",
        "bindAddress": "127.0.0.1",
        "advertisedAddress": "127.0.0.1",
        "floodgateProfile": profile,
        "floodgateSocketSendBufferBytes": "65536",
        **keys,
    }
    for kind in ("Heap", "Direct"):
        settings[f"maxTopicListInFlight{kind}MemSizeMB"] = "1"
        settings[f"maxTopicListInFlight{kind}MemSizePermitsAcquireTimeoutMillis"] = "1000"
    sets = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    command = ["-m", "broker", "--import", str(directory / "topics.txt"), *sets]
    with running_server(command, directory / "broker.log") as server:
        yield server


def scenario(url: str, **changes) -> StuckScenario:
    """Ten listings a second; a peer asks at 0.55 s and leaves at 2.55 s."""
    values = {
        "service_url": url,
        "namespaces": (NamespaceExpectation(name=NAMESPACE, topics=TOPICS),),
        "clients": CLIENTS,
        "interval_seconds": 0.5,
        "duration_seconds": 3.0,
        "stuck_at_seconds": 0.55,
        "stuck_seconds": 2.0,
    }
    return StuckScenario(**{**values, **changes})


def measured(server: ServerProcess, directory: Path, **changes) -> RunResult:
    options = RunOptions(
        "beside",
        label="Beside",
        out=directory,
        tasks=1,
        broker_admin_url=server.web_url,
        broker_pid=server.pid,
    )
    return execute(scenario(server.service_url, **changes), options)


def beside_a_full_broker(result: RunResult) -> set[str]:
    """How listings ended that began behind the peer's and ended while it was there."""
    waiting = load_run(result.directory).series("broker", "heap.waiting")
    # More than the healthy clients have: the others are the peer's.
    behind_it = min(
        at for at, n in zip(waiting.at_seconds, waiting.values, strict=True) if n > CLIENTS
    )
    (peer,) = pq.read_table(result.directory / PEERS_NAME).to_pylist()
    return {
        row["outcome"]
        for row in pq.read_table(result.directory / "requests.parquet").to_pylist()
        if behind_it <= row["started_seconds"] and row["finished_seconds"] < peer["gone_seconds"]
    }


@pytest.mark.processes
def test_in_profile_pulsar_one_peer_starves_everybody_until_it_leaves(tmp_path: Path) -> None:
    with broker(tmp_path, "pulsar") as server:
        result = measured(server, tmp_path)
    # Then nobody was answered while it was there, and all are served afterwards
    stuck = result.summary["stuck"]
    phases = stuck["phases"]
    assert beside_a_full_broker(result) == {"refused"}
    assert phases["stuck"]["clients_refused"] > 0
    assert phases["before"]["answered"] > 0
    assert phases["after"]["answered"] == phases["after"]["requests"] > 0
    # The first listing beside the peer is due 50 ms after it asked.
    assert stuck["nobody_answered_seconds"] >= 1.9
    assert stuck["closed"] == 0
    assert all(reason.startswith("TooManyRequests") for reason in result.summary["refused"])
    # And the run directory says the same, and what produced it
    run = load_run(result.directory)
    assert run.description["servers"] == result.summary["servers"]
    assert run.summary.server_version == SERVER_VERSION
    facts = run.summary.servers["broker"]
    assert (facts.version, facts.settings["floodgateProfile"]) == (FLOODGATE_VERSION, "pulsar")
    assert facts.settings["maxTopicListInFlightDirectMemSizePermitsAcquireTimeoutMillis"] == "1000"
    assert facts.settings["floodgateSocketSendBufferBytes"] == "65536"
    assert run.summary.topics_per_answer == (TOPICS, TOPICS)
    assert run.summary.processes["broker"].direct.peak_bytes > TOPICS * 93
    assert '<path class="dot refused"' in render_report([run])
    (peer,) = pq.read_table(result.directory / PEERS_NAME).to_pylist()
    assert (peer["end"], peer["bytes"]) == ("left", 0)
    assert peer["gone_seconds"] >= 2.54


@pytest.mark.processes
def test_in_profile_floodgate_nobody_notices_the_same_peer(tmp_path: Path) -> None:
    with broker(tmp_path, "floodgate") as server:
        result = measured(server, tmp_path)
    summary = result.summary
    assert summary["answered"] == sum(p["requests"] for p in summary["stuck"]["phases"].values())
    assert summary["stuck"]["phases"]["stuck"]["answered_in_phase"] > 0
    assert summary["refused"] == {}
    assert summary["stuck"]["connections_lost"] == 0


@pytest.mark.processes
def test_peers_that_the_server_closes_are_counted_with_the_moment(tmp_path: Path) -> None:
    # Given three peers that pin all memory, since nothing is shared
    keys = {"floodgateResponseBuffers": "private", "floodgateSlowPeerGraceMs": "600"}
    with broker(tmp_path, "floodgate", **keys) as server:
        result = measured(server, tmp_path, stuck_peers=3)
    # Then
    stuck = result.summary["stuck"]
    assert result.summary["refused"] == {}
    assert stuck["closed"] > 0
    assert 0.6 <= stuck["first_closed_after_seconds"] <= stuck["last_closed_after_seconds"]
    ends = pq.read_table(result.directory / PEERS_NAME)["end"].to_pylist()
    assert ends.count("closed by the server") == stuck["closed"]


def test_a_server_that_hangs_up_on_healthy_clients_is_found_out(tmp_path: Path) -> None:
    # Given one that closes the connection that asks for the second namespace
    names = {f"load/{part}": topic_names(f"load/{part}", 50) for part in ("a", "b")}
    server = StandInBroker(names, hang_up=frozenset({"load/b"}))
    spaces = tuple(NamespaceExpectation(name=name) for name in names)
    with running(server) as url:
        wanted = scenario(url, namespaces=spaces, clients=2, duration_seconds=1.0, stuck_peers=0)
        # When
        result = execute(wanted, RunOptions("hang-up", out=tmp_path, tasks=2))
    # Then it was connected again each time
    assert result.summary["answered"] == 2
    assert result.summary["disconnected"] == 2
    assert result.summary["stuck"]["connections_lost"] == 2
    assert len(server.peers) == 1 + 2 + 1  # the look before, two clients, one of them again


def test_peers_stay_until_the_duration_is_over() -> None:
    # Given healthy clients that are done before the peers ask
    with running(StandInBroker({"load/a": topic_names("load/a", 50)})) as url:
        wanted = scenario(
            url,
            namespaces=(NamespaceExpectation(name="load/a"),),
            clients=1,
            duration_seconds=0.7,
            interval_seconds=1.0,
            stuck_peers=2,
            stuck_seconds=0.0,
        )
        # When
        report = run_task(TaskPlan(scenario=wanted, task=0, tasks=1), lambda now: now + 0.05)
    # Then
    assert report.rows["outcome"].to_pylist() == ["answered"]
    assert [peer["end"] for peer in report.details] == ["left", "left"]
    # Timers have steps of a millisecond, and may be that early.
    assert all(peer["asked_seconds"] >= 0.54 for peer in report.details)
    assert all(peer["gone_seconds"] >= 0.69 for peer in report.details)


def test_a_server_that_has_gone_leaves_rows_for_clients_and_peers() -> None:
    # Given a port that is taken, so that nobody else comes to listen there
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"pulsar://127.0.0.1:{taken.getsockname()[1]}"
        wanted = scenario(url, clients=1, duration_seconds=0.8, stuck_peers=1)
        # When
        report = run_task(TaskPlan(scenario=wanted, task=0, tasks=1), lambda now: now + 0.05)
    # Then it was tried again for each listing
    assert report.rows["outcome"].to_pylist() == ["unreachable"] * 2
    assert report.facts.connections_lost == 0
    (peer,) = report.details
    assert (peer["end"], peer["reason"]) == ("unreachable", "Connection refused")
    assert peer["asked_seconds"] is None
