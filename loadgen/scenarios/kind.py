"""One kind of scenario, as the registry lists it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from server.module_names import module_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from loadgen.clients.records import TaskReport
    from loadgen.scenario import Scenario
    from loadgen.tasks.ground import Ground
    from loadgen.tasks.task import ScenarioTask, TaskPlan


@dataclass(frozen=True)
class ReportWords:
    """The words in which a report speaks of a scenario's runs.

    Attributes:
        title: Heading of a page about them.
        name: The scenario, as in "a run of ...".
        at_zero: What happens at the agreed start.
        got: What became of those who were answered.
        describe: Returns a sentence on what each client did, from the scenario in ``run.json``.
        requests: Heading of the figures of all requests; empty for "Requests" or "Clients".
        more: What to use more of where the limits were out of sight; empty if answers list nothing.
        more_if_shared: Whether that also helps where a server shares the bytes of equal answers.
    """

    title: str
    name: str
    at_zero: str
    got: str
    describe: Callable[[Mapping[str, Any]], str]
    requests: str = ""
    more: str = ""
    more_if_shared: bool = False

    @property
    def lists_topics(self) -> bool:
        """True if an answer is a list of topics."""
        return bool(self.more)


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
        judge: Returns fields of the summary that follow from all others, servers' facts among
            them, such as checks.
        check: Raises LoadgenError if a run's figures are not to be relied on.
        words: What a report calls its runs.
        report: What it adds to the report, as ``module:name``; empty if nothing.
    """

    model: type[Scenario]
    task: str
    help: str
    example: str
    words: ReportWords
    report: str = ""
    files: tuple[str, ...] = ()
    write: Callable[[Path, Sequence[TaskReport]], None] = lambda directory, reports: None
    summarize: Callable[[Any, Sequence[TaskReport]], dict[str, Any]] = lambda scenario, reports: {}
    judge: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda summary: {}
    check: Callable[[Mapping[str, Any], Path], None] = lambda summary, directory: None

    @property
    def name(self) -> str:
        """Name of the scenario, from its model."""
        return str(self.model.model_fields["kind"].default)

    def new_task(
        self, plan: TaskPlan[Any], agree: Callable[[float], float], *ground: Ground
    ) -> ScenarioTask[Any]:
        """Import the task's class and return the task of a plan, on sockets unless told else."""
        task: ScenarioTask[Any] = _named(self.task)(plan, agree, *ground)
        return task

    def report_addition(self) -> Any:  # noqa: ANN401 - the report is on a higher floor
        """Import what the scenario adds to the report; None if that is nothing."""
        return _named(self.report) if self.report else None


def _named(target: str) -> Any:  # noqa: ANN401
    module, _, name = target.partition(":")
    return getattr(import_module(module_name(module)), name)
