"""Watchers of a real broker are told of every topic that comes and goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from loadgen.run.options import RunOptions
from loadgen.run.run import execute
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.watch_churn.scenario import WatchChurnScenario
from tests.support.peers.stand_in_broker import topic_names
from tests.support.processes.server_process import running_server

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.processes
def test_every_watcher_is_told_of_every_change(tmp_path: Path) -> None:
    # Given
    names = ("load/a", "load/b")
    topics = [topic for name in names for topic in topic_names(name, 20)]
    (tmp_path / "topics.txt").write_text("\n".join(topics) + "\n")
    ports = ("brokerServicePort=0", "webServicePort=0", "bindAddress=127.0.0.1")
    sets = [part for each in ports for part in ("--set", each)]
    command = ["-m", "broker", "--import", str(tmp_path / "topics.txt"), *sets]
    with running_server(command, tmp_path / "broker.log") as server:
        wanted = WatchChurnScenario(
            service_url=server.service_url,
            namespaces=tuple(NamespaceExpectation(name=name) for name in names),
            clients=5,
            changes_per_second=40,
            topic_seconds=0.1,
            churn_seconds=0.5,
        )
        # When
        options = RunOptions("churn", out=tmp_path, tasks=2, broker_admin_url=server.web_url)
        result = execute(wanted, options)
    # Then
    found = result.summary["watch_churn"]
    assert found["changes"] == 32
    assert found["updates_wanted"] == found["updates_told"] == 3 * 16 + 2 * 16
    assert (found["watchers"], found["watchers_right"], found["doubled"]) == (5, 5, 0)
    rows = pq.read_table(result.directory / "requests.parquet").to_pylist()
    assert {row["outcome"] for row in rows} == {"answered"}
    operations = [row["operation"] for row in rows]
    assert [operations.count(each) for each in ("create", "delete", "update")] == [16, 16, 80]
