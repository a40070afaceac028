"""The shipped SQL queries of a run's tables, valid in both DuckDB and Spark SQL."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from loadgen.engine.rows import RUN_ENDED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PERCENTILES = {"p50": 500_000, "p90": 900_000, "p99": 990_000, "p999": 999_000}
"""The percentiles of every split, in millionths: whole numbers are exact in any SQL."""
_DEFAULTS: Mapping[str, Any] = {"most": 20, "patience": 2.0, "at": 0.0}
PARTS = {
    "all": "'all'",
    "by-operation": "r.operation",
    "by-group": "r.group",
    "by-group-operation": "concat(r.group, '.', r.operation)",
    "by-family": "r.family",
    "by-namespace": "r.namespace",
    "by-tenant": "split_part(r.namespace, '/', 1)",
    "by-second": "CAST(floor(r.due) AS BIGINT)",
}
"""The ways to split requests, with the SQL expression of each."""
_RISE = """CASE WHEN before IS NULL THEN 0E0 WHEN value < 0.99 * before THEN value
    ELSE greatest(value - before, 0E0) END"""
"""The rise of a counter since ``before``. A sum of floats, or two readers of a process, may make a
counter fall by a trace, which does not count as a restart.
"""
_SECTION = re.compile(r"^-- name: (\S+)\n((?:-- .*\n)+)", re.MULTILINE)
PARAMETER = re.compile(r"(?<![:\w]):([a-z]\w*)")


class Query(NamedTuple):
    """A shipped SQL query with its title."""

    title: str
    sql: str

    @property
    def written(self) -> str:
        """The SQL text with the default values in place of its parameters."""
        return PARAMETER.sub(lambda found: str(_DEFAULTS[found[1]]), self.sql)


def parameters_of(text: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the parameters in an SQL text: given values, or else the defaults."""
    return {name: {**_DEFAULTS, **given}[name] for name in PARAMETER.findall(text)}


def read_questions(path: Path) -> dict[str, Query]:
    """Read a file of SQL queries, each below a comment with its name and title."""
    text = path.read_text(encoding="utf-8").replace("{rise}", _RISE)
    _, *parts = _SECTION.split(text.replace("{ended}", f"'{RUN_ENDED}'"))
    titles = (part.removeprefix("-- ").replace("\n-- ", " ").strip() for part in parts[1::3])
    asked = map(Query, titles, map(str.strip, parts[2::3]))
    return dict(zip(parts[::3], asked, strict=True))


_TEXTS = read_questions(Path(__file__).with_name("queries.sql"))
_SPLIT = _TEXTS["split"].sql


def split(
    part: str = "'all'",
    where: str = "true",
    seconds: str = "r.response_seconds",
    shares: Mapping[str, int] = PERCENTILES,
    rows: str = "measured",
) -> str:
    """Return SQL that counts requests and computes percentiles for each value of ``part``.

    Args:
        part: An SQL expression over a row ``r``.
        where: The SQL condition of the rows that count.
        seconds: The SQL column whose percentiles are computed.
        shares: The name of each percentile, with its share in millionths.
        rows: The name of the table.
    """
    columns = [
        f"max(CASE WHEN share = {share} THEN seconds END) AS {n}" for n, share in shares.items()
    ]
    return _SPLIT.format(
        part=part,
        where=where,
        seconds=seconds,
        rows=rows,
        shares=", ".join(f"({share})" for share in shares.values()),
        percentiles=", ".join(columns),
        columns=", ".join(f"p.{name}" for name in shares),
    )


def _queries() -> Iterator[tuple[str, Query]]:
    about = _TEXTS.pop("split").title
    for name, part in PARTS.items():
        words = name.removeprefix("by-").replace("-", " and ")
        title = about.format(part=words).replace("the requests of each all", "all requests")
        yield name, Query(title, split(part))
    title = "Those answered by group and operation, from when they were sent."
    part = PARTS["by-group-operation"]
    yield "service", Query(title, split(part, "r.outcome = 'answered'", "r.service_seconds"))
    inner = _TEXTS["clients"].sql.partition("ORDER BY k.")[0]
    for name, query in _TEXTS.items():
        yield name, query._replace(sql=query.sql.replace("{clients}", inner))


QUERIES = dict(_queries())
"""Every shipped query by name; a query concerns a single run."""
