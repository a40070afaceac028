"""One task's share of the scenario ``produce-consume``: every topic with its consumers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from limiter.clock import deadline
from loadgen.clients.connect import Connector, raise_open_file_limit
from loadgen.clients.records import TaskReport, report_rows
from loadgen.clients.schedule import due_moments, scheduled_plans
from loadgen.clients.scheduled_client import Reconnector, ScheduledClient
from loadgen.clients.tunnels import tunnels_to
from loadgen.errors import LoadgenError
from loadgen.scenarios.produce_consume.connections import ConsumerConnection, ProducerConnection
from loadgen.scenarios.produce_consume.deliveries import Deliveries
from loadgen.scenarios.produce_consume.frames import message_frame, topic_of
from loadgen.scenarios.produce_consume.scenario import ProduceConsumeScenario
from loadgen.tasks.task import ScenarioTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.scenario import ClientPlan
    from loadgen.tasks.task import TaskPlan

PRODUCERS = "producers"
"""The group of those that publish."""


class ProduceConsumeTask(ScenarioTask[ProduceConsumeScenario]):
    """A task of producers and consumers; mutable state: those, and what was delivered."""

    def __init__(
        self, plan: TaskPlan[ProduceConsumeScenario], agree: Callable[[float], float]
    ) -> None:
        super().__init__(plan, agree)
        self._connector = Connector()
        self._reconnector = Reconnector(self._connector, 0, self._producer_connection)
        self._tunnels: dict[str, str] = {}  # brokers of the topics, if a proxy stands before them
        self._producers: list[ScheduledClient] = []
        self._deliveries: list[tuple[ScheduledClient, Deliveries]] = []
        self._consumers: list[ConsumerConnection] = []
        self._news = asyncio.Event()
        self._ending: asyncio.Task[None] | None = None

    async def connect_all(self) -> None:
        """Connect every producer, then its consumers.

        Raises:
            LoadgenError: A consumer was refused.
        """
        share = (self.scenario, self.plan.task, self.plan.tasks)
        plans = list(scheduled_plans(*share, loopback=self.plan.loopback))
        self.clients = self._producers = [self._producer(each) for each in plans]
        for producer in self._producers:
            self._add_consumers(producer)
        self.unfinished = len(plans) + 1  # the deliveries
        raise_open_file_limit(len(plans) + len(self._consumers))
        await self._connector.resolve(self.scenario)
        topics = [topic_of(each.namespace.name, each.client) for each in plans]
        self._tunnels = await tunnels_to(self.scenario, topics)
        async with asyncio.TaskGroup() as group:
            for producer in self._producers:
                group.create_task(self._reconnector.connect(producer))
        try:
            async with asyncio.TaskGroup() as group:
                for consumer in self._consumers:
                    group.create_task(self._open(consumer))
        except* LoadgenError as failed:
            raise failed.exceptions[0] from None

    def _producer(self, plan: ClientPlan) -> ScheduledClient:
        scenario = self.scenario
        return ScheduledClient(
            plan,
            self.context,
            due_moments(scenario, plan.client),
            lambda number: message_frame(
                plan.client, number, scenario.message_bytes, scenario.message_keys
            ),
            self._reconnector.reconnect,
            operation="publish",
        )

    def _add_consumers(self, producer: ScheduledClient) -> None:
        scenario, plan = self.scenario, producer.plan
        orders = {"exclusive": 1, "shared": 0, "key-shared": scenario.message_keys}
        for number in range(scenario.subscriptions):
            name = f"subscription {number} of producer {plan.client}"
            order = orders[scenario.subscription_type]
            deliveries = Deliveries(name, plan.client, order, scenario.message_bytes)
            self._deliveries.append((producer, deliveries))
            self._consumers += [
                ConsumerConnection(
                    plan, self.context, f"loadgen-{number}", deliveries, self._news.set
                )
                for _ in range(scenario.consumers)
            ]

    def _producer_connection(self, client: ScheduledClient) -> ProducerConnection:
        connection = ProducerConnection(client)
        self._tunnel(connection)
        return connection

    def _tunnel(self, connection: ProducerConnection | ConsumerConnection) -> None:
        plan = connection.plan
        connection.tunnel_to(self._tunnels.get(topic_of(plan.namespace.name, plan.client)))

    async def _open(self, consumer: ConsumerConnection) -> None:
        self._tunnel(consumer)
        failure = await self._connector.connect(consumer, self.scenario.receive_buffer_bytes)
        failure = failure or await consumer.open()
        if failure is not None:
            raise LoadgenError(f"a consumer of {consumer.plan.namespace.name} failed: {failure}")

    def start(self) -> None:
        """Begin with the schedule."""
        super().start()
        self._ending = asyncio.get_running_loop().create_task(self._end_when_delivered())
        self._ending.add_done_callback(lambda _: self.client_finished())

    def client_finished(self) -> None:
        """Count a producer that has nothing more to do."""
        super().client_finished()
        self._news.set()

    def stop_asking(self) -> None:
        """Publish nothing more; what has a receipt may be delivered."""
        for producer in self._producers:
            producer.stop()

    async def _end_when_delivered(self) -> None:
        """Wait for every producer, then until its messages are there or the patience is over."""
        while self.unfinished > 1:
            await self._next_news()
        waited_for = list(self._deliveries)
        try:
            async with deadline(self.context.clock, self.scenario.timeout_seconds):
                while waited_for:
                    producer, deliveries = waited_for[-1]
                    if deliveries.complete(producer.records):
                        waited_for.pop()
                    else:
                        await self._next_news()
        except TimeoutError:
            return  # what was not delivered by now is lost

    async def _next_news(self) -> None:
        self._news.clear()
        await self._news.wait()

    def close_all(self) -> None:
        """Close every connection."""
        super().close_all()
        self._reconnector.close()
        if self._ending is not None:
            self._ending.cancel()
        for consumer in self._consumers:
            consumer.leave()

    def report(self, t0_epoch_seconds: float) -> TaskReport:
        """Judge every delivery."""
        for producer in self._producers:
            for record in producer.records:
                record.group = PRODUCERS
        report = super().report(t0_epoch_seconds)
        delivered = [
            record
            for producer, deliveries in self._deliveries
            for record in deliveries.records(
                producer.records,
                producer.plan.client,
                self.time.seconds(),
                interrupted=self.interrupted,
            )
        ]
        rows = [report.rows, report_rows(self.plan.task, delivered)]
        return replace(report, rows=pa.concat_tables(rows))

    def details(self) -> tuple[dict[str, Any], ...]:
        """Return the counts of each subscription."""
        return tuple(
            deliveries.detail(producer.records) for producer, deliveries in self._deliveries
        )
