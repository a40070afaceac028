"""One kind of scenario, as the registry lists it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from loadgen.clients.records import TaskReport
    from loadgen.scenario import Scenario
    from loadgen.tasks.plan import TaskPlan
    from loadgen.tasks.task import ScenarioTask


@dataclass(frozen=True)
class ScenarioKind:
    """The parts of a scenario that the general code of ``loadgen run`` needs.

    Attributes:
        model: Class of its parameters.
        task: Its task's class, as ``module:name``; imported in the process that runs it.
        help: What its clients do, for ``--scenario``.
        example: A command line that runs it.
        files: Names of the files that it adds to a run's directory.
        write: Writes them.
        summarize: Returns the fields that it adds to the run's summary.
        check: Raises LoadgenError if a run's figures are not to be relied on.
    """

    model: type[Scenario]
    task: str
    help: str
    example: str
    files: tuple[str, ...] = ()
    write: Callable[[Path, Sequence[TaskReport]], None] = lambda directory, reports: None
    summarize: Callable[[Any, Sequence[TaskReport]], dict[str, Any]] = lambda scenario, reports: {}
    check: Callable[[Mapping[str, Any], Path], None] = lambda summary, directory: None

    @property
    def name(self) -> str:
        """Name of the scenario, from its model."""
        return str(self.model.model_fields["kind"].default)

    def new_task(self, plan: TaskPlan[Any], agree: Callable[[float], float]) -> ScenarioTask[Any]:
        """Import the task's class and return the task of a plan."""
        module, _, name = self.task.partition(":")
        task: ScenarioTask[Any] = getattr(import_module(module), name)(plan, agree)
        return task
