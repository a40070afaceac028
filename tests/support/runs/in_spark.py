"""Tables of runs as a Spark session's views: shipped queries run unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from loadgen.notebooks import spark_path
from loadgen.results.questions import parameters_of
from loadgen.results.results import MEASURED, Results
from loadgen.results.tables import TABLES, parts_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession


def register_in_spark(session: SparkSession, directories: Sequence[Path]) -> None:
    """Make the tables of runs views of a Spark session."""
    with Results.open(*directories) as results:
        made = {
            name: results.connection.table(name).to_arrow_table() for name in ("groups", "runs")
        }
    for name, schema in TABLES.items():
        if files := [spark_path(path) for each in directories for path in parts_of(each, name)]:
            session.read.parquet(*files).createOrReplaceTempView(name)
        else:  # Spark knows no dictionaries.
            kinds = ((each.name, getattr(each.type, "value_type", each.type)) for each in schema)
            made[name] = pa.schema(list(kinds)).empty_table()
    for name, table in made.items():
        rows = [tuple(row.values()) for row in table.to_pylist()]
        session.createDataFrame(rows, from_arrow_schema(table.schema)).createOrReplaceTempView(name)
    session.sql(MEASURED).createOrReplaceTempView("measured")


def spark_rows(session: SparkSession, text: str, **parameters: Any) -> list[dict[str, Any]]:
    """The rows of a question, asked of Spark SQL."""
    found = session.sql(text, args=parameters_of(text, parameters))
    return [row.asDict() for row in found.collect()]
