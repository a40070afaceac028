"""kill -9 of brokers, proxies, their database and a worker, at named points of one scenario.

A broker is frozen, too, for longer than its lease: what it confirms afterwards would be missing.

Two brokers with logs on one PostgreSQL, two proxies, and official clients that publish, consume,
list and look up all the time. After each kill everything must work again: a message published to
every topic arrives. In the end no receipted message is missing, every bundle has one owner, and a
load worker's leftovers are removed.
"""

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from limiter.clock import LoopClock, deadline
from tests.proof.restarts.loads import finished_loads, running_loads
from tests.proof.restarts.rolling import QUIET_SECONDS, judge_messages
from tests.proof.restarts.servers import LEASE_MILLIS, Fleet, running_fleet
from tests.proof.restarts.workers import WORKER_POINTS, WORKER_SOON_SECONDS, killed_worker
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.proof.servers import check_logs, check_nothing_held, settled_figures
from tests.support.peers.message_peer import MessagePeer
from tests.support.processes.postgresql import PostgresqlServer, running_postgresql

RECOVERY_SECONDS = 20.0
ATTEMPT_SECONDS = 5.0
GIVES_UP = "python: subscribe to a pattern: LookupError"
"""The official C++ client fails immediately if its listing is refused, as without a broker."""
WAITS = "python: subscribe to a pattern: Timeout"
"""It waits in vain once a broker that was frozen refuses one of the topics ("Retryable")."""
MOST_WAITS = 6
"""Each of the load's loops of such subscriptions meets the frozen broker once at most."""
SHORT_SECONDS = 1.0
TOPICS = [f"persistent://public/default/after-{number}" for number in range(8)]


class Point(NamedTuple):
    """A moment of the scenario with a kill.

    Attributes:
        name: The moment.
        victims: Processes of the fleet; none: the database.
        away_seconds: Downtime.
        frozen: Whether the victims are stopped and continued instead.
    """

    name: str
    victims: tuple[str, ...]
    away_seconds: float = 0.0
    frozen: bool = False


POINTS = (
    Point("a broker while its topics are published to and read", ("broker-1",)),
    Point("a broker right after it was started", ("broker-1",)),
    Point("both brokers at once", ("broker-1", "broker-2")),
    Point("a broker, away for longer than its lease", ("broker-2",), 2e-3 * LEASE_MILLIS),
    Point("a broker, frozen for longer than its lease", ("broker-1",), 2e-3 * LEASE_MILLIS, True),
    Point("a proxy while its pipes carry messages", ("proxy-1",)),
    Point("both proxies at once", ("proxy-1", "proxy-2")),
    Point("the database while clients look up", (), SHORT_SECONDS),
    Point("the database, away for longer than the leases", (), 2e-3 * LEASE_MILLIS),
    Point("the database and a broker at once", ("broker-1", ""), SHORT_SECONDS),
)


def prove(options: ProofOptions) -> ProofResult:
    """Kill at each point, and check that all works again."""
    result = ProofResult()
    options.out.mkdir(parents=True, exist_ok=True)
    recoveries: dict[str, float] = {}
    with (
        running_postgresql(survives_kill=True) as database,
        running_fleet(options.out, database.url()) as fleet,
    ):
        with running_loads(options.out, fleet, ("python",)) as loads:
            for point in POINTS:
                options.note(point.name)
                time.sleep(QUIET_SECONDS)
                _kill(point, fleet, database)
                recoveries[point.name] = _until_all_works(fleet)
            time.sleep(QUIET_SECONDS)
            found = finished_loads(loads)
        owners = _owners(fleet)
        options.note("a worker of a load")
        proxy = fleet.processes["proxy-1"].server
        said = [killed_worker(options.out, proxy, point) for point in WORKER_POINTS]
        held = {name: settled_figures(one.server) for name, one in fleet.processes.items()}
    result.figures = {**found, "recovery_seconds": recoveries, "workers": said}
    judge_messages(found, result)
    _judge(result, recoveries, owners, said, found["failures"])
    check_nothing_held(held, result)
    check_logs(options.out, result)
    return result


def _kill(point: Point, fleet: Fleet, database: PostgresqlServer) -> None:
    """Kill or freeze the point's victims, and let them go on."""
    victims = [fleet.processes[name] for name in point.victims if name]
    for victim in victims:
        (victim.pause if point.frozen else victim.kill)()
    of_database = not point.victims or "" in point.victims
    if of_database:
        database.kill()
    time.sleep(point.away_seconds)
    if of_database:
        database.start_again()
    for victim in victims:
        if point.frozen:
            victim.go_on()
        else:
            victim.restart()


