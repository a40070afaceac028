"""Producers beside clients that read nothing, as ``loadgen run`` drives them, in both profiles."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from loadgen.report.page import render_report
from loadgen.results.reading import load_run
from loadgen.run.options import RunOptions
from loadgen.run.run import execute
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.produce_beside_silent.scenario import SilentScenario
from tests.support.processes.server_process import running_server

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.processes
@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
def test_producers_get_their_receipts_beside_clients_that_read_nothing(
    tmp_path: Path, profile: str
) -> None:
    # Given
    keys = (
        "brokerServicePort=0",
        "webServicePort=0",
        "bindAddress=127.0.0.1",
        "floodgateSocketSendBufferBytes=65536",
        f"floodgateProfile={profile}",
    )
    command = ["-m", "broker", *(part for key in keys for part in ("--set", key))]
    with running_server(command, tmp_path / "broker.log") as server:
        wanted = SilentScenario(
            service_url=server.service_url,
            namespaces=(NamespaceExpectation(name="public/default"),),
            clients=2,
            interval_seconds=0.05,
            duration_seconds=4,
            silent_producers=1,
            silent_consumers=1,
            silent_messages=20_000,
            message_bytes=2_000,
            silent_at_seconds=0.5,
        )
        # When
        result = execute(wanted, RunOptions("silent", out=tmp_path))
    # Then
    assert (result.summary["clients"], result.summary["answered"]) == (2, 160)
    rows = pq.read_table(result.directory / "requests.parquet")
    assert set(rows["operation"].to_pylist()) == {"publish"}
    silent = result.summary["silent"]
    assert silent["messages_sent"] > 100
    if profile == "floodgate":
        assert silent["producers_held_up"] == 1
        assert silent["messages_sent"] < 20_000
    else:
        assert silent["producers_held_up"] == 0
    assert silent["verdict"] in html.unescape((result.directory / "junit.xml").read_text())
    peers = pq.read_table(result.directory / "stuck-peers.parquet").to_pylist()
    assert [peer["sent"] for peer in peers] == [silent["messages_sent"], 0]
    page = render_report([load_run(result.directory)])
    assert "Publishing beside clients that do not read" in page
    assert silent["verdict"] in html.unescape(page)
