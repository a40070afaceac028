"""SIGKILL between write, receipt and cursor flush: every message with a receipt is there.

A broker with a message log kills itself at named points while messages of four topics, one for
each type of subscription, are published and in part acknowledged. The next one is asked for what
is left; in the end it is stopped with SIGTERM, and nothing that was acknowledged may come again.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from benchmarks.messages.wire import RawPeer, connected, message_of
from limiter.clock import LoopClock, deadline
from loadgen.servers.processes import ServerLaunch, running_server
from proto.frames import encode_payload_command
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import ClusterSettings, server_address
from tests.support.stores.killed_broker import POINTS

if TYPE_CHECKING:
    from loadgen.servers.processes import ServerProcess

KINDS = ("Exclusive", "Failover", "Shared", "Key_Shared")
QUICK_SECONDS, SECONDS = 20.0, 600.0
LIFE_SECONDS, QUIET_SECONDS = 3.0, 0.5
ACTIVE_SECONDS = 1.2
LATEST_KILL = 150
KEYS = 5


@dataclass(frozen=True)
class KilledLaunch(ServerLaunch):
    """The start of a broker that kills itself at the so-manieth time at a point."""

    point: str = ""
    number: int = 0

    def command(self) -> list[str]:
        """Return its command line."""
        _, _, _, *rest = super().command()
        module = "tests.support.stores.killed_broker"
        return [sys.executable, "-m", module, self.point, str(self.number), *rest]


@dataclass
class Truth:
    """What is known of one topic: numbers of messages.

    Attributes:
        given_up: Acknowledged at some time; a kill may undo that, but they need not come again.
        acknowledged: Acknowledged, and not sent again since.
    """

    kind: str
    sent: int = 0
    receipted: set[int] = field(default_factory=set)
    given_up: set[int] = field(default_factory=set)
    acknowledged: set[int] = field(default_factory=set)

    @property
    def topic(self) -> str:
        """Its name."""
        return f"persistent://public/default/no-loss-{self.kind.lower()}"


class Client:
    """A producer and a consumer of one topic, on two connections."""

    def __init__(self, truth: Truth, random: Random, acks: float) -> None:
        self.truth, self._random, self._acks = truth, random, acks
        self.got: list[int] = []
        self._first = truth.sent
        self.producer: RawPeer
        self.consumer: RawPeer

    async def open(self, address: tuple[str, int]) -> None:
        """Connect both."""
        self.producer, self.consumer = await connected(*address), await connected(*address)
        await self.producer.produce(self.truth.topic)
        self.producer.on_receipts = self._receipted
        self.consumer.on_message = self._message
        kind = pb.CommandSubscribe.SubType.Value(self.truth.kind)
        await self.consumer.consume(self.truth.topic, kind)
        self.consumer.flow(1_000_000)

    def send(self) -> None:
        """Publish the next message."""
        number = self.truth.sent
        self.truth.sent += 1
        metadata = pb.MessageMetadata(producer_name="p", sequence_id=number, publish_time=1)
        metadata.partition_key = str(number % KEYS)
        send = pb.CommandSend(producer_id=1, sequence_id=number, num_messages=1)
        command = pb.BaseCommand(type=pb.BaseCommand.SEND, send=send)
        body = metadata.SerializeToString()
        self.producer.transport.write(encode_payload_command(command, body, b"#%d" % number))

    def _receipted(self) -> None:
        receipts = self.producer.receipts
        self.truth.receipted.update(range(self._first, self._first + receipts))

    def _message(self, command: bytes, payload: memoryview) -> None:
        number = int(bytes(payload).rpartition(b"#")[2])
        self.got.append(number)
        if self._random.random() < self._acks:
            self.truth.acknowledged.add(number)
            self.truth.given_up.add(number)
            self.consumer.acknowledge([message_of(command).message_id])
        else:
            self.truth.acknowledged.discard(number)

    def close(self) -> None:
        """Leave."""
        self.producer.transport.close()
        self.consumer.transport.close()

    def in_order(self) -> bool:
        """Tell whether what came first came in the promised order."""
        if self.truth.kind == "Shared":
            return True
        groups = KEYS if self.truth.kind == "Key_Shared" else 1
        rows = [[one for one in self.got if one % groups == at] for at in range(groups)]
        return all(row == sorted(row) for row in rows)


def prove(options: ProofOptions) -> ProofResult:
    """Kill brokers for ten minutes."""
    seed, result = secrets.randbelow(1 << 32), ProofResult()
    options.note(f"seed {seed}")
    random, truths = Random(seed), [Truth(kind) for kind in KINDS]
    log = (options.out / "messages").resolve()
    shutil.rmtree(log, ignore_errors=True)
    settings = ClusterSettings(
        options.out, {}, {"floodgateMessageStore": f"log://{log}?fsync=true"}
    )
    end = time.monotonic() + (QUICK_SECONDS if options.quick else SECONDS)
    lives, kills, found = 0, 0, Found()
    while time.monotonic() < end:
        lives += 1
        kills += _live_and_die(settings, truths, random, POINTS[lives % len(POINTS)])
        with running_server(settings.broker_launch()) as broker:
            asyncio.run(_drained(broker, truths, random, found, acks=0.5))
        with running_server(settings.broker_launch()) as broker:
            asyncio.run(_drained(broker, truths, random, found, acks=1.0, is_clean=True))
            found.not_zero += _not_zero(broker, truths)
    receipts = sum(len(one.receipted) for one in truths)
    result.figures.update(seed=seed, kills=kills, receipts=receipts)
    result.check("killed", kills > 0, f"{kills} of {lives} brokers died at their point")
    for name, wrong in vars(found).items():
        what = f"{name.replace('_', ' ')}: {wrong[:5] or 'none'}; {receipts:,} receipts"
        result.check(name.replace("_", " "), not wrong, f"{what}, {kills} kills, seed {seed}")
    return result


@dataclass
class Found:
    """What should not be."""

    lost: list[str] = field(default_factory=list)
    came_again: list[str] = field(default_factory=list)
    out_of_order: list[str] = field(default_factory=list)
    not_zero: list[str] = field(default_factory=list)


def _live_and_die(
    settings: ClusterSettings, truths: list[Truth], random: Random, point: str
) -> bool:
    """Publish to a broker until it dies; false if it did not."""
    launch = settings.broker_launch()
    killed = KilledLaunch(
        launch.module, launch.settings, launch.log, (), point, random.randrange(20, LATEST_KILL)
    )
    with running_server(killed) as broker:
        return asyncio.run(_publish(broker, truths, random))


async def _publish(broker: ServerProcess, truths: list[Truth], random: Random) -> bool:
    clients = [Client(truth, random, 0.3) for truth in truths]
    try:
        async with deadline(LoopClock(), LIFE_SECONDS):
            for client in clients:
                await client.open(server_address(broker))
            while not any(one.producer.transport.is_closing() for one in clients):
                for client in clients:
                    client.send()
                await asyncio.sleep(random.random() * 0.01)
    except (TimeoutError, OSError):
        pass  # It died on the way, or lives on: then it is stopped like any other.
    opened = [one for one in clients if hasattr(one, "consumer")]
    died = any(one.producer.transport.is_closing() for one in opened)
    for client in opened:
        client.close()
    return died


async def _drained(
    broker: ServerProcess,
    truths: list[Truth],
    random: Random,
    found: Found,
    *,
    acks: float,
    is_clean: bool = False,
) -> None:
    """Take all that is left, and compare."""
    clients = [Client(truth, random, acks) for truth in truths]
    before = [(set(truth.given_up), set(truth.acknowledged)) for truth in truths]
    for client in clients:
        await client.open(server_address(broker))
    await asyncio.sleep(ACTIVE_SECONDS)
    seen = -1
    while seen != (seen := sum(len(one.got) for one in clients)):  # noqa: ASYNC110 - silence is waited for
        await asyncio.sleep(QUIET_SECONDS)
    for client, (given_up, acknowledged) in zip(clients, before, strict=True):
        kind, got = client.truth.kind, set(client.got)
        lost = client.truth.receipted - given_up - got
        found.lost += [f"{kind} {one}" for one in sorted(lost)]
        if is_clean:
            found.came_again += [f"{kind} {one}" for one in sorted(got & acknowledged)]
        found.out_of_order += [] if client.in_order() else [kind]
        client.close()
    await asyncio.sleep(QUIET_SECONDS)


def _not_zero(broker: ServerProcess, truths: list[Truth]) -> list[str]:
    """Return the figures of subscriptions that should be 0 when all is acknowledged."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    wrong = []
    for truth in truths:
        path = truth.topic.replace("://", "/")
        with opener.open(f"{broker.web_url}/admin/v2/{path}/stats", timeout=10) as response:
            stats = json.load(response)["subscriptions"]["bench"]
        figures = {name: stats[name] for name in ("msgBacklog", "unackedMessages")}
        wrong += [f"{truth.kind} {name} {value}" for name, value in figures.items() if value]
    return wrong
