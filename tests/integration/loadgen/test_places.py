"""A run is the same in all places, and its tables hold its servers' events."""

import json
import os
import signal
from collections import Counter
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from loadgen.documents.model import Document
from loadgen.engine.rows import Outcome
from loadgen.engine.totals import Totals
from loadgen.errors import ExitCode, LoadgenError
from loadgen.places.experiment import experiment
from loadgen.places.options import RunOptions
from loadgen.results.results import Results
from loadgen.results.tables import EVENTS, REQUESTS, SAMPLES
from loadgen.results.verdict import verdict_of
from tests.support.peers.stand_in_broker import StandInBroker, running, topic_names

ARRIVE = {"kind": "poisson", "rate": "40/s"}
CLIENTS: list[dict[str, Any]] = [
    {"name": "steady", "do": "list", "count": 7, "every": "250ms", "arrive": ARRIVE},
    {"name": "go", "do": "discover", "library": "go", "count": 6, "attach": 2, "arrive": ARRIVE},
]
PHASES = {"measure": "1s", "drain": "30s"}  # as long as a busy machine needs


def document(**values: Any) -> Document:
    topics = {"namespaces": 3, "per_namespace": 50}
    given = {"name": "same", "topics": topics, "clients": CLIENTS, "phases": PHASES, "seed": 5}
    return Document.model_validate({**given, **values})


def rows(directory: Path, table: str) -> list[dict[str, Any]]:
    return list(pq.read_table(directory / table).to_pylist())


def starts(directory: Path) -> list[tuple[int, str, float]]:
    """Return each client's first list and time, by the schedule."""
    first: dict[int, tuple[int, str, float]] = {}
    for row in sorted(rows(directory, "requests"), key=lambda row: row["due"]):
        if row["operation"] == "list":
            found = row["client"], row["namespace"], round(row["due"], 9)
            first.setdefault(row["client"], found)
    return sorted(first.values())


def test_a_seed_gives_equal_request_starts_in_one_process_two_and_virtual_time(tmp_path) -> None:
    places = {
        "one": RunOptions(tmp_path, "one", tasks=1),
        "two": RunOptions(tmp_path, "two", tasks=2),
        "virtual": RunOptions(tmp_path, "virtual", place="virtual"),
    }
    found = {name: experiment(document(), options) for name, options in places.items()}
    assert len(starts(found["one"])) == 13
    assert starts(found["one"]) == starts(found["two"]) == starts(found["virtual"])
    for directory in found.values():
        assert {row["outcome"] for row in rows(directory, "requests")} == {"answered"}
        assert Counter(
            row["group"] for row in rows(directory, "events") if row["what"] == "back"
        ) == {"steady": 7, "go": 6}
        for table, schema in {"requests": REQUESTS, "events": EVENTS, "samples": SAMPLES}.items():
            assert pq.read_table(directory / table).schema.names == schema.names
        told = json.loads((directory / "run.json").read_text())
        assert (told["schema_version"], told["name"], told["interrupted"]) == (2, "same", False)
        assert told["servers"]["broker"]["seen_at_the_end"]
    figures = {row["figure"] for row in rows(found["two"], "samples")}
    assert {"heap.used", "resident", "resident.high", "cpu.seconds"} <= figures


def test_shocks_hit_servers_and_their_link_and_clients_reconnect(tmp_path: Path) -> None:
    shocks = [
        {"at": "300ms", "set": {"maxTopicListInFlightHeapMemSizeMB": 60}},
        {"at": "500ms", "cut": "link", "for": "200ms"},
        {"at": "1s", "restart": "proxy"},
    ]
    directory = experiment(
        document(servers={"proxy": {}}, shocks=shocks, phases={"measure": "10s", "drain": "10s"}),
        RunOptions(tmp_path),
    )
    told = json.loads((directory / "run.json").read_text())["shocks"]
    assert [each["what"] for each in told] == [
        "set maxTopicListInFlightHeapMemSizeMB=60",
        "cut link",
        "restart proxy",
    ]
    events = rows(directory, "events")
    assert Counter(row["what"] for row in events if row["client"] < 0) == {
        "shock": 3,
        "shock-over": 3,
    }
    lost = {row["client"] for row in events if row["what"] == "connection-lost"}
    assert lost == set(range(13))
    # A busy machine's restart may outlast the load.
    back = max(row["seconds"] for row in events if row["what"] == "shock-over") + 1
    later = [row for row in rows(directory, "requests") if row["due"] > back]
    assert {row["outcome"] for row in later} == {"answered"} or back > 9
    assert (directory / "proxy.log").exists()


def test_ctrl_c_ends_a_run_and_keeps_its_rows(tmp_path: Path) -> None:
    told: list[Totals] = []

    def interrupt(totals: Totals) -> None:
        if totals.of(Outcome.ANSWERED) and not told:
            told.append(totals)
            os.kill(os.getpid(), signal.SIGINT)

    names = {"public/default": topic_names("public/default", 10, 100)}
    with running(StandInBroker(names)) as url:
        options = RunOptions(tmp_path, service_url=url, on_progress=interrupt)
        endless = document(topics={"of": list(names)}, clients=CLIENTS[:1], phases={"hold": "1h"})
        directory = experiment(endless, options)
    assert json.loads((directory / "run.json").read_text())["interrupted"]
    assert rows(directory, "requests")


def test_abort_early_ends_a_run_with_its_reason(tmp_path: Path) -> None:
    names = {"public/default": topic_names("public/default", 10, 100)}
    with running(StandInBroker(names)) as url:
        options = RunOptions(
            tmp_path,
            service_url=url,
            abort_early=lambda totals: "too many" if totals.of(Outcome.ANSWERED) else None,
        )
        endless = document(topics={"of": list(names)}, clients=CLIENTS[:1], phases={"hold": "1h"})
        told = json.loads((experiment(endless, options) / "run.json").read_text())
    assert (told["aborted"], told["interrupted"]) == ("too many", False)


def test_a_run_keeps_the_rows_of_the_surviving_worker(tmp_path: Path) -> None:
    killed: list[str] = []

    def kill(totals: Totals) -> None:
        # Once: to look for children again would take the dead one's exit code from the run.
        if totals.of(Outcome.ANSWERED) and not killed:
            for worker in active_children():
                if worker.name == "worker process 1":
                    killed.append(worker.name)
                    worker.kill()

    names = {"public/default": topic_names("public/default", 10, 100)}
    with running(StandInBroker(names)) as url:
        options = RunOptions(tmp_path, service_url=url, on_progress=kill)
        endless = document(topics={"of": list(names)}, clients=CLIENTS[:1], phases={"hold": "1h"})
        directory = experiment(endless, options)
    told = json.loads((directory / "run.json").read_text())
    assert [each["task"] for each in told["tasks"]] == [0]
    why = "worker process 1 ended without a report: exit code -9"
    assert told["lost"] == f"lost are tasks 1 on 127.0.0.1, of 2: {why}"
    assert {row["task"] for row in rows(directory, "requests")} <= {0}
    with Results.open(directory) as results:
        assert verdict_of(results).exit_code == ExitCode.GENERATOR_LIMITED


def test_an_unreachable_server_raises_an_error_and_leaves_no_files(tmp_path: Path) -> None:
    options = RunOptions(tmp_path, service_url="pulsar://127.0.0.1:1")
    with pytest.raises(LoadgenError, match=r"cannot be reached .* Connection refused; is it run"):
        experiment(document(topics={"of": ["public/default"]}), options)
    assert not list(tmp_path.iterdir())
