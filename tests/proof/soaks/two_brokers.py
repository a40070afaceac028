"""Two brokers on one database: the owner of topics is killed, and frozen, under load.

Each keeps its messages in a separate log. Clients publish through one proxy all the time. At the
end every receipted message is there, in order, and no bundle was ever in two logs. In a second part
messages are in memory: a broker frozen for longer than its lease sends no receipts for topics that
another broker serves now.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import proto.PulsarApi_pb2 as pb
from limiter.clock import LoopClock, deadline
from loadgen.places.server_process import ServerLaunch, running_server
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import LOCAL, Restartable, check_logs
from tests.support.peers.message_peer import MessagePeer
from tests.support.peers.steady_publisher import SteadyPublisher, connected, stored_numbers
from tests.support.processes.postgresql import running_postgresql

TOPICS = 12
LEASE_SECONDS = 2.0
QUIET_SECONDS = 1.0
FROZEN_SECONDS = 3.0
DOWN_SECONDS = 1.0
PAUSE_SECONDS = 0.01
READ_SECONDS = 60.0
QUICK_SECONDS = 12.0


def prove(options: ProofOptions) -> ProofResult:
    """Kill and freeze brokers alternately for the soak's duration."""
    result = ProofResult()
    seconds = QUICK_SECONDS if options.quick else options.soak_seconds
    options.out.mkdir(parents=True, exist_ok=True)
    with running_postgresql() as database:
        options.note("brokers with logs, killed and frozen")
        with _brokers(options.out, database.emptied(), logs=True) as parts:
            asyncio.run(_under_load(parts, seconds, result))
        options.note("a frozen broker with its messages in memory")
        with _brokers(options.out, database.emptied(), logs=False) as parts:
            asyncio.run(_frozen_in_memory(parts, result))
    check_logs(options.out, result)
    return result


@dataclass
class Parts:
    """Two brokers and a proxy.

    Attributes:
        brokers: Both, each restartable after a kill.
        proxy_url: The clients' address.
    """

    brokers: list[Restartable]
    proxy_url: str


@contextmanager
def _brokers(out: Path, database: str, *, logs: bool) -> Iterator[Parts]:
    kind = "log" if logs else "memory"
    with ExitStack() as stack:
        brokers = []
        for name in ("one", "two"):
            settings = {
                **LOCAL,
                "metadataStoreUrl": database,
                "metadataStoreSessionTimeoutMillis": str(int(1000 * LEASE_SECONDS)),
                "brokerShutdownTimeoutMs": "5000",
            }
            if logs:
                settings["floodgateMessageStore"] = (
                    f"sqlite://{(out / f'messages-{name}.db').resolve()}"
                )
            log = out / f"broker-{kind}-{name}.log"
            brokers.append(Restartable(stack, partial(_launch, settings, log)))
        hosts = ",".join("{}:{}".format(*broker.address) for broker in brokers)
        settings = {
            **LOCAL,
            "servicePort": "0",
            "brokerServiceURL": f"pulsar://{hosts}",
            "brokerProxyAllowedTargetPorts": "*",
        }
        proxy = ServerLaunch("proxy", settings, out / f"proxy-{kind}.log")
        yield Parts(brokers, stack.enter_context(running_server(proxy)).service_url)


def _launch(settings: dict[str, str], log: Path, port: int) -> ServerLaunch:
    launch = ServerLaunch("broker", settings, log)
    return replace(launch, settings={**settings, "brokerServicePort": str(port)})


# -- killed and frozen under load -----------------------------------------------------------------


async def _under_load(parts: Parts, seconds: float, result: ProofResult) -> None:
    topics = [f"persistent://public/default/t{number}" for number in range(TOPICS)]
    publishers = [SteadyPublisher(parts.proxy_url, topic) for topic in topics]
    async with _publishing(publishers):
        kills, freezes = await _faults(parts, seconds)
    missing, unordered, foreign = 0, 0, 0
    for topic, publisher in zip(topics, publishers, strict=True):
        last = publisher.receipted - 1
        numbers = await stored_numbers(parts.proxy_url, topic, last, READ_SECONDS)
        first = list(dict.fromkeys(numbers))
        missing += len(set(range(publisher.receipted)) - set(first))
        unordered += first != sorted(first)
        foreign += _lost_position(publisher)
    receipts = sum(one.receipted for one in publishers)
    result.figures["log"] = {
        "topics": TOPICS,
        "receipts": receipts,
        "kills": kills,
        "freezes": freezes,
        "connections": sum(one.connections for one in publishers),
    }
    result.check(
        "nothing receipted is missing",
        missing == 0 and receipts > 0,
        f"{receipts:,} messages had a receipt while brokers were killed {kills} times and frozen "
        f"{freezes} times; {missing} of them are missing",
    )
    result.check(
        "messages are in order",
        unordered == 0,
        f"{unordered} of {TOPICS} topics have messages out of order",
    )
    result.check(
        "no second writer",
        foreign == 0,
        f"{foreign} receipts named a position that another message of the topic had already",
    )
    result.check(
        "there were faults of both kinds",
        kills > 0 and freezes > 0,
        f"{kills} kills and {freezes} freezes",
    )


