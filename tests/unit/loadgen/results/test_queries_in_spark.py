"""Every shipped question gives equal rows in DuckDB and in Spark SQL, infinities included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from loadgen.results.questions import QUERIES
from loadgen.results.results import Results
from tests.support.runs.in_spark import register_in_spark, spark_rows
from tests.support.runs.recorded_run import event, record_run, request, sample
from tests.support.runs.shared_spark import SharedSpark

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

GROUPS = [
    {"name": "steady", "do": "list", "count": 40},
    {"name": "watchers", "do": "watch", "count": 1},
    {"name": "churn", "do": "create-and-delete", "count": 1},
    {"name": "orders", "do": "publish", "count": 1},
    {"name": "billing", "do": "consume", "count": 2, "of": "orders", "subscription": "s"},
]
"""Each group has lost, doubled, untold or contradicted rows, so that no answer is empty."""
PLAYED = (
    (50, "orders", "lookup", "topic", 0.0),
    (51, "billing", "lookup", "topic", 0.0),
    (51, "billing", "subscribe", "", 0.5),
    (50, "orders", "publish", "1", 1.0),
    (50, "orders", "publish", "2", 2.0),
    (51, "billing", "deliver", "50 2", 2.0),
    (52, "billing", "deliver", "50 2", 2.0),
    (60, "watchers", "watch", "", 0.5),
    (70, "churn", "create", "a", 1.0),
    (70, "churn", "create", "b", 2.0),
    (60, "watchers", "update", "+a", 1.0),
)


def rows() -> list[dict[str, Any]]:
    outcomes = ("answered", "refused", "timeout", "disconnected", "unreachable", "wrong")
    lists = [
        request(
            client=n, task=n % 2, namespace=f"t{n % 3}/n", family=("", "go")[n % 2], due=n / 7,
            response_seconds=0.001 * 1.3**n, outcome=outcomes[0 if n < 35 else n - 34],
            reason="" if n < 35 else "why", topics_hash=f"h{n % 2}", bytes=100 * n,
        )
        for n in range(40)
    ]  # fmt: skip
    played = [
        request(
            client=client, group=group, operation=operation, item=item, due=due, topics=None,
            namespace="t/played",
        )
        for client, group, operation, item, due in PLAYED
    ]  # fmt: skip
    return [*lists, *played, request(client=1, due=60.0)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    back = [event("back", client=n, value=n / 3, namespace=f"t{n % 3}/n") for n in range(30)]
    samples = [sample("direct.used", at, value) for at, value in ((0, 1.0), (1, 9.0), (2, 3.0))]
    directory = tmp_path_factory.mktemp("run")
    return record_run(directory, rows(), back, samples, GROUPS)


@pytest.fixture(scope="module")
def session(run: Path, shared_spark: SharedSpark) -> Iterator[SparkSession]:
    session = shared_spark.session()
    before = session.conf.get("spark.sql.shuffle.partitions")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    register_in_spark(session, [run])
    yield session
    session.conf.set("spark.sql.shuffle.partitions", before)


@pytest.mark.parametrize("name", QUERIES)
def test_a_shipped_query_has_the_same_rows_in_duckdb_and_in_spark(name, run, session) -> None:
    with Results.open(run) as results:
        here = results.query(name)
    assert here
    assert spark_rows(session, QUERIES[name].sql) == here
