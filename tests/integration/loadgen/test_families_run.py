"""Clients of all families find their topics on a real broker, through a real proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from client.discovery.families import FAMILIES
from loadgen.run.options import RunOptions
from loadgen.run.run import execute
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.discovery.scenario import DiscoveryScenario
from proto.topic_hash import topics_hash
from tests.support.peers.stand_in_broker import topic_names
from tests.support.processes.server_process import running_server

if TYPE_CHECKING:
    from pathlib import Path

NAMES = topic_names("load/a", 50)
KNOWN = NamespaceExpectation(name="load/a", topics=50, hash=topics_hash(NAMES))
TUNNELLING = ("polite", "java-watch", "java-poll")


def started(name: str, *settings: str) -> list[str]:
    ports = ("webServicePort=0", "bindAddress=127.0.0.1", "advertisedAddress=127.0.0.1", *settings)
    return ["-m", name, *(part for each in ports for part in ("--set", each))]


@pytest.mark.processes
def test_clients_of_every_family_are_back_and_counted_with_all_their_connections(
    tmp_path: Path,
) -> None:
    # Given
    (tmp_path / "topics.txt").write_text("\n".join(NAMES) + "\n")
    importing = ("--import", str(tmp_path / "topics.txt"))
    command = [*started("broker", "brokerServicePort=0"), *importing]
    with running_server(command, tmp_path / "broker.log") as broker:
        urls = (f"brokerServiceURL={broker.service_url}", f"brokerWebServiceURL={broker.web_url}")
        command = started("proxy", "servicePort=0", *urls)
        with running_server(command, tmp_path / "proxy.log") as proxy:
            groups = [
                {"name": family, "family": family, "clients": 3, "period_seconds": 0.5}
                for family in ("once", *FAMILIES)
            ]
            groups[2]["pattern"] = ".*1"  # java-watch: a part of what is known of the whole
            attached = {"name": "attached", "family": "go", "clients": 1, "attach": 2}
            wanted = DiscoveryScenario(
                service_url=proxy.service_url,
                namespaces=(KNOWN,),
                groups=(*groups, {**attached, "pattern": ".*"}),
                phases={"measure_seconds": 3, "hold_seconds": 0.6},
            )
            # When
            result = execute(wanted, RunOptions("families", out=tmp_path, tasks=2))
    # Then
    assert result.problems == ()
    assert result.summary["wrong"] == 0
    found = result.summary["groups"]
    assert {name: each["back"] for name, each in found.items()} == {
        **dict.fromkeys(("once", *FAMILIES), 3),
        "attached": 1,
    }
    connections = {name: each["connections"] for name, each in found.items()}
    assert connections == {
        name: each["clients"] * (2 if name in (*TUNNELLING, "attached") else 1)
        for name, each in found.items()
    }
    assert found["attached"]["requests"]["subscribe"] == {"answered": 2}
    rows = pq.read_table(result.directory / "requests.parquet").to_pylist()
    polls = [row for row in rows if row["family"] == "java-poll" and row["operation"] == "list"]
    assert {row["topics"] for row in polls} == {50, None}  # nothing has changed since the first
