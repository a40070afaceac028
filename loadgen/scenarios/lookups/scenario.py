"""The scenario ``lookups``: clients look topics up, each so many times a second."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from loadgen.clients.schedule import require_few_requests, scheduled_requests
from loadgen.scenario import BufferSize, Duration, ReadRate, Scenario


class LookupsScenario(Scenario):
    """Clients that look the topics of their namespaces up over lasting connections."""

    more_time: ClassVar[str] = "fewer --lookups-per-second"

    kind: Literal["lookups"] = "lookups"
    clients: Annotated[int, Field(ge=1, le=100_000)] = 10
    read_rate_bytes_per_second: ReadRate = 0.0
    receive_buffer_bytes: BufferSize = 0
    timeout_seconds: Duration = 30.0
    lookups_per_second: float = Field(
        default=10.0, gt=0, le=1_000, description="Lookups a second of each client."
    )
    lookup_seconds: Duration = Field(default=10.0, description="Duration of the schedule.")

    @model_validator(mode="after")
    def _possible(self) -> Self:
        require_few_requests(self, "--clients, --lookups-per-second and --lookup-seconds")
        return self

    @property
    def planned_requests(self) -> int:
        """Number of requests that the schedule holds."""
        return scheduled_requests(self)

    @property
    def interval_seconds(self) -> float:
        """Each client's lookups are due this far apart."""
        return 1 / self.lookups_per_second

    @property
    def duration_seconds(self) -> float:
        """Lookups are due from 0 until then."""
        return self.lookup_seconds
