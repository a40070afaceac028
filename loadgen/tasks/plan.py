"""The instructions for one task: the run's scenario and the task's share of it."""

from __future__ import annotations

from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, SerializeAsAny

from loadgen.scenario import Scenario

ScenarioT = TypeVar("ScenarioT", bound=Scenario)


class TaskPlan(BaseModel, Generic[ScenarioT]):
    """The instructions for one task; they travel as JSON.

    Attributes:
        scenario: The whole run.
        task: Number of this task, from 0.
        tasks: Number of tasks.
        loopback: Whether the server is on the loopback.
        progress_address: Where totals are sent once a second, or None.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: SerializeAsAny[ScenarioT]
    task: int
    tasks: int
    loopback: bool = True
    progress_address: tuple[str, int] | None = None
