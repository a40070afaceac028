"""Lookups on a schedule, as ``loadgen run`` drives them, against a real broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from loadgen.errors import LoadgenError
from loadgen.report.page import render_report
from loadgen.results.reading import load_run
from loadgen.run.options import RunOptions
from loadgen.run.run import execute
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.lookups.scenario import LookupsScenario
from tests.support.peers.stand_in_broker import topic_names
from tests.support.processes.server_process import running_server

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.processes
def test_lookups_are_counted_and_reported(tmp_path: Path) -> None:
    # Given
    (tmp_path / "topics.txt").write_text("\n".join(topic_names("public/default", 30)) + "\n")
    ports = ("brokerServicePort=0", "webServicePort=0", "bindAddress=127.0.0.1")
    sets = [part for each in ports for part in ("--set", each)]
    command = ["-m", "broker", "--import", str(tmp_path / "topics.txt"), *sets]
    names = ("public/default", "public/empty")
    known, empty = (NamespaceExpectation(name=name) for name in names)
    with running_server(command, tmp_path / "broker.log") as server:
        wanted = LookupsScenario(
            service_url=server.service_url,
            namespaces=(known,),
            clients=3,
            lookups_per_second=20,
            lookup_seconds=0.5,
        )
        # When
        result = execute(wanted, RunOptions("lookups", out=tmp_path))
        # Then
        with pytest.raises(LoadgenError, match="public/empty lists no topics to look up"):
            execute(
                wanted.model_copy(update={"namespaces": (empty,)}), RunOptions("e", out=tmp_path)
            )
    assert (result.summary["clients"], result.summary["answered"]) == (3, 30)
    assert result.summary["topics_per_answer"] is None
    percentiles = {"p50", "p90", "p99", "p999", "p9999", "max"}
    assert set(result.summary["latency_seconds"]) == percentiles
    assert result.empty_namespaces == ()
    assert len(pq.read_table(result.directory / "requests.parquet")) == 30
    assert "lookups" in render_report([load_run(result.directory)])
