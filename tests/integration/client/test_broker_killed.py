"""A broker killed and restarted: clients continue, nothing is lost."""

import asyncio
import time
from contextlib import AbstractContextManager, AsyncExitStack
from pathlib import Path

import pytest

from client.client import Client
from client.consumers.consumer import Consumer
from client.messages.enums import ConsumerType, InitialPosition
from client.messages.message_id import MessageId
from client.producers.producer import Producer
from loadgen.places.server_process import (
    RestartableServer,
    ServerLaunch,
    restartable_server,
    running_server,
)
from tests.integration.client.server import only_here

TOPIC = "persistent://public/default/killed"
KILLS = 2
AHEAD = 50
DOWN_SECONDS = 0.3

pytestmark = [pytest.mark.processes, only_here("the broker is killed")]


LOCAL = {"bindAddress": "127.0.0.1", "advertisedAddress": "127.0.0.1", "webServicePort": "0"}


def restarted_broker(folder: Path) -> AbstractContextManager[RestartableServer]:
    """Run a broker with messages on disk for a block."""
    messages = f"sqlite://{folder / 'messages.db'}?fsync=true"
    keys = {**LOCAL, "brokerServicePort": "0", "floodgateMessageStore": messages}
    return restartable_server(ServerLaunch("broker", keys, folder / "broker.log"))


class Published:
    """Numbered messages; ``stored`` holds the receipted."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self.stored: list[int] = []
        self.next = 0

    async def some(self, count: int) -> None:
        """Publish messages and wait for their receipts."""
        await asyncio.gather(*(self._one() for _ in range(count)))

    async def _one(self) -> None:
        number, self.next = self.next, self.next + 1
        await self._producer.send(b"%d" % number)
        self.stored.append(number)


class Received:
    """Received and acknowledged numbers."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self.numbers: list[int] = []

    async def all_up_to(self, number: int) -> None:
        """Receive until a message has come."""
        while number not in self.numbers:
            message = await self._consumer.receive()
            self.numbers.append(int(message.data()))
            await self._consumer.acknowledge(message)

    @property
    def first_times(self) -> list[int]:
        return list(dict.fromkeys(self.numbers))


@pytest.mark.parametrize(
    ("through", "kind"), [("broker", ConsumerType.Exclusive), ("proxy", ConsumerType.Shared)]
)
async def test_producers_and_consumers_lose_no_message_when_a_broker_is_killed(
    tmp_path: Path, through: str, kind: ConsumerType
) -> None:
    async with AsyncExitStack() as stack:
        broker = stack.enter_context(restarted_broker(tmp_path))
        url = broker.server.service_url
        if through == "proxy":
            keys = {**LOCAL, "servicePort": "0", "brokerServiceURL": url}
            launch = ServerLaunch("proxy", keys, tmp_path / "proxy.log")
            url = stack.enter_context(running_server(launch)).service_url
        client = await stack.enter_async_context(Client(url))
        consumer = await client.subscribe(
            TOPIC, "s", kind, initial_position=InitialPosition.Earliest
        )
        published = Published(await client.create_producer(TOPIC))
        received = Received(consumer)
        for _ in range(KILLS):
            await published.some(AHEAD)
            under_way = asyncio.create_task(published.some(AHEAD))
            await received.all_up_to(published.stored[0] if published.stored else 0)
            await asyncio.to_thread(broker.restart, lambda: time.sleep(DOWN_SECONDS))
            await under_way
        await published.some(1)
        await received.all_up_to(published.next - 1)
        while len(set(received.numbers)) < published.next:
            await received.all_up_to(min(set(range(published.next)) - set(received.numbers)))
        assert sorted(published.stored) == list(range(published.next))
        if kind is ConsumerType.Exclusive:
            assert received.first_times == list(range(published.next))
        assert published._producer.statistics().reconnections_total == KILLS
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_reader_continues_after_its_last_message_on_a_restart(tmp_path: Path) -> None:
    with restarted_broker(tmp_path) as broker:
        async with Client(broker.server.service_url) as client:
            # A subscription keeps the messages
            await (await client.subscribe(TOPIC, "keeps them")).close()
            reader = await client.create_reader(TOPIC, MessageId.earliest)
            published = Published(await client.create_producer(TOPIC))
            await published.some(AHEAD)
            read = [int((await reader.read_next()).data()) for _ in range(AHEAD // 2)]
            await asyncio.to_thread(broker.restart)
            await published.some(1)
            while len(read) < published.next:
                read.append(int((await reader.read_next()).data()))
            assert read == list(range(published.next))


async def test_a_client_with_several_addresses_uses_the_reachable_broker(tmp_path: Path) -> None:
    with restarted_broker(tmp_path) as broker:
        # No listener at the first and the last
        address = broker.server.service_url.removeprefix("pulsar://")
        async with (
            Client(f"pulsar://127.0.0.1:1,{address},127.0.0.1:2") as client,
            await client.create_producer(TOPIC) as producer,
        ):
            await producer.send(b"one")
            broker.kill()
            under_way = asyncio.create_task(producer.send(b"two"))
            await asyncio.to_thread(broker.restart)
            assert (await under_way).entry > (0, 0)
