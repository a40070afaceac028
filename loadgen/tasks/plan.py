"""What a task is told: the run's scenario and its own share of it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from loadgen.scenario import StormScenario
from loadgen.scenarios.stuck.scenario import StuckScenario

AnyScenario = StormScenario | StuckScenario


class TaskPlan(BaseModel):
    """What a task has to know; travels as JSON.

    Attributes:
        scenario: The whole run.
        task: Number of this task, from 0.
        tasks: Number of tasks.
        loopback: Whether the server is on the loopback.
        progress_address: Where totals are sent once a second, or None.
        attempt: How often this task was started before.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: Annotated[AnyScenario, Field(discriminator="kind")]
    task: int
    tasks: int
    loopback: bool = True
    progress_address: tuple[str, int] | None = None
    attempt: int = 0
