"""The form of ``summary.json``, as a model and as the JSON schema beside this module.

A scenario adds parts of its own, so further fields are allowed. The module prints the schema:
``python -m loadgen.results.schema``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

SCHEMA = Path(__file__).with_name("summary.schema.json")

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class Percentiles(_Part):
    """Latencies by nearest rank. Units: seconds."""

    p50: float
    p90: float
    p99: float
    p999: float
    max: float


class Extremes(_Part):
    """The least and the most."""

    min: int
    max: int


class Accounted(_Part):
    """One kind of memory that a limiter accounts for; null is not measured. Units: bytes."""

    limit_bytes: Count
    high_water_bytes: int | None
    highest_scrape_bytes: int | None
    final_bytes: int | None


class Process(_Part):
    """A watched server; null is not measured or not accounted for."""

    heap: Accounted | None
    direct: Accounted | None
    outbound_pending_peak_bytes: int | None
    resident_idle_bytes: int | None
    resident_peak_bytes: int | None
    resident_over_idle_bytes: int | None
    resident_over_first_scrape_bytes: int | None
    heap_timeouts: int | None
    direct_timeouts: int | None
    heap_queue_peak: int | None
    direct_queue_peak: int | None
    cpu_seconds: float | None = None
    again_seconds: float | None = Field(
        default=None, description="From its restart until every client was answered again."
    )
    descriptors_peak: int | None = None
    descriptors_limit: int | None = None


class Server(_Part):
    """A server's own words on itself."""

    version: str | None
    settings: dict[str, str]


class Threshold(_Part):
    """An expectation of the scenario, and what became of it."""

    threshold: str
    passed: bool
    value: float | None
    found: str = Field(description="The value in words, or why there is none.")


class Restart(_Part):
    """A server that was killed and started again while clients were there."""

    restart: str
    at_seconds: float = Field(description="After the agreed start, as the others.")
    ready_seconds: float
    again_seconds: float | None = Field(
        description="From the kill until every client was answered again."
    )


class Summary(_Part):
    """The figures of a run, and what produced them."""

    schema_version: Annotated[int, Field(ge=1, le=1)]
    name: str
    label: str
    scenario: str
    clients: Count
    answered: Count
    wrong: Count
    timeout: Count
    disconnected: Count
    unreachable: Count
    refused: dict[str, Count] = Field(description="Refusals by reason.")
    latency_seconds: Percentiles | None = Field(description="From the intended start.")
    service_latency_seconds: Percentiles | None = Field(description="From the true start.")
    bytes: Count
    topics_per_answer: Extremes | None
    bytes_per_answer: Extremes | None
    duration_seconds: Seconds
    start_error_seconds_max: Seconds
    client_start_error_seconds_max: Seconds
    generator_limited: bool
    generator_limits: list[str] = Field(default=[], description="Why it was the limit.")
    interrupted: bool
    processes: dict[str, Process]
    server_version: str | None
    servers: dict[str, Server]
    thresholds: list[Threshold] = []
    restarts: list[Restart] = []


def rendered() -> str:
    """Return the JSON schema."""
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Summary.model_json_schema(),
    }
    return json.dumps(document, indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(rendered())
