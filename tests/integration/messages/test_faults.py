"""Faults on command during message flow: a good client loses and repeats nothing."""

import json
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import pytest

from client import Client, InitialPosition
from limiter.clock import LoopClock
from tests.support.peers.rest_client import rest_client
from tests.support.processes.cluster import cluster

FAULTS = "/admin/v2/floodgate/faults"
ON = {"floodgateFaultsEnabled": "true"}
NUMBERS = range(12)
TOPIC = "persistent://public/default/numbers"
EVERY_5TH = {"every": 5, "times": 2}


class Flow:
    """A topic's producer and consumer, and its server's REST."""

    def __init__(self, rest: Any, producer: Any, consumer: Any) -> None:
        self.rest, self.producer, self.consumer = rest, producer, consumer

    async def set(self, do: dict[str, object], **more: object) -> None:
        answer = await self.rest.ask("POST", FAULTS, json.dumps({"do": do, **more}))
        assert answer.status == 200, answer

    async def fired(self) -> int:
        return sum(one["fired"] for one in (await self.rest.ask("GET", FAULTS)).value)

    async def received(self, expected: Collection[int] = NUMBERS) -> list[int]:
        """Send the numbers; return the received until all expected have come."""
        for number in NUMBERS:
            await self.producer.send(str(number).encode())
        found: list[int] = []
        while set(found) != set(expected):
            message = await self.consumer.receive()
            found.append(int(message.data()))
            await self.consumer.acknowledge(message)
        return found


@asynccontextmanager
async def flow(role: str = "broker") -> AsyncIterator[Flow]:
    async with (
        cluster(both=ON, clock=LoopClock()) as parts,
        rest_client(parts.part(role)) as rest,
        Client(parts.part(role).service_url) as client,
    ):
        producer = await client.create_producer(TOPIC, batching_enabled=False)
        consumer = await client.subscribe(TOPIC, "s", initial_position=InitialPosition.Earliest)
        yield Flow(rest, producer, consumer)


@pytest.mark.parametrize(
    ("do", "on"),
    [
        ({"action": "closeProducer"}, "SEND"),
        ({"action": "disconnect"}, "SEND"),
        ({"action": "moveTopic"}, "SEND"),
        ({"action": "corruptChecksum"}, "SEND"),
        ({"action": "delay", "delayMs": 1}, "SEND"),
    ],
    ids=lambda value: value["action"] if isinstance(value, dict) else value,
)
async def test_messages_published_through_a_fault_are_received_in_order(do, on) -> None:
    async with flow() as found:
        await found.set(do, on=[on], when=EVERY_5TH, where={"topic": TOPIC})
        received = await found.received()
        # Repeated messages came after their predecessors
        assert [one for index, one in enumerate(received) if one not in received[:index]] == [
            *NUMBERS
        ]
        assert await found.fired() == 2


@pytest.mark.parametrize(
    ("do", "fault"),
    [
        ({"action": "closeConsumer"}, {"on": ["SEND"]}),
        ({"action": "disconnect"}, {"on": ["SEND_RECEIPT"], "direction": "sent"}),
    ],
    ids=lambda value: value.get("action", ""),
)
async def test_every_message_is_received_although_the_consumer_is_disturbed(do, fault) -> None:
    async with flow() as found:
        await found.set(do, when=EVERY_5TH, **fault)
        received = await found.received()
        assert set(received) == set(NUMBERS)
        assert await found.fired() == 2


async def test_a_message_received_with_a_wrong_checksum_is_discarded() -> None:
    async with flow() as found:
        await found.set(
            {"action": "corruptChecksum"}, on=["MESSAGE"], direction="sent", when=EVERY_5TH
        )
        # The client says so to the broker, as Java's does
        left = [number for number in NUMBERS if number not in (0, 5)]
        assert await found.received(left) == left


async def test_through_a_proxy_every_message_of_a_closed_producer_is_received() -> None:
    async with flow("proxy") as found:
        await found.set({"action": "closeProducer"}, on=["SEND"], when=EVERY_5TH)
        received = await found.received()
        assert set(received) == set(NUMBERS)
        assert await found.fired() == 2