def _lost_position(publisher: SteadyPublisher) -> int:
    """Return the number of receipts whose position is not behind the preceding position."""
    positions = [publisher.positions[number] for number in range(publisher.receipted)]
    return sum(later <= earlier for earlier, later in pairwise(positions))


@asynccontextmanager
async def _publishing(publishers: list[SteadyPublisher]) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        for publisher in publishers:
            group.create_task(publisher.run(PAUSE_SECONDS))
        yield
        for publisher in publishers:
            publisher.stop()


async def _faults(parts: Parts, seconds: float) -> tuple[int, int]:
    """Kill and freeze the brokers alternately; at the end both serve."""
    kills = freezes = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end or not freezes:
        await asyncio.sleep(QUIET_SECONDS)
        broker = parts.brokers[(kills + freezes) // 2 % 2]
        if kills <= freezes:
            os.kill(broker.server.pid, signal.SIGKILL)
            await asyncio.sleep(DOWN_SECONDS)
            await asyncio.to_thread(broker.restart)
            kills += 1
        else:
            await _freeze(broker.server.pid, FROZEN_SECONDS)
            freezes += 1
    return kills, freezes


async def _freeze(pid: int, seconds: float) -> None:
    os.kill(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        os.kill(pid, signal.SIGCONT)


# -- frozen, with messages in memory --------------------------------------------------------------


async def _frozen_in_memory(parts: Parts, result: ProofResult) -> None:
    topic = "persistent://public/default/frozen"
    asking = await connected(parts.proxy_url, topic)
    asking.close()
    owner = await _owner(parts, topic)
    straight = await MessagePeer.connect(owner.server.service_url)
    await straight.producer(topic)
    await straight.publish(0, b"before")
    assert (await straight.receipt()).type == pb.BaseCommand.SEND_RECEIPT
    pid = owner.server.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        other = next(one for one in parts.brokers if one is not owner)
        taken_seconds = await _taken(other, topic)
        # Pending input in the owner's socket when it resumes.
        for number in range(1, 100):
            await straight.publish(number, b"too late")
    finally:
        os.kill(pid, signal.SIGCONT)
    receipts, closed = await _answers(straight)
    straight.close()
    result.figures["memory"] = {"taken_seconds": taken_seconds, "receipts_after_the_thaw": receipts}
    result.check(
        "a thawed broker serves nothing that is another's",
        receipts == 0 and closed,
        f"another broker served the topic {taken_seconds:.1f} s after its owner was frozen; when "
        f"that went on it gave {receipts} receipts for 99 messages, and "
        f"{'closed' if closed else 'kept'} the producer",
    )


async def _owner(parts: Parts, topic: str) -> Restartable:
    peer = await MessagePeer.connect(parts.proxy_url)
    url = (await peer.lookup(topic)).brokerServiceUrl
    peer.close()
    return next(one for one in parts.brokers if one.server.service_url == url)


async def _taken(broker: Restartable, topic: str) -> float:
    """Look up a topic at a broker until the broker serves it; return the time taken."""
    started = time.monotonic()
    peer = await MessagePeer.connect(broker.server.service_url)
    try:
        while True:
            found = await peer.lookup(topic, authoritative=True)
            if found.brokerServiceUrl == broker.server.service_url:
                made = await peer.producer(topic, name="other")
                assert made.type == pb.BaseCommand.PRODUCER_SUCCESS, made
                return time.monotonic() - started
            await asyncio.sleep(0.05)
    finally:
        peer.close()


async def _answers(peer: MessagePeer) -> tuple[int, bool]:
    """Return the number of receipts, and whether the producer is closed."""
    receipts = 0
    try:
        async with deadline(LoopClock(), LEASE_SECONDS + 3.0):
            while True:
                answer = await peer.receipt()
                if answer.type != pb.BaseCommand.SEND_RECEIPT:
                    return receipts, True
                receipts += 1
    except TimeoutError:
        return receipts, False
    except (EOFError, OSError):
        return receipts, True
