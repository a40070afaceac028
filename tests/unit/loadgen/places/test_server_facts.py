"""What produced a run's figures is asked of each server; what it does not tell stays unknown."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import pytest

from loadgen.report.figures import figure_rows, server_rows
from loadgen.report.page import render_report
from loadgen.results.reading import load_run
from loadgen.places.server_facts import ServerFacts, facts_of_page, parse_server_facts, read_server_facts
from loadgen.places.sampling import kept_samples
from proto.version import FLOODGATE_VERSION
from tests.support.peers.stand_in_admin import Given, given, stand_in_admin
from tests.support.runs.run_directories import STORMS, edit_json, write_run
from tests.support.runs.stuck_runs import stuck_summaries

if TYPE_CHECKING:
    from pathlib import Path

INFO = (
    'floodgate_server_info{cluster="a",version="0.1.0",floodgate_profile="pulsar",'
    'max_topic_list_in_flight_heap_mem_size_mb="7"} 1.0\n'
)
PULSAR = 'pulsar_version_info{cluster="a",version="4.2.4",commit="53"} 1.0\n'
RUNTIME = {
    "maxTopicListInFlightHeapMemSizeMB": "7",
    "brokerClientAuthenticationParameters": "token:hidden",
}
OF_A_BROKER = {
    "GET /metrics/": Given((PULSAR.encode(),)),
    "GET /admin/v2/brokers/version": Given((b"4.2.4",)),
    "GET /admin/v2/brokers/configuration/runtime": given(RUNTIME),
}


def test_a_page_of_our_own_tells_version_and_keys() -> None:
    facts = facts_of_page(f"# TYPE x gauge\nx 1\n{INFO}")
    assert facts.version == FLOODGATE_VERSION
    assert facts.settings == {
        "floodgateProfile": "pulsar",
        "maxTopicListInFlightHeapMemSizeMB": "7",
    }


def test_a_page_of_pulsars_tells_its_version_alone() -> None:
    assert facts_of_page(PULSAR) == ServerFacts("4.2.4")
    assert facts_of_page("x 1\n") == ServerFacts()


async def test_a_broker_is_asked_by_rest_and_its_secrets_are_left_there() -> None:
    async with stand_in_admin(**OF_A_BROKER) as broker:
        facts = await asyncio.to_thread(read_server_facts, "broker", broker.url)
    assert facts == ServerFacts("4.2.4", {"maxTopicListInFlightHeapMemSizeMB": "7"})


async def test_a_proxy_is_never_asked_by_rest_where_its_broker_would_answer() -> None:
    answers = {**OF_A_BROKER, "GET /metrics/": Given((INFO.encode(),))}
    async with stand_in_admin(**answers) as proxy:
        facts = await asyncio.to_thread(read_server_facts, "proxy", proxy.url)
    assert facts.version == FLOODGATE_VERSION
    assert proxy.lines == ["GET /metrics/"]


async def test_a_server_that_tells_nothing_fails_nothing() -> None:
    async with stand_in_admin() as broker:
        assert await asyncio.to_thread(read_server_facts, "broker", broker.url) == ServerFacts()
    assert read_server_facts("broker", broker.url) == ServerFacts()


def test_the_metric_that_is_always_1_is_no_series() -> None:
    assert list(kept_samples(f"{INFO}floodgate_x 2.0\n")) == [("floodgate_x", 2.0)]


def test_facts_survive_a_summary() -> None:
    facts = ServerFacts("1", {"a": "b"})
    assert parse_server_facts(asdict(facts)) == facts


def test_servers_that_agree_share_a_cell_and_others_are_named() -> None:
    # Given
    broker = ServerFacts("1", {"floodgateProfile": "pulsar", "maxMessageSize": "5"})
    proxy = ServerFacts("1", {"floodgateProfile": "floodgate"})
    run = replace(stuck_summaries()["stuck-pulsar"], servers={"broker": broker, "proxy": proxy})
    # When
    cells = {row.measure: row.cells for row in server_rows([run])}
    # Then
    assert cells == {
        "of each server": ["1"],
        "floodgateProfile": ["broker pulsar, proxy floodgate"],
        "maxMessageSize": ["broker 5"],
    }


def test_the_report_says_what_produced_it(tmp_path: Path) -> None:
    # Given a run of which nobody knows
    directory = write_run(tmp_path / "off", STORMS[0], 10)
    assert "What produced this" not in render_report([load_run(directory)])
    # When
    facts = asdict(ServerFacts("4.2.4", {"maxTopicListInFlightHeapMemSizeMB": "7"}))
    edit_json(directory / "summary.json", server_version="<b>", servers={"broker": facts})
    page = render_report([load_run(directory)])
    # Then
    assert "What produced this" in page
    assert "&lt;b&gt;" in page
    assert "maxTopicListInFlightHeapMemSizeMB" in page


@pytest.mark.parametrize(("least", "most", "cell"), [(5, 5, "5"), (5, 7, "5 to 7")])
def test_what_each_answer_held_is_in_the_table(least: int, most: int, cell: str) -> None:
    run = replace(stuck_summaries()["stuck-pulsar"], topics_per_answer=(least, most))
    rows = {(row.group, row.measure): row.cells for row in figure_rows([run])}
    assert rows["Each answer", "topics"] == [cell]
