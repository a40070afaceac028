"""A run opens quickly, and queries equal counts made by hand."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.places.shocks import shock_events
from loadgen.results.questions import QUERIES, split
from loadgen.results.results import Results, RunDirectoryError
from loadgen.results.tables import write_rows
from tests.support.runs.recorded_run import TASK, event, record_run, request, sample

INF = math.inf
IN_MEMORY = duckdb.connect()


def asked(name: str, directory: Path, **parameters: Any) -> list[dict[str, Any]]:
    with Results.open(directory) as results:
        return results.query(name, **parameters)


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({}, "has no run.json: the run did not finish"),
        ({"run.json": {"schema_version": 1}}, "schema_version 1, this one reads 2"),
        ({"run.json": []}, "schema_version None"),
    ],
)
def test_an_unfinished_run_or_a_run_of_another_version_is_refused(
    files: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(RunDirectoryError, match=sentence):
        Results.open(tmp_path)


def test_a_missing_run_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="is not a run directory"):
        Results.open(tmp_path / "gone")


def test_a_truncated_part_file_is_refused(tmp_path: Path) -> None:
    (part,) = (record_run(tmp_path, [request()]) / "requests").iterdir()
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(RunDirectoryError, match=r"requests of .* cannot be read: "):
        Results.open(tmp_path)


@pytest.mark.parametrize("table", ["requests", "events"])
def test_a_run_that_has_lost_the_rows_of_a_task_is_refused(table: str, tmp_path: Path) -> None:
    shutil.rmtree(record_run(tmp_path, [request()]) / table)
    with pytest.raises(RunDirectoryError, match=f"{table} has 0 of 1 files"):
        Results.open(tmp_path)


def test_the_part_file_of_the_driver_does_not_replace_the_part_of_a_task(tmp_path: Path) -> None:
    run = record_run(tmp_path, [request()], tasks=[TASK, {**TASK, "task": 1}])
    shocks = shock_events([{"at": 1.0, "what": "restart broker", "ready_seconds": 2.0}])
    write_rows(str(run), "r", 2, 0.0, shocks)
    (run / "requests" / "part-00000.parquet").unlink()
    with pytest.raises(RunDirectoryError, match="requests has 1 of 2 files"):
        Results.open(run)


def test_a_run_that_lacks_a_listed_file_is_refused(tmp_path: Path) -> None:
    files = {"requests": ["part-00000.parquet", "merged-part-00001.parquet"], "samples": []}
    run = record_run(tmp_path, [request()], files=files)
    with pytest.raises(RunDirectoryError, match=r"requests has 1 of 2 files: the run is no longer"):
        Results.open(run)


def test_a_file_that_the_run_does_not_list_is_ignored(tmp_path: Path) -> None:
    files = {"requests": ["part-00000.parquet"], "events": ["part-00000.parquet"]}
    run = record_run(tmp_path, [request()], files=files)
    shutil.copy(run / "requests" / "part-00000.parquet", run / "requests" / "part-00007.parquet")
    assert asked("all", run)[0]["requests"] == 1


def test_a_watch_refused_for_a_too_long_pattern_does_not_count_as_refused(tmp_path: Path) -> None:
    longer = "NotAllowedError: Pattern longer than maximum: 50"
    rows = [
        request(operation="watch", outcome="refused", reason=longer),
        request(operation="watch", outcome="refused", reason="TooManyRequests: full"),
        request(operation="list"),
    ]
    (client,) = asked("clients", record_run(tmp_path, rows))
    assert (client["asked"], client["refused"]) == (2, 1)


def test_a_table_with_damaged_pages_is_refused(tmp_path: Path) -> None:
    run = record_run(tmp_path, [request(reason=f"{number:090}") for number in range(90)])
    (part,) = (run / "requests").iterdir()
    content = bytearray(part.read_bytes())
    pages = slice(4, -8 - int.from_bytes(content[-8:-4], "little"))  # between magic and footer
    content[pages] = bytes(len(content[pages]))
    part.write_bytes(content)
    with (
        Results.open(run) as results,
        pytest.raises(RunDirectoryError, match=r"^the tables of \S+ cannot be read: "),
    ):
        results.query("all")


def test_a_column_that_an_older_run_lacks_is_null(tmp_path: Path) -> None:
    runs = [record_run(tmp_path / name, [request(run=name)], run=name) for name in ("new", "old")]
    (part,) = (runs[1] / "requests").iterdir()
    table = pq.read_table(part)
    pq.write_table(table.drop_columns(["topics_hash", "first_byte"]), part)
    asked = 'SELECT run, upper(topics_hash) AS hash, first_byte + 1 AS "first" FROM requests'
    for several in (runs, runs[1:]):
        with Results.open(*several) as results:
            found = {row["run"]: (row["hash"], row["first"]) for row in results.sql(asked)}
        assert found == {"old": (None, None)} | ({"new": ("H", 1.1)} if several is runs else {})


def test_table_files_carry_their_schema_version(tmp_path: Path) -> None:
    (part,) = (record_run(tmp_path) / "samples").iterdir()
    assert pq.read_metadata(part).metadata[b"floodgate.schema_version"] == b"2"


def test_runs_of_the_same_name_are_not_opened_together(tmp_path: Path) -> None:
    runs = [record_run(tmp_path / name, [request()]) for name in ("a", "b")]
    with pytest.raises(RunDirectoryError, match="two of these runs are called r: "):
        Results.open(*runs)


def test_a_shock_does_not_count_as_a_client(tmp_path: Path) -> None:
    shock = event("shock", client=-1, group="", namespace="")
    run = record_run(tmp_path, [request()], [event("back", value=1.0), shock])
    assert [row["client"] for row in asked("clients", run)] == [0]
    assert [row["rate"] for row in asked("back", run)] == [1.0]


def test_every_shipped_query_runs_on_empty_tables(tmp_path: Path) -> None:
    with Results.open(record_run(tmp_path)) as results:
        rows = {name: results.query(name) for name in QUERIES}
    assert {name for name, found in rows.items() if found} == {"again"}


def test_a_shipped_query_reads_the_tables_only_once(tmp_path: Path) -> None:
    with Results.open(record_run(tmp_path, [request()])) as results:
        first = results.query("all")
        results.connection.close()
        assert results.query("all") == first


def test_measured_requests_of_a_single_run_are_read_without_a_join(tmp_path: Path) -> None:
    # With an index, a query of 20 million rows took ten times as long.
    requests = [request(due=due) for due in (1.0, 100.0)]
    with Results.open(record_run(tmp_path, requests)) as results:
        explained = 'EXPLAIN SELECT "group", count(*) FROM measured GROUP BY ALL'
        plan = str(results.connection.execute(explained).fetchall()).upper()
    assert "PARQUET" in plan
    assert "JOIN" not in plan


def test_a_request_without_an_answer_has_an_infinite_response_time(tmp_path: Path) -> None:
    rows = [request(client=n, response_seconds=n / 100) for n in range(98)]
    rows += [request(client=98, outcome="refused"), request(client=99, outcome="timeout")]
    (found,) = asked("all", record_run(tmp_path, rows))
    assert (found["requests"], found["answered"], found["refused"], found["timeout"]) == (
        100,
        98,
        1,
        1,
    )
    assert [found[p] for p in ("p50", "p90", "p99", "max")] == [0.49, 0.89, INF, INF]


@given(
    times=st.lists(st.floats(1e-7, 1e3) | st.just(INF) | st.sampled_from([0.0, 0.1]), min_size=1),
    share=st.sampled_from([1, 500_000, 990_000, 999_900, 1_000_000]),
)
def test_a_percentile_computed_in_two_steps_is_the_nearest_rank(
    times: list[float], share: int
) -> None:
    # The text of a run's questions, applied to values alone
    text = split("'all'", "true", "r.response_seconds", {"p": share})
    values = ", ".join(f"({x!r}::DOUBLE)" if x < INF else "('inf'::DOUBLE)" for x in times)
    IN_MEMORY.execute(
        f"CREATE OR REPLACE VIEW measured AS SELECT *, 'answered' AS outcome, 1 AS bytes "
        f"FROM (VALUES {values}) AS v(response_seconds)"
    )
    found = IN_MEMORY.execute(f"SELECT p FROM ({text})").fetchone()
    rank = max(1, -(-share * len(times) // 1_000_000))
    assert found == (sorted(times)[rank - 1],)


def test_only_requests_due_in_the_measure_phase_count(tmp_path: Path) -> None:
    rows = [request(due=due) for due in (0.0, 1.0, 2.5, 3.0, 9.0)]
    phases = {"phases": {"warm_up": 1.0, "measure": 2.0}}
    (found,) = asked("all", record_run(tmp_path, rows, document=phases))
    assert found["requests"] == 2


def test_requests_are_split_by_group_tenant_and_second(tmp_path: Path) -> None:
    rows = [
        request(group="a", namespace="t1/x", due=0.4),
        request(group="a", namespace="t2/x", due=1.2),
        request(group="b", namespace="t2/y", due=1.9, outcome="unreachable"),
    ]
    run = record_run(tmp_path, rows)
    counted = lambda name: {row["part"]: row["requests"] for row in asked(name, run)}  # noqa: E731
    assert counted("by-group") == {"a": 2, "b": 1}
    assert counted("by-group-operation") == {"a.list": 2, "b.list": 1}
    assert counted("by-tenant") == {"t1": 1, "t2": 2}
    assert counted("by-second") == {0: 1, 1: 2}


def test_a_client_that_is_never_back_has_an_infinite_recovery_time(tmp_path: Path) -> None:
    rows = [request(client=n) for n in range(4)]
    back = [event("back", client=n, value=n + 1.0) for n in range(3)]
    (found,) = asked("back", record_run(tmp_path, rows, back))
    assert (found["clients"], found["back"], found["rate"]) == (4, 3, 0.75)
    assert (found["p50"], found["p999"]) == (2.0, INF)
    assert (found["p50"], found["p90"], found["max"]) == (2.0, INF, INF)


def test_the_listings_the_recovery_and_the_reconnects_of_a_client_are_counted(tmp_path) -> None:
    events = [event("back", value=1.0), event("connection-lost"), event("connection-lost")]
    (found,) = asked("clients", record_run(tmp_path, [request()] * 3, events))
    assert (found["back_seconds"], found["listings"], found["reconnects"]) == (1.0, 3, 2)


def listing(task: int, names: str, **said: Any) -> dict[str, Any]:
    return request(task=task, topics_hash=names, **said)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([listing(0, "a"), listing(1, "a")], []),
        ([listing(0, "a"), listing(1, "b")], [("t/n", "steady", 2, 0, 1)]),
        # Another question, namespace, group, or an answer wrong for other reasons.
        ([listing(0, "a"), listing(1, "b", item="x.* []")], []),
        ([listing(0, "a"), listing(1, "b", namespace="t/m")], []),
        ([listing(0, "a"), listing(1, "b", group="other")], []),
        ([listing(0, "a"), listing(1, "b", outcome="wrong")], []),
        # No changes: no names.
        ([listing(0, "a"), listing(1, "", topics=None)], []),
        # A concurrent change of the namespace.
        ([listing(0, "a"), listing(1, "b"), request(operation="create", topics=None)], []),
    ],
)
def test_tasks_disagree_if_correct_answers_to_the_same_request_differ(
    rows, found, tmp_path
) -> None:
    keys = ("namespace", "group", "kinds", "first_task", "last_task")
    rows = asked("agreement", record_run(tmp_path, rows))
    assert [tuple(row[key] for key in keys) for row in rows] == found


ORDERS = {"name": "orders", "do": "publish", "count": 1}
BILLING = {"name": "billing", "do": "consume", "count": 1, "of": "orders", "subscription": "s"}
TOPIC = "persistent://t/n/loadgen-orders-0"


def published(number: int, **said: Any) -> dict[str, Any]:
    due = said.pop("due", float(number))
    return request(group="orders", client=7, operation="publish", item=str(number), due=due, **said)


def delivered(number: int, client: int = 8) -> dict[str, Any]:
    return request(
        group="billing", client=client, operation="deliver", item=f"7 {number}", due=float(number)
    )


STANDING = [
    request(group="orders", client=7, operation="lookup", item=TOPIC),
    request(group="billing", client=8, operation="lookup", item=TOPIC),
    request(group="billing", client=8, operation="subscribe", due=0.5),
    request(client=1, due=60.0),
]


@pytest.mark.parametrize(
    ("rows", "events", "billing", "lost"),
    [
        ([published(1), delivered(1)], [], {}, 0),
        ([published(1), published(2), delivered(2)], [], {}, 1),
        ([published(1, outcome="timeout")], [], {}, 0),
        # Sent before the subscription stood, or answered when the run was about to end.
        ([published(1, due=0.2)], [], {}, 0),
        ([published(1, due=58.5)], [], {}, 0),
        # The consumer was lost in between; much later, the message would have arrived.
        ([published(1)], [event("connection-lost", client=8, seconds=2.0)], {}, 0),
        ([published(1)], [event("connection-lost", client=8, seconds=9.0)], {}, 1),
        # The client does not read, or reads in parts.
        ([published(1)], [], {"read": {"never": True}}, 0),
        ([published(1)], [], {"read": {"rate": 100.0}}, 0),
    ],
)
def test_a_message_never_delivered_to_a_connected_consumer_is_lost(
    rows: list[Any], events: list[Any], billing: dict[str, Any], lost: int, tmp_path: Path
) -> None:
    groups = [ORDERS, {**BILLING, **billing}]
    found = asked("lost", record_run(tmp_path, [*STANDING, *rows], events, clients=groups))
    assert sum(row["lost"] for row in found) == lost


@pytest.mark.parametrize(
    ("events", "doubled"), [([], 1), ([event("connection-lost", group="billing")], 0)]
)
def test_a_message_delivered_twice_is_doubled_unless_a_connection_was_lost(
    events: list[Any], doubled: int, tmp_path
) -> None:
    rows = [delivered(1, 8), delivered(1, 9), delivered(2, 8)]
    run = record_run(tmp_path, rows, events, clients=[ORDERS, BILLING])
    assert sum(row["doubled"] for row in asked("doubled", run)) == doubled


def test_a_change_that_an_open_watch_did_not_report_is_counted(tmp_path: Path) -> None:
    watching = [
        request(group="w", client=c, operation="watch", due=float(c), topics=None) for c in (1, 5)
    ]
    changes = [
        request(group="churn", client=9, operation=kind, item=topic, due=due, topics=None)
        for kind, topic, due in (("create", "a", 3.0), ("create", "b", 7.0), ("delete", "a", 8.0))
    ]
    told = [
        request(group="w", client=c, operation="update", item=item, topics=None)
        for c, item in ((1, "+a"), (1, "+b"), (5, "+b"), (5, "-a"))
    ]
    groups = [{"name": "w", "do": "watch", "count": 2}]
    rows = [*watching, *changes, *told, request(due=60.0)]
    (found,) = asked("untold", record_run(tmp_path, rows, clients=groups))
    assert (found["group"], found["untold"], found["clients"]) == ("w", 1, 1)


def test_a_counter_that_falls_counts_as_restarted(tmp_path: Path) -> None:
    points = [sample("cpu.seconds", at, value) for at, value in enumerate((5.0, 7.0, 1.0, 2.0))]
    (found,) = asked("servers", record_run(tmp_path, samples=points))
    figures = [found[key] for key in ("first", "last", "max", "rise", "last_seconds")]
    assert figures == [5.0, 2.0, 7.0, 4.0, 3.0]


def test_a_counter_that_falls_by_noise_does_not_count_as_restarted(tmp_path: Path) -> None:
    noisy = (4.46, 4.459999999999999, 4.46, 4.5, 4.49, 1.37, 1.3699999999999999, 1.38)
    points = [sample("cpu.seconds", at, value) for at, value in enumerate(noisy)]
    (found,) = asked("servers", record_run(tmp_path, samples=points))
    assert found["rise"] == pytest.approx(0.04 + 1.38)


def test_recovery_ends_when_the_last_client_has_an_answer_again(tmp_path: Path) -> None:
    rows = [request(client=c, due=due) for c, due in ((1, 1.0), (1, 6.0), (2, 8.0), (2, 9.0))]
    run = record_run(tmp_path, rows)
    assert asked("again", run, at=5.0)[0]["again_seconds"] == pytest.approx(3.1)
    assert asked("again", run, at=5.0)[0]["clients"] == 2
    assert [each["seconds"] for each in asked("again", run)] == [0.0]


def test_recovery_has_a_row_for_each_shock(tmp_path: Path) -> None:
    rows = [request(client=c, due=due) for c, due in ((1, 1.0), (1, 6.0), (2, 8.0), (1, 11.0))]
    shocks = [event("shock", seconds=at, client=-1, text=f"at {at:g}") for at in (20.0, 5.0, 7.5)]
    run = record_run(tmp_path, rows, events=shocks)
    found = [
        (each["shock"], each["again_seconds"], each["clients"]) for each in asked("again", run)
    ]
    assert found == [
        ("at 5", pytest.approx(3.1), 2), ("at 7.5", pytest.approx(3.6), 2), ("at 20", None, 0)
    ]  # fmt: skip


def test_requests_of_several_open_runs_are_measured_by_their_own_phases(tmp_path: Path) -> None:
    first = record_run(tmp_path / "a", [request()], document={"phases": {"warm_up": 1.0}})
    second = record_run(tmp_path / "b", [request(run="s")] * 2, run="s")
    with Results.open(first, second) as results:
        rows = results.sql("SELECT run, count(*) AS n FROM measured GROUP BY run")
    assert rows == [{"run": "s", "n": 2}]
