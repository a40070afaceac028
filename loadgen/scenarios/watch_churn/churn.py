"""One namespace of a task: its changes, those who watch them, and the judgement on both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from loadgen.clients.records import Outcome, RequestRecord
from proto.topic_hash import topics_hash

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadgen.scenario import ClientPlan
    from loadgen.scenarios.watch_churn.scenario import Change
    from loadgen.scenarios.watch_churn.watched_names import WatchedNames

CHANGER, WATCHERS = "changer", "watchers"
"""Groups: who creates and deletes, and who is told."""


class Watching(Protocol):
    """The part of a watcher that is judged."""

    plan: ClientPlan
    names: WatchedNames
    lost: str | None


@dataclass(slots=True)
class Churn:
    """A namespace under way; mutable state: what became of its changes, and the last listing.

    Attributes:
        changer: Client number of who creates and deletes: one behind those of the watchers.
        requests: The REST calls, in order of the changes; None until one has ended.
        listed: The names at the end; None if nobody could list them.
    """

    namespace: str
    changer: int
    changes: Sequence[Change]
    watchers: Sequence[Watching]
    requests: list[RequestRecord | None] = field(init=False)
    listed: frozenset[str] | None = None
    _unasked: int = field(init=False)
    _behind: list[Watching] = field(init=False)

    def __post_init__(self) -> None:
        self.requests = [None] * len(self.changes)
        self._unasked = len(self.changes)
        self._behind = list(self.watchers)

    def asked(self, number: int, request: RequestRecord) -> None:
        """Keep the call of a change, by its number, once that has ended."""
        self.requests[number] = request
        self._unasked -= 1

    @property
    def changed(self) -> Iterator[tuple[Change, RequestRecord]]:
        """The changes that the server has confirmed, each with its call."""
        for change, request in zip(self.changes, self.requests, strict=True):
            if request is not None and request.outcome is Outcome.ANSWERED:
                yield change, request

    @property
    def gone(self) -> Iterator[str]:
        """The topics that are known not to be there: never made, or deleted."""
        for change, request in zip(self.changes, self.requests, strict=True):
            without = Outcome.REFUSED if change.created else Outcome.ANSWERED
            if request is not None and request.outcome is without:
                yield change.topic

    @property
    def all_told(self) -> bool:
        """True once every call has ended, and every watcher that is connected knows of all."""
        if self._unasked:
            return False
        while self._behind:
            watcher = self._behind[-1]
            told = (watcher.names.was_told(change) for change, _ in self.changed)
            if watcher.lost is None and not all(told):
                return False
            self._behind.pop()
        return True

    def records(self, end_seconds: float, *, interrupted: bool = False) -> list[RequestRecord]:
        """Return a record for each call, each update of each watcher, and each wrong watcher.

        Of a run that was interrupted, updates that had not arrived are left out.
        """
        asked = [each for each in self.requests if each is not None]
        judged = [each for watcher in self.watchers for each in self._of(watcher, end_seconds)]
        if interrupted:
            judged = [each for each in judged if each.outcome is Outcome.ANSWERED]
        return [*asked, *judged]

    def _of(self, watcher: Watching, end_seconds: float) -> Iterator[RequestRecord]:
        names_problem = self._names_problem(watcher)
        for change, request in self.changed:
            record = self._record(watcher, change.due_seconds)
            told = watcher.names.told_seconds.get((change.topic, change.created))
            record.started_seconds = record.finished_seconds = request.finished_seconds
            if told is None:
                record.finished_seconds = max(end_seconds, request.finished_seconds or 0.0)
                record.outcome, record.reason = self._untold(watcher, change, names_problem)
            else:
                # The update may overtake the answer to the call.
                record.started_seconds = min(told, request.finished_seconds or told)
                record.finished_seconds, record.outcome = told, Outcome.ANSWERED
            yield record
        for problem in [*watcher.names.problems, *([names_problem] if names_problem else ())]:
            record = self._record(watcher, end_seconds)
            record.started_seconds = record.finished_seconds = end_seconds
            record.outcome = Outcome.WRONG
            record.reason = f"watcher {watcher.plan.client} of {self.namespace} {problem}"
            yield record

    def _untold(
        self, watcher: Watching, change: Change, names_problem: str | None
    ) -> tuple[Outcome, str]:
        """Return what an update is that never came: lost, unless its topic came and went unseen."""
        if watcher.lost is not None:
            return Outcome.DISCONNECTED, watcher.lost
        if names_problem is None and not any(
            watcher.names.told_seconds.get((change.topic, created)) for created in (True, False)
        ):
            return Outcome.TIMEOUT, "the topic came and went before the watcher was told of it"
        who = f"watcher {watcher.plan.client} of {self.namespace}"
        return Outcome.WRONG, f"{who} was never told that {change.words}"

    def _names_problem(self, watcher: Watching) -> str | None:
        if watcher.lost is not None or self.listed is None:
            return None
        return watcher.names.judge_end(self.listed, topics_hash(self.listed))

    def _record(self, watcher: Watching, intended_seconds: float) -> RequestRecord:
        return RequestRecord(
            watcher.plan.client,
            self.namespace,
            intended_seconds,
            operation="update",
            group=WATCHERS,
        )

    def detail(self) -> dict[str, Any]:
        """Return the counts of this namespace, for the summary."""
        changes = sum(1 for _ in self.changed)
        right = sum(
            1
            for each in self.watchers
            if self.listed is not None and each.lost is None and self._names_problem(each) is None
        )
        return {
            "watchers": len(self.watchers),
            "changes": changes,
            "updates_wanted": changes * len(self.watchers),
            "updates_told": sum(
                watcher.names.was_told(change)
                for watcher in self.watchers
                for change, _ in self.changed
            ),
            "update_commands": sum(each.names.updates for each in self.watchers),
            "doubled": sum(each.names.doubled for each in self.watchers),
            "watchers_lost": sum(each.lost is not None for each in self.watchers),
            "watchers_right": right,
        }
