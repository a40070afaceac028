"""``summary.json``: a run's figures, computed from its tables, and facts about its origin.

``python -m loadgen.results.summary`` prints the schema in the file beside this module.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from loadgen.results.verdict import Finding, Level, generator_figures

if TYPE_CHECKING:
    from loadgen.results.results import Results
    from loadgen.results.verdict import Verdict

SCHEMA = Path(__file__).with_name("summary.schema.json")
_MOST_PARTS = 100
_SPLITS = (
    "by-operation", "by-group", "by-group-operation", "by-family", "by-tenant", "by-namespace",
)  # fmt: skip

Count = Annotated[int, Field(ge=0)]
Figure = Annotated[
    float | None, BeforeValidator(lambda x: x if x is not None and math.isfinite(x) else None)
]
"""A number; null without an answer or a measurement."""


class Percentiles(BaseModel):
    """Percentiles in seconds, by nearest rank; null where too few requests were answered."""

    p50: Figure
    p90: Figure
    p99: Figure
    p999: Figure
    max: Figure


class Split(BaseModel):
    """Counts and response times of the requests in one part of a run, excluding the warm-up."""

    part: str
    requests: Count = 0
    answered: Count = 0
    refused: Count = 0
    wrong: Count = 0
    timeout: Count = 0
    disconnected: Count = 0
    unreachable: Count = 0
    bytes: Count = 0
    response_seconds: Percentiles | None = Field(None, description="Since due; of all requests.")


class Service(BaseModel):
    """Seconds from sending to the answer, over the answered requests of one ``GROUP.OPERATION``."""

    part: str
    answered: Count
    service_seconds: Percentiles


class Reason(BaseModel):
    """A reason why requests were not answered, and the number of these requests."""

    outcome: str
    reason: str
    requests: Count


class Answers(BaseModel):
    """The smallest and largest listing of one namespace that one group of clients received."""

    group: str
    namespace: str
    answers: Count
    least_topics: int
    most_topics: int
    least_bytes: int
    most_bytes: int


class Back(BaseModel):
    """The number of a group's clients that were served completely, and when; null means never."""

    group: str
    family: str
    clients: Count
    back: Count
    back_seconds: Percentiles


class ServerFigure(BaseModel):
    """A server metric's values over the run; ``rise`` is the increase of a counter."""

    first: Figure
    last: Figure
    max: Figure
    rise: Figure


class Server(BaseModel):
    """A server's version, settings, and metrics, which have common names like ``direct.used``."""

    version: str | None = None
    settings: dict[str, str] = {}
    figures: dict[str, ServerFigure] = {}


class Shock(BaseModel):
    """A shock of the run; ``again_seconds`` later every client had received an answer again."""

    at: float
    what: str
    ready_seconds: Figure = None
    again_seconds: Figure = None


class Expected(BaseModel):
    """An expectation of the scenario, and whether it holds."""

    expectation: Annotated[str, BeforeValidator(lambda found: getattr(found, "text", found))]
    holds: bool
    value: Figure
    found: str = Field(description="The value in words, or why there is none.")


class Judgement(BaseModel):
    """The verdict on a run, which is that of its worst finding."""

    level: Level
    word: str
    exit_code: int


class Summary(BaseModel):
    """The figures of a run, and facts about its origin."""

    schema_version: Literal[2] = 2
    run: str
    name: str
    title: str = ""
    place: str = ""
    started_at: str = ""
    server_version: str | None = None
    verdict: Judgement
    clients: Count
    duration_seconds: float
    total: Split
    splits: dict[str, list[Split]] = Field(description="In each split, parts with most requests.")
    service: list[Service]
    reasons: list[Reason]
    answers: list[Answers]
    back: list[Back]
    servers: dict[str, Server]
    shocks: list[Shock]
    generator: dict[str, Figure]
    expectations: list[Expected]
    findings: list[Finding]


def summary_of(results: Results, verdict: Verdict) -> Summary:
    """Compute the summary of a run from its tables."""
    run = results.run
    total = next(iter(results.query("all")), None)
    back = results.query("back")
    document: dict[str, Any] = {
        **{key: run[key] for key in ("run", "name", "server_version") if key in run},
        **{key: str(run.get(key) or "") for key in ("title", "place", "started_at")},
        "verdict": verdict,
        "clients": sum(row["clients"] for row in back),
        "duration_seconds": results.ended,
        "total": {**total, "response_seconds": total} if total else {"part": "all"},
        "splits": {name: _largest(results.query(name)) for name in _SPLITS},
        "service": [{**row, "service_seconds": row} for row in results.query("service")],
        "reasons": results.query("reasons", most=_MOST_PARTS),
        "answers": results.query("answers")[:_MOST_PARTS],
        "back": [{**row, "back_seconds": row} for row in back],
        "servers": _servers(results),
        "shocks": [
            {**shock, **results.query("again", at=shock["at"])[0]}
            for shock in run.get("shocks") or ()
        ],
        "generator": generator_figures(results),
        "expectations": verdict.judged,
        "findings": verdict.findings,
    }
    return Summary.model_validate(document, from_attributes=True)


def _largest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = sorted(rows, key=lambda row: -row["requests"])[:_MOST_PARTS]
    return [{**row, "response_seconds": row} for row in rows]


def _servers(results: Results) -> dict[str, dict[str, Any]]:
    told = results.run.get("servers") or {}
    servers = {name: {**facts, "figures": {}} for name, facts in told.items()}
    for row in results.query("servers"):
        servers.setdefault(row["process"], {"figures": {}})["figures"][row["figure"]] = row
    return servers


def rendered() -> str:
    """Return the JSON schema of ``summary.json`` as text."""
    schema = "https://json-schema.org/draft/2020-12/schema"
    return json.dumps({"$schema": schema, **Summary.model_json_schema()}, indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(rendered())
