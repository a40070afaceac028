"""Questions for tests: clients with read rates, and a storm with known limits."""

from collections.abc import Callable
from typing import Any

from loadgen.behaviours.discover import Discover
from loadgen.behaviours.list import List
from loadgen.plan.group import Group
from loadgen.studies.advise.goal import Goal, Outcome
from loadgen.studies.advise.limits import Limits, Setting
from loadgen.studies.advise.question import NamespaceShape, Question
from loadgen.studies.advise.search import OutOfTimeError

BIG = NamespaceShape("acme/big", 40_000, 40_000 * 95)


def clients(
    count: int, library: str = "", name: str = "", timeout: float = 30, **read: Any
) -> Group:
    """Return clients of a library, or clients that list once, with their read rate."""
    said: dict[str, Any] = {"name": library or "once", "count": count, "read": read}
    if library:
        return Discover.model_validate({**said, "library": library, "timeout": timeout})
    return List.model_validate({**said, "timeout": timeout})


def question(*groups: Group, shapes: tuple[NamespaceShape, ...] = (BIG,), **said: Any) -> Question:
    """Return a question; by default for 40 clients reading 500 kB/s."""
    values = {"goal": Goal(), "profile": "pulsar", "today": Setting(Limits()), **said}
    return Question(groups or (clients(40, timeout=90, rate=500_000),), shapes, **values)


def needs(heap_mb: int, direct_mb: int) -> Callable[[Question, Setting], Outcome]:
    """Return a storm that meets any goal with at least the given limits on all servers."""

    def storm(asked: Question, setting: Setting) -> Outcome:
        del asked
        limits = [setting.of(server) for server in setting.servers]
        met = all(each.heap_mb >= heap_mb and each.direct_mb >= direct_mb for each in limits)
        return Outcome(100, 100, 1.0, 100, 0) if met else Outcome(100, 0, None, 100, 100)

    return storm


def needs_by_speed(
    stated: tuple[int, int], slow: tuple[int, int]
) -> Callable[[Question, Setting], Outcome]:
    """Return a storm that needs other limits (heap and direct MB) under slower brokers."""
    accept = question().times.accept

    def storm(asked: Question, setting: Setting) -> Outcome:
        return needs(*(slow if asked.times.accept > accept else stated))(asked, setting)

    return storm


class CutAfter:
    """A storm of which the time is over after a number of calls.

    Attributes:
        tried: The limits of each call, also of the one that is cut.
    """

    def __init__(self, storms: int, storm: Callable[[Question, Setting], Outcome]) -> None:
        self._storms = storms
        self._storm = storm
        self.tried: list[Setting] = []

    def __call__(self, asked: Question, setting: Setting) -> Outcome:
        self.tried.append(setting)
        if len(self.tried) > self._storms:
            raise OutOfTimeError
        return self._storm(asked, setting)
