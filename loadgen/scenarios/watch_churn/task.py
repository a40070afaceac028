"""One task's share of the scenario ``watch-churn``: whole namespaces."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from client.admin.errors import (
    AdminError,
    AdminRefusedError,
    AdminTimeoutError,
)
from limiter.clock import deadline
from loadgen.access import admin_of
from loadgen.clients.connect import Connector, raise_open_file_limit
from loadgen.clients.records import Outcome, RequestRecord, TaskFacts, TaskReport, report_rows
from loadgen.clients.refusals import masked
from loadgen.clients.tunnels import tunnels_to
from loadgen.errors import LoadgenError, UsageError
from loadgen.scenarios.watch_churn.churn import CHANGER, Churn
from loadgen.scenarios.watch_churn.scenario import (
    Change,
    WatchChurnScenario,
    changes_of,
    watcher_plans,
)
from loadgen.scenarios.watch_churn.watcher import Watcher, all_topics
from loadgen.tasks.task import ScenarioTask
from proto.names import TopicName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from client.admin.pulsar_admin import PulsarAdmin
    from loadgen.tasks.task import TaskPlan

_CLEARING_SECONDS = 5.0
_DELETED_AT_ONCE = 32


class WatchChurnTask(ScenarioTask[WatchChurnScenario]):
    """A task of watchers, and of who creates and deletes topics before their eyes.

    Mutable state: its namespaces, and the calls under way.
    """

    def __init__(self, plan: TaskPlan[WatchChurnScenario], agree: Callable[[float], float]) -> None:
        super().__init__(plan, agree)
        self._admin: PulsarAdmin
        self._churns: list[Churn] = []
        self._watchers: list[Watcher] = []
        self._calls: dict[str, asyncio.Task[None]] = {}  # the latest of each topic
        self._call_error_seconds = 0.0
        self._news = asyncio.Event()
        self._ending: asyncio.Task[None] | None = None

    async def run(self) -> TaskReport:
        """Run with a connection to the admin REST.

        Raises:
            LoadgenError: See :meth:`ScenarioTask.run`; or a watch was refused.
            UsageError: The admin address is missing or is none.
        """
        if not self.scenario.admin_url:
            raise UsageError("--admin-url is missing: topics are created and deleted there")
        try:
            admin = admin_of(self.scenario.admin_url, self.scenario.timeout_seconds)
        except AdminError as error:
            raise UsageError(f"--admin-url: {error}") from None
        async with admin as self._admin:
            try:
                return await super().run()
            finally:
                await self._leave_nothing()

    async def connect_all(self) -> None:
        """Connect every watcher and open its watch."""
        scenario, plan = self.scenario, self.plan
        shared: dict[str, frozenset[str]] = {}
        for number in range(plan.task, len(scenario.namespaces), plan.tasks):
            watchers = [
                Watcher(each, self.context, shared, self._news.set)
                for each in watcher_plans(scenario, number, loopback=plan.loopback)
            ]
            changes = changes_of(scenario, number)
            name = scenario.namespaces[number].name
            self._churns.append(Churn(name, scenario.clients + number, changes, watchers))
            self._watchers += watchers
        raise_open_file_limit(len(self._watchers))
        connector = Connector()
        await connector.resolve(scenario)
        if self._watchers:
            await self._tunnel()
        try:
            async with asyncio.TaskGroup() as group:
                for watcher in self._watchers:
                    group.create_task(self._open(watcher, connector))
        except* LoadgenError as failed:
            raise failed.exceptions[0] from None
        self.unfinished = 1

    async def _tunnel(self) -> None:
        """Let a proxy, if there is one, pass each watcher on to the broker of its namespace."""
        patterns = {each: all_topics(each.plan.namespace.name) for each in self._watchers}
        tunnels = await tunnels_to(self.scenario, sorted(set(patterns.values())))
        for watcher, pattern in patterns.items():
            watcher.tunnel_to(tunnels.get(pattern))

    async def _open(self, watcher: Watcher, connector: Connector) -> None:
        failure = await connector.connect(watcher, self.scenario.receive_buffer_bytes)
        if failure is not None:
            raise LoadgenError(f"{self.scenario.service_url} cannot be reached: {failure}")
        await watcher.open()

    def start(self) -> None:
        """Arm every change, and wait for the end of all."""
        super().start()
        for churn in self._churns:
            for number, change in enumerate(churn.changes):
                self.at(change.due_seconds, partial(self._begin, churn, number, change))
        self._ending = asyncio.get_running_loop().create_task(self._end_when_told())
        self._ending.add_done_callback(lambda _: self.client_finished())

    def _begin(self, churn: Churn, number: int, change: Change) -> None:
        if self.interrupted or self.all_finished.is_set():
            return
        before = self._calls.get(change.topic)
        call = self._change(churn, number, change, before)
        self._calls[change.topic] = asyncio.get_running_loop().create_task(call)

    async def _change(
        self, churn: Churn, number: int, change: Change, before: asyncio.Task[None] | None
    ) -> None:
        """Create or delete a topic; a deletion waits until its creation was answered."""
        if before is not None:
            await before
        record = RequestRecord(
            churn.changer,
            churn.namespace,
            change.due_seconds,
            self.time.seconds(),
            operation="create" if change.created else "delete",
            group=CHANGER,
        )
        if before is None:
            late_seconds = self.time.seconds() - change.due_seconds
            self.context.lags.append(max(0.0, late_seconds))
            self._call_error_seconds = max(self._call_error_seconds, late_seconds)
        topic, topics = TopicName.parse(change.topic), self._admin.topics
        self.context.counters.started += 1
        try:
            await (topics.create(topic) if change.created else topics.delete(topic))
            record.outcome = Outcome.ANSWERED
        except AdminRefusedError as error:
            record.outcome, record.reason = Outcome.REFUSED, masked(str(error))
        except AdminTimeoutError as error:
            record.outcome, record.reason = Outcome.TIMEOUT, str(error)
        except AdminError as error:
            record.outcome, record.reason = Outcome.UNREACHABLE, masked(str(error))
        record.finished_seconds = self.time.seconds()
        took_seconds = record.finished_seconds - record.intended_start_seconds
        self.context.counters.count(record.outcome, record.operation, seconds=took_seconds)
        churn.asked(number, record)
        self._news.set()

    def stop_asking(self) -> None:
        """Change nothing more; the calls under way may end."""
        self._news.set()

    async def _end_when_told(self) -> None:
        """Wait until every watcher knows of everything, or the patience is over; then list.

        If it was interrupted only calls are waited for.
        """
        patience = self.scenario.churn_seconds + self.scenario.timeout_seconds
        try:
            async with deadline(self.context.clock, patience - self.time.seconds()):
                while not all(churn.all_told for churn in self._churns):
                    if self.interrupted:
                        await self._calls_ended()
                        return
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            pass  # who was not told by now has lost an update
        await asyncio.gather(*map(self._list, self._churns))

    async def _calls_ended(self) -> None:
        if self._calls:
            await asyncio.wait(self._calls.values())

    async def _leave_nothing(self) -> None:
        """Delete the topics that are left, of a run that was interrupted or failed; for some time.

        They are looked for behind the calls under way, for one of them may make another.
        """
        try:
            async with deadline(self.context.clock, _CLEARING_SECONDS):
                await self._calls_ended()
                gone = {topic for churn in self._churns for topic in churn.gone}
                left = iter(self._calls.keys() - gone)
                await asyncio.gather(*(self._delete(left) for _ in range(_DELETED_AT_ONCE)))
        except TimeoutError:
            pass
        finally:
            for call in self._calls.values():
                call.cancel()

    async def _delete(self, topics: Iterator[str]) -> None:
        for topic in topics:
            with suppress(AdminError):
                await self._admin.topics.delete(TopicName.parse(topic))

    async def _list(self, churn: Churn) -> None:
        for watcher in self._watchers:
            if watcher.plan.namespace.name == churn.namespace and watcher.usable:
                churn.listed = await watcher.list_names()
                return

    def close_all(self) -> None:
        """Close every connection."""
        if self._ending is not None:
            self._ending.cancel()
        for watcher in self._watchers:
            watcher.leave()

    def report(self, t0_epoch_seconds: float) -> TaskReport:
        """Judge every update.

        Raises:
            LoadgenError: The names could not be listed at the end.
        """
        if self._ending is not None and self._ending.done():
            self._ending.result()
        records = [
            record
            for churn in self._churns
            for record in churn.records(self.time.seconds(), interrupted=self.interrupted)
        ]
        facts = TaskFacts(
            task=self.plan.task,
            clients=len(self._watchers),
            start_error_seconds=max(0.0, self.start_error_seconds),
            client_start_error_seconds=self._call_error_seconds,
            t0_epoch_seconds=t0_epoch_seconds,
            interrupted=self.interrupted,
            connections_lost=sum(each.lost is not None for each in self._watchers),
            **self._watched,
        )
        return TaskReport(report_rows(self.plan.task, records), facts, self.details())

    def details(self) -> tuple[dict[str, Any], ...]:
        """Return the counts of each namespace."""
        return tuple(churn.detail() for churn in self._churns)
