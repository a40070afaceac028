"""Messages on a schedule through a real broker's topics, each delivered once and in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from loadgen.run.options import RunOptions
from loadgen.run.run import execute
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.produce_consume.scenario import ProduceConsumeScenario
from tests.support.processes.server_process import running_server

if TYPE_CHECKING:
    from pathlib import Path

PORTS = ("brokerServicePort=0", "webServicePort=0", "bindAddress=127.0.0.1")


@pytest.mark.processes
def test_every_message_arrives_once_in_every_subscription(tmp_path: Path) -> None:
    command = ["-m", "broker", *(part for each in PORTS for part in ("--set", each))]
    with running_server(command, tmp_path / "broker.log") as server:
        wanted = ProduceConsumeScenario(
            service_url=server.service_url,
            namespaces=(NamespaceExpectation(name="public/default"),),
            clients=2,
            messages_per_second=50,
            produce_seconds=0.5,
            message_keys=3,
            subscriptions=2,
            subscription_type="key-shared",
            consumers=2,
        )
        result = execute(wanted, RunOptions("messages", out=tmp_path, tasks=1))
    found = result.summary["produce_consume"]
    assert (found["receipts"], found["delivered"]) == (50, 100)
    wrong = ("lost", "doubled", "out_of_order", "corrupt", "redelivered", "consumers_lost")
    assert not any(found[each] for each in wrong)
    rows = pq.read_table(result.directory / "requests.parquet").to_pylist()
    groups = [(row["operation"], row["group"], row["outcome"]) for row in rows]
    assert groups.count(("publish", "producers", "answered")) == 50
    assert groups.count(("deliver", "consumers", "answered")) == 100
