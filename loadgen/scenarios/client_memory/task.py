"""Fills topics, and lets one client process after another play a part of ``client-memory``."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from client import Client, ConsumerType, InitialPosition, PulsarException
from loadgen.access import client_of
from loadgen.clients.records import Outcome, RequestRecord, TaskFacts, TaskReport, report_rows
from loadgen.errors import LoadgenError
from loadgen.places.server_process import (
    ServerLaunch,
    ends_with_this_process,
    python_path,
    running_server,
)
from loadgen.scenarios.client_memory.program import Plan
from loadgen.scenarios.client_memory.scenario import POLICIES, ClientMemoryScenario
from loadgen.tasks.task import ScenarioTask
from server.module_names import module_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from client import Producer
    from loadgen.tasks.task import TaskPlan

_PROGRAM = module_name("loadgen.scenarios.client_memory.program")
_SENDS_AT_ONCE = 8
_LONGEST_LINE_BYTES = 1 << 27
PROXY = {
    "servicePort": "0",
    "webServicePort": "0",
    "bindAddress": "127.0.0.1",
    "advertisedAddress": "127.0.0.1",
    "brokerProxyAllowedTargetPorts": "*",
    "brokerProxyAllowedIPAddresses": "*",
    "brokerProxyAllowedHostNames": "*",
}
"""The server that is stopped stands before the broker, whose it may be: nobody else notices."""


class ClientMemoryTask(ScenarioTask[ClientMemoryScenario]):
    """The only task of a run; its mutable state is what the parts found so far."""

    def __init__(
        self, plan: TaskPlan[ClientMemoryScenario], agree: Callable[[float], float]
    ) -> None:
        super().__init__(plan, agree)
        self._found: list[dict[str, Any]] = []
        self._playing: asyncio.Task[None] | None = None

    async def connect_all(self) -> None:
        """Fill the topics."""
        self.unfinished = 1
        self.context.counters.connected = 1
        try:
            async with client_of(self.scenario.service_url) as client, asyncio.TaskGroup() as group:
                for topic in self.scenario.topics():
                    group.create_task(self._fill(client, topic))
        except* PulsarException as failed:
            raise _unusable(self.scenario, failed.exceptions[0]) from None

    async def _fill(self, client: Client, topic: str) -> None:
        for policy in POLICIES:
            consumer = await client.subscribe(
                topic, policy, ConsumerType.Shared, initial_position=InitialPosition.Earliest
            )
            await consumer.close()
        payload = bytes(self.scenario.message_bytes)
        left = iter(range(self.scenario.messages_per_topic))

        async def send(producer: Producer) -> None:
            for _ in left:
                await producer.send(payload)
                self.context.counters.started += 1

        async with await client.create_producer(topic, batching_enabled=False) as producer:
            await asyncio.gather(*(send(producer) for _ in range(_SENDS_AT_ONCE)))

    def start(self) -> None:
        """Let the processes play their parts."""
        self._playing = asyncio.get_running_loop().create_task(self._play_all())
        self._playing.add_done_callback(lambda _: self.client_finished())

    async def _play_all(self) -> None:
        scenario = self.scenario
        for policy in POLICIES:
            self._begin(scenario.messages_per_topic * scenario.backlog_topics)
            await self._play(policy, scenario.topics(), scenario.service_url, 0)
        if scenario.producers:
            with tempfile.TemporaryDirectory(prefix="floodgate-client-memory-") as folder:
                settings = {**PROXY, "brokerServiceURL": scenario.service_url}
                launch = ServerLaunch("proxy", settings, Path(folder) / "proxy.log")
                with running_server(launch) as proxy:
                    topics = scenario.producer_topics()
                    self._begin(scenario.producer_messages * len(topics))
                    try:
                        await self._play("", topics, proxy.service_url, proxy.pid)
                    finally:  # Who is stopped cannot be told to end.
                        os.kill(proxy.pid, signal.SIGCONT)
        await self._leave_nothing()

    def _begin(self, messages: int) -> None:
        """Count the messages that a part is to deliver as started; one that is gets answered."""
        self.context.counters.started = self.context.counters.answered + messages

    async def _play(self, policy: str, topics: list[str], url: str, stop_pid: int) -> None:
        scenario = self.scenario
        plan = Plan(
            service_url=url,
            policy=policy,
            topics=topics,
            consumers_per_topic=scenario.consumers_per_topic,
            memory_limit_bytes=scenario.memory_limit_bytes,
            message_bytes=scenario.message_bytes if policy else scenario.producer_message_bytes,
            messages=scenario.producer_messages,
            seconds=scenario.drain_seconds if policy else scenario.stopped_seconds,
            work_seconds=scenario.work_seconds,
            stop_pid=stop_pid,
        )
        process = await asyncio.create_subprocess_exec(
            *ends_with_this_process(),
            *(sys.executable, "-m", _PROGRAM),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **python_path()},
            limit=_LONGEST_LINE_BYTES,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(f"{json.dumps(asdict(plan))}\n".encode())
            before, found = self.context.counters.answered, None
            async for line in process.stdout:
                found = json.loads(line)
                if isinstance(found, int):
                    self.context.counters.answered = before + found
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
        if not isinstance(found, dict):
            raise LoadgenError(f"the client process ended without a result: {process.returncode}")
        if "error" in found:
            raise _unusable(scenario, found["error"])
        self._found.append(found)

    async def _leave_nothing(self) -> None:
        """Drop the backlog."""
        try:
            async with client_of(self.scenario.service_url) as client:
                for topic in self.scenario.topics():
                    for policy in POLICIES:
                        consumer = await client.subscribe(topic, policy, ConsumerType.Shared)
                        await consumer.unsubscribe()
        except PulsarException as error:
            raise _unusable(self.scenario, error) from None

    def close_all(self) -> None:
        """End the part that is being played."""
        if self._playing is not None:
            self._playing.cancel()

    def report(self, t0_epoch_seconds: float) -> TaskReport:
        """Describe each consumer's first message, by this project's queues, as a request.

        Raises:
            LoadgenError: A part could not be played.
        """
        if self._playing is not None and self._playing.done() and not self._playing.cancelled():
            self._playing.result()
        parts = tuple(
            {**found, "begun_seconds": found["begun_epoch_seconds"] - t0_epoch_seconds}
            for found in self._found
        )
        records = [
            record
            for found in parts
            if found["policy"] == POLICIES[0]
            for record in self._first_messages(found)
        ]
        facts = TaskFacts(
            task=self.plan.task,
            clients=1,
            start_error_seconds=0.0,
            client_start_error_seconds=0.0,
            t0_epoch_seconds=t0_epoch_seconds,
            interrupted=self.interrupted,
        )
        return TaskReport(report_rows(self.plan.task, records), facts, parts)

    def _first_messages(self, found: dict[str, Any]) -> Iterator[RequestRecord]:
        namespaces = self.scenario.namespaces
        for number, (wanted, got) in enumerate(found["first_messages"]):
            if got is None and self.interrupted:
                continue
            begun = found["begun_seconds"]
            end = found["samples"][-1]["at_seconds"] if got is None else got
            yield RequestRecord(
                client=number,
                namespace=namespaces[number % self.scenario.backlog_topics % len(namespaces)].name,
                intended_start_seconds=begun + wanted,
                started_seconds=begun + wanted,
                finished_seconds=begun + end,
                outcome=Outcome.TIMEOUT if got is None else Outcome.ANSWERED,
                reason="no message" if got is None else "",
                bytes=0 if got is None else self.scenario.message_bytes,
                operation="receive",
            )


def _unusable(scenario: ClientMemoryScenario, error: object) -> LoadgenError:
    return LoadgenError(f"{scenario.service_url} cannot be used: {error}")