def _judge(
    result: ProofResult,
    recoveries: dict[str, float],
    owners: int,
    said: list[dict[str, Any]],
    failures: list[str],
) -> None:
    slowest = max(recoveries, key=lambda name: recoveries[name])
    result.check(
        "everything works again",
        len(recoveries) == len(POINTS),
        f"behind each of {len(POINTS)} faults {len(TOPICS)} topics took and gave a message through "
        f"every process; at most {recoveries[slowest]:.1f} s after the start ({slowest})",
    )
    others = [failure for failure in failures if not failure.startswith((GIVES_UP, WAITS))]
    waits = sum(failure.startswith(WAITS) for failure in failures)
    result.check(
        "no other call fails",
        not others and waits <= MOST_WAITS,
        f"{len(others)} calls of the clients failed beside {len(failures) - len(others)} "
        f"subscriptions to a pattern, which this client does not try again ({waits} of them wait "
        f"for their timeout, {MOST_WAITS} may): {'; '.join(sorted(set(others))[:5]) or 'none'}",
    )
    result.check(
        "one owner",
        owners == len(TOPICS),
        f"both brokers name the same owner of {owners} of {len(TOPICS)} topics",
    )
    for one in said:
        plain = one["status"] not in (0, None) and "Traceback" not in "".join(one["said"])
        left = [*one["left"], *one["processes_left"]]
        # A started load keeps the rows of the other worker.
        run = [one["run"]] if one["asks"] else []
        result.check(
            one["point"],
            plain and left == run and one["seconds"] < WORKER_SOON_SECONDS,
            f"{one['point']} is killed: the load ends with {one['status']} {one['seconds']:.1f} s "
            f"later, leaves {', '.join(left) or 'nothing'} behind, and says: {one['said'][-200:]}",
        )


# -- the state after a kill -----------------------------------------------------------------------


def _until_all_works(fleet: Fleet) -> float:
    """Publish to, and consume from, topics through every process; return the time taken."""
    begun = time.monotonic()
    for name, process in fleet.processes.items():
        for topic in TOPICS:
            _again(
                begun,
                f"{topic} through {name}",
                lambda url=process.server.service_url, one=topic: asyncio.run(
                    _round_trip(url, one)
                ),
            )
    return time.monotonic() - begun


def _again(begun: float, what: str, attempt: Callable[[], Any]) -> Any:
    """Retry until success.

    Raises:
        ProofError: No attempt succeeded in time.
    """
    while True:
        try:
            return attempt()
        except (OSError, EOFError, AssertionError, TimeoutError) as error:
            if time.monotonic() - begun > RECOVERY_SECONDS:
                raise ProofError(f"{what} does not work after a kill: {error!r}") from error
            time.sleep(0.1)


async def _round_trip(url: str, topic: str) -> None:
    """Look a topic up as a client does, publish a message and receive it."""
    async with deadline(LoopClock(), ATTEMPT_SECONDS):
        target = await _served_at(url, topic)
        peer = await MessagePeer.connect(*target)
        try:
            payload = os.urandom(8).hex().encode()
            made = await peer.subscribe(topic, "after")
            assert made.HasField("success"), made
            made = await peer.producer(topic)
            assert made.HasField("producer_success"), made
            await peer.flow(1000)
            await peer.publish(0, payload)
            while (message := await peer.message()).payload != payload:
                await peer.ack(message.position)
            await peer.ack(message.position)
        finally:
            peer.close()


async def _served_at(url: str, topic: str) -> tuple[str, str | None]:
    """Return a topic's address for connecting, and its broker for the proxy."""
    authoritative = False
    while True:
        peer = await MessagePeer.connect(url)
        try:
            found = await peer.lookup(topic, authoritative=authoritative)
        finally:
            peer.close()
        assert found.response != found.Failed, found.message
        if found.proxy_through_service_url:
            return url, found.brokerServiceUrl.removeprefix("pulsar://")
        url, authoritative = found.brokerServiceUrl, found.authoritative
        if found.response == found.Connect:
            return url, None


def _owners(fleet: Fleet) -> int:
    """Return the number of topics with one owner, by any broker."""
    brokers = [one.server.service_url for name, one in fleet.processes.items() if "broker" in name]
    same = 0
    for topic in TOPICS:
        found = [asyncio.run(_served_at(url, topic)) for url in brokers]
        same += len({url for url, _ in found}) == 1
    return same
