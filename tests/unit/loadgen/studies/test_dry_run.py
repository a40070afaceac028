"""A run's needs follow from the document, and are compared with the machine in advance."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import to_json

from loadgen.documents.model import Document
from loadgen.documents.reading import parse_document, read_document, shipped
from loadgen.errors import UsageError
from loadgen.places.options import RunOptions
from loadgen.studies.dry_run import (
    DryRun,
    Machine,
    dry_run,
    duration,
    needs_table,
    schedule_table,
    this_machine,
    told,
)

# Answers of 1,000 names of 100 bytes: 102,040 bytes on the wire.
TEXT = """
servers:
  profile: PROFILE
  proxy: {maxTopicListInFlightHeapMemSizeMB: 3, maxTopicListInFlightDirectMemSizeMB: 2}
topics: {namespaces: 4, per_namespace: 1000}
clients:
  - {name: go, do: discover, library: go, count: 100, arrive: {kind: constant, rate: 10/s}}
  - {name: beat, do: list, count: 10, every: 5s, after: 2s, read: {rate: 51020}}
  - {name: silent, do: list, count: 5, pipelined: 3, read: {never: true}}
phases: {measure: 20s}
"""
ANSWER = 102_040
ROOMY = Machine(1_000_000, 28_000, 1 << 50, 1 << 50)


def document(profile: str = "pulsar") -> Document:
    return parse_document(TEXT.replace("PROFILE", profile))


def needs(wanted: Document | None = None, machine: Machine = ROOMY, **options: Any) -> DryRun:
    return dry_run(wanted or document(), RunOptions(**options), machine)


def needed(*given: Any, **options: Any) -> dict[str, int]:
    return {each.what: each.needed for each in needs(*given, **options).needs}


def test_the_dry_run_reports_requests_and_start_times_of_each_group() -> None:
    go, beat, silent = needs().groups
    assert (go.requests, go.first_start_seconds, go.last_start_seconds) == (100, 0.0, 9.9)
    assert (beat.requests, beat.first_start_seconds) == (40, 2.0)
    assert silent.requests == 15
    assert {go.answer_bytes, beat.answer_bytes, silent.answer_bytes} == {ANSWER}
    assert (go.later, beat.later, silent.later) == (True, False, False)


def test_the_dry_run_counts_connections_descriptors_and_ports() -> None:
    found = needed()
    assert (found["connections through the proxy"], found["ports of a source address"]) == (
        115,
        115,
    )
    assert found["descriptors, worker (each of 2)"] == 58 + 64
    assert found["descriptors, proxy"] == 115 + 115 + 64
    assert found["descriptors, broker"] == 115 + 64
    assert "disk, with 4,000 topics" in found
    shared = needed(document("floodgate"))
    assert (shared["descriptors, proxy"], shared["descriptors, broker"]) == (115 + 8 + 64, 8 + 64)


def test_a_client_that_tunnels_has_a_second_connection_through_the_proxy() -> None:
    group = "{name: java, do: discover, library: java-watch, count: 50}"
    wanted = parse_document(f"{{servers: {{proxy: {{}}}}, clients: [{group}]}}")
    through, direct = needed(wanted), needed(parse_document(f"{{clients: [{group}]}}"))
    assert (through["connections through the proxy"], through["of them tunnels"]) == (100, 50)
    assert direct["connections to the broker"] == 50
    assert "of them tunnels" not in direct


def test_the_memory_of_remote_servers_is_not_checked_on_this_machine() -> None:
    where = {"service_url": "pulsar://10.0.0.1:6650", "admin_urls": {"proxy": "http://a:80"}}
    elsewhere = needed(**where)
    assert [name for name in elsewhere if name.startswith("memory, ")] == [
        "memory, worker (each of 2), about"
    ]
    assert {"connections through the proxy", "disk, with 0 topics"} <= set(elsewhere)
    assert elsewhere["ports of a source address"] == 115
    assert ["descriptors, broker", "179", "unknown"] in needs_table(needs(**where))[1]


@pytest.mark.parametrize(
    ("master", "judged"), [("spark://10.0.0.9:7077", False), ("local[2]", True)]
)
def test_hosts_of_a_spark_cluster_are_not_checked_by_the_ports_of_this_machine(
    master, judged
) -> None:
    tight = Machine(descriptors=100, ports=100, memory_bytes=1 << 40, disk_bytes=1 << 40)
    found = needs(
        machine=tight, service_url="pulsar://10.0.0.1:6650", master=master, place="spark", tasks=2
    )
    assert [each.partition(":")[0] for each in found.obstacles] == judged * [
        "ports of a source address",
        "descriptors, worker (each of 2)",
    ]


def test_virtual_time_needs_neither_descriptors_nor_ports() -> None:
    found = needs(machine=Machine(1, 1, 1, 1 << 50), place="virtual")
    assert [each.what.partition(" ")[0] for each in found.needs] == ["bytes", "disk,"]
    assert not found.obstacles


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (
            ROOMY._replace(descriptors=100),
            r"descriptors, worker \(each of 2\): 122 are needed and 100 are there: raise",
        ),
        (
            ROOMY._replace(ports=100),
            r"ports of a source address: 115 are needed and 100 are there: widen",
        ),
        (
            ROOMY._replace(memory_bytes=1 << 20),
            r"memory in all, about: .* and 1\.0 MB are there: use",
        ),
        (ROOMY._replace(disk_bytes=1 << 10), r"disk, .* and 1 kB are there: use another --out"),
    ],
)
def test_needs_beyond_this_machine_are_refused_with_a_remedy(machine: Machine, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        needs(machine=machine).require_fit()
    needs().require_fit()


@pytest.mark.parametrize(
    ("phases", "said"),
    [
        ("{measure: 20s}", "It takes at most 25.0 s (measuring 20.0 s, draining 5.00 s)."),
        (
            "{warm_up: 1s, measure: 20s, hold: 3s, drain: 0s}, repeats: 2",
            "It takes at most 48.0 s (2 runs of warm-up 1.00 s, measuring 20.0 s, hold 3.00 s).",
        ),
    ],
)
def test_the_maximum_duration_is_reported_by_phases(phases: str, said: str) -> None:
    group = "{name: beat, do: list, count: 1, every: 1s}"
    found = needs(parse_document(f"{{clients: [{group}], phases: {phases}}}"))
    assert duration(found) == said
    assert told(found)["seconds_at_most"] == found.seconds
    once = parse_document("{clients: [{name: once, do: list, count: 1}]}")
    assert duration(needs(once)).endswith(", and less if all clients are done before.")


@pytest.mark.parametrize("clients", [1, 20_000, 20_001, 100_000])
def test_up_to_20_000_clients_need_a_port_each_of_a_source_address(clients: int) -> None:
    group = f"{{name: a, do: list, count: {clients}}}"
    found = needed(parse_document(f"{{clients: [{group}]}}"))
    assert found["ports of a source address"] == min(20_000, clients)


@pytest.mark.parametrize("name", list(shipped()))
def test_the_dry_run_of_each_shipped_scenario_is_shown_as_tables_and_as_json(
    name: str, tmp_path: Path
) -> None:
    found = dry_run(read_document(name), RunOptions(out=tmp_path))
    heads, rows = schedule_table(found)
    assert len(rows) == len(found.groups)
    assert {len(row) for row in rows} == {len(heads)}
    assert {len(row) for row in needs_table(found)[1]} == {3}
    again = json.loads(to_json(told(found)))
    assert [group["requests"] for group in again["groups"]] == [g.requests for g in found.groups]


def test_an_output_directory_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(UsageError, match="--out /proc/x: nothing can be written in /proc: choose"):
        this_machine(Path("/proc/x"))


def test_this_machine_is_measured_for_a_directory_that_does_not_exist_yet(tmp_path: Path) -> None:
    found = this_machine(tmp_path / "not" / "there")
    assert found.disk_bytes
    assert found.descriptors > 0
