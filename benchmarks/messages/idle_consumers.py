"""The memory of idle consumers: 10,000 consumers on 100 connections through the proxy.

The benchmark compares the resident memory of both servers before and after the consumers attach. In
one variant, a hundred consumers share each of 100 topics and its subscription. In the other, each
consumer has its own topic and subscription, like consumers by pattern. The topics exist before;
loading them is part of the cost.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import proto.PulsarApi_pb2 as pb
from benchmarks.messages.wire import RawPeer, connected
from benchmarks.process_memory import resident_bytes
from benchmarks.processes import BenchError, address_of
from benchmarks.result import BenchOptions, BenchResult, Figure
from loadgen.places.operator_files import local_broker, local_proxy
from loadgen.places.server_process import ServerLaunch, ServerProcess, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator

CONNECTIONS, CONSUMERS = 100, 100
MANY = CONNECTIONS * CONSUMERS
RECEIVER_QUEUE = 1_000
SHARED, OWN = "100 on each topic", "each with a topic of its own"
GOAL_KB = 20.0
_SETTLE_SECONDS = 1.0
Type = pb.BaseCommand


class Servers(NamedTuple):
    """The running broker and proxy."""

    broker: ServerProcess
    proxy: ServerProcess

    def resident(self) -> dict[str, int]:
        """Return the resident memory of each server, in bytes."""
        return {"broker": resident_bytes(self.broker.pid), "proxy": resident_bytes(self.proxy.pid)}


def run(options: BenchOptions) -> BenchResult:
    """Measure each variant once in each round, with new servers."""
    found: dict[str, list[dict[str, float]]] = {SHARED: [], OWN: []}
    for number in range(options.rounds):
        for variant, rounds in found.items():
            options.note(f"round {number + 1}: {variant}")
            with tempfile.TemporaryDirectory(prefix="floodgate-bench-") as folder:
                rounds.append(measured(variant, Path(folder)))
    rounds_of = [
        {name: rounds[index] for name, rounds in found.items()} for index in range(options.rounds)
    ]
    return BenchResult(list(conclude(found)), rounds=rounds_of)


def conclude(found: dict[str, list[dict[str, float]]]) -> Iterator[Figure]:
    """Yield the figures of all rounds."""
    for variant, rounds in found.items():
        for role in ("broker", "proxy"):
            values = [one[role] for one in rounds]
            yield Figure(f"memory a consumer, {variant}: {role}", "kB", values)
        both = [one["broker"] + one["proxy"] for one in rounds]
        yield Figure(f"memory a consumer, {variant}: both", "kB", both, GOAL_KB, at_most=True)


def measured(variant: str, folder: Path) -> dict[str, float]:
    """Return the memory that each server uses per consumer, in kilobytes."""
    names = [
        _topic(variant, connection, number)
        for connection in range(CONNECTIONS)
        for number in range(CONSUMERS)
    ]
    topics = folder / "topics.txt"
    topics.write_text(
        "".join(f"{name}\n" for name in dict.fromkeys([*names, _topic(SHARED, 0, 0)]))
    )
    with _servers(folder, topics) as servers:
        before, after = asyncio.run(_attached(servers, variant))
    return {role: (after[role] - before[role]) / MANY / 1000 for role in before}


@contextmanager
def _servers(folder: Path, topics: Path) -> Iterator[Servers]:
    words = ["--import", str(topics)]
    launch = ServerLaunch("broker", local_broker(), folder / "broker.log", words)
    with running_server(launch) as broker:
        settings = local_proxy(broker.service_url, broker.web_url)
        with running_server(ServerLaunch("proxy", settings, folder / "proxy.log")) as proxy:
            yield Servers(broker, proxy)


async def _attached(servers: Servers, variant: str) -> tuple[dict[str, int], dict[str, int]]:
    """Attach all consumers; return the servers' memory before and after."""
    # The first connection's and consumer's imports do not count.
    warm = await _connection(servers)
    await _consumers(warm, [_topic(SHARED, 0, 0)])
    await asyncio.sleep(_SETTLE_SECONDS)
    before = servers.resident()
    kept = await asyncio.gather(*[_attach(servers, variant, one) for one in range(CONNECTIONS)])
    await asyncio.sleep(_SETTLE_SECONDS)
    after = servers.resident()
    await asyncio.to_thread(_check_attached, servers, variant)
    for peer in (warm, *kept):
        peer.transport.abort()
    return before, after


def _check_attached(servers: Servers, variant: str) -> None:
    """Check that the last topic has all its consumers.

    Raises:
        BenchError: The topic has another number of consumers.
    """
    topic = _topic(variant, CONNECTIONS - 1, CONSUMERS - 1).replace("://", "/")
    with urllib.request.urlopen(f"{servers.broker.web_url}/admin/v2/{topic}/stats") as answer:
        consumers = json.load(answer)["subscriptions"]["idle"]["consumers"]
    expected = CONNECTIONS if variant == SHARED else 1
    if len(consumers) != expected:
        raise BenchError(f"{topic} has {len(consumers)} consumers, not {expected}")


async def _attach(servers: Servers, variant: str, connection: int) -> RawPeer:
    peer = await _connection(servers)
    await _consumers(peer, [_topic(variant, connection, number) for number in range(CONSUMERS)])
    return peer


async def _connection(servers: Servers) -> RawPeer:
    target = servers.broker.service_url.removeprefix("pulsar://")
    return await connected(*address_of(servers.proxy.service_url), target)


async def _consumers(peer: RawPeer, topics: list[str]) -> None:
    for number, topic in enumerate(topics):
        asked = pb.CommandSubscribe(
            topic=topic,
            subscription="idle",
            subType=pb.CommandSubscribe.Shared,
            consumer_id=number,
            request_id=number,
            consumer_name=f"consumer-{number}",
        )
        await peer.ask(Type(type=Type.SUBSCRIBE, subscribe=asked))
        flow = pb.CommandFlow(consumer_id=number, messagePermits=RECEIVER_QUEUE)
        peer.tell(Type(type=Type.FLOW, flow=flow))


def _topic(variant: str, connection: int, number: int) -> str:
    name = f"t{number}" if variant == SHARED else f"t{connection}-{number}"
    return f"persistent://public/default/{name}"
