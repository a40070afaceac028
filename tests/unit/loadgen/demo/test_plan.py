"""The demo's runs and what scales with its size."""

from __future__ import annotations

import pytest

from loadgen.clients.schedule import due_moments
from loadgen.demo.plan import (
    RETURNING_MEASURE_SECONDS,
    RETURNING_RESTART_SECONDS,
    RETURNING_RUN,
    RUNS,
    STUCK_PERMIT_TIMEOUT_MILLIS,
    STUCK_RUNS,
    DemoRun,
    StormSize,
    broker_settings,
    default_namespaces,
    mean_answer_bytes,
    proxy_settings,
    returning_scenario,
    stuck_broker_settings,
    stuck_scenario,
)
from loadgen.scenario import NamespaceExpectation
from loadgen.places.server_process import ServerProcess

MB = 1024 * 1024
BROKER = ServerProcess("broker", 1, "pulsar://127.0.0.1:7000", "http://127.0.0.1:7001")


def test_runs_are_off_pulsar_floodgate() -> None:
    assert [(run.name, run.profile, run.limit_mb) for run in RUNS] == [
        ("off", "pulsar", 0),
        ("pulsar", "pulsar", 50),
        ("floodgate", "floodgate", 50),
    ]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_both_servers_have_the_runs_limits(run: DemoRun) -> None:
    for settings in (broker_settings(run), proxy_settings(run, BROKER)):
        assert settings["floodgateProfile"] == run.profile
        for kind in ("Heap", "Direct"):
            key = f"maxTopicListInFlight{kind}MemSizeMB"
            assert settings[key] == str(run.limit_mb)
        assert settings["floodgateSocketSendBufferBytes"] == "65536"
        assert settings["bindAddress"] == "127.0.0.1"


@pytest.mark.parametrize("run", STUCK_RUNS, ids=lambda run: run.name)
def test_the_second_part_has_the_limits_of_the_recorded_case(run: DemoRun) -> None:
    settings = stuck_broker_settings(run)
    assert settings["floodgateProfile"] == run.name.removeprefix("stuck-")
    for kind in ("Heap", "Direct"):
        key = f"maxTopicListInFlight{kind}MemSize"
        assert (settings[f"{key}MB"], settings[f"{key}PermitsAcquireTimeoutMillis"]) == (
            "1",
            "3000",
        )
    assert settings["floodgateSocketSendBufferBytes"] == "65536"


def test_the_second_parts_peer_comes_after_a_while_and_stays_longer_than_a_permit_timeout() -> None:
    scenario = stuck_scenario("pulsar://127.0.0.1:1", NamespaceExpectation(name="a/b"))
    assert scenario.stuck_at_seconds > scenario.interval_seconds
    assert scenario.stuck_seconds > STUCK_PERMIT_TIMEOUT_MILLIS / 1000 + scenario.interval_seconds
    assert scenario.peers.until_seconds < scenario.duration_seconds
    due = {moment for client in range(10) for moment in due_moments(scenario, client)}
    assert min(abs(moment - scenario.stuck_at_seconds) for moment in due) > 0.04


def test_all_ports_are_free_ones() -> None:
    assert broker_settings(RUNS[0])["brokerServicePort"] == "0"
    assert proxy_settings(RUNS[0], BROKER)["servicePort"] == "0"


def test_proxy_is_in_front_of_the_broker() -> None:
    settings = proxy_settings(RUNS[0], BROKER)
    assert settings["brokerServiceURL"] == BROKER.service_url
    assert settings["brokerWebServiceURL"] == BROKER.web_url


@pytest.mark.parametrize(("topics", "namespaces"), [(1_000_000, 100), (20_000, 2), (500, 1)])
def test_answers_keep_their_size_in_smaller_demos(topics: int, namespaces: int) -> None:
    assert default_namespaces(topics) == namespaces


def test_answer_is_names_and_what_surrounds_them() -> None:
    size = mean_answer_bytes(1_000_000, 100_000_000, 100)
    assert 1_020_000 <= size <= 1_021_000


def test_full_demo_needs_300_mb() -> None:
    assert StormSize(1000, 1_020_000).required_pending_bytes == 300 * MB


def test_smaller_demo_needs_less_in_proportion() -> None:
    assert StormSize(50, 1_000_000).required_pending_bytes == 15 * MB


def test_larger_demo_needs_no_more() -> None:
    assert StormSize(5000, 1_000_000).required_pending_bytes == 300 * MB


def test_who_is_refused_comes_again_before_the_returning_run_ends() -> None:
    # Given
    namespaces = tuple(NamespaceExpectation(name=f"a/{number}") for number in range(2))
    # When
    found = returning_scenario(namespaces, 1000, 100_000.0)
    # Then
    (group,) = found.groups
    assert (group.clients, group.restart_seconds) == (1000, RETURNING_RESTART_SECONDS)
    assert group.reader.rate_bytes_per_second == 100_000.0
    permits_seconds = 25.0
    assert permits_seconds + RETURNING_RESTART_SECONDS < RETURNING_MEASURE_SECONDS
    assert broker_settings(RETURNING_RUN) == broker_settings(RUNS[1])
