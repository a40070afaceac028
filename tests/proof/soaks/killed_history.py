"""A history of four topics whose broker ends in one way after the other."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.error import HTTPError

from limiter.clock import LoopClock, deadline
from loadgen.places.server_process import (
    STOP_SECONDS,
    ServerLaunch,
    ServerProcess,
    ServerStartError,
    running_server,
)
from tests.proof.servers import LOCAL, rest, server_address
from tests.proof.soaks.killed_broker import NEVER, POINTS
from tests.proof.soaks.wire_clients import SUBSCRIPTION, WireClients
from tests.proof.soaks.wire_history import WireHistory
from tests.proof.soaks.wire_peer import RefusedError, WirePeer
from tests.support.messages.model import ALONE, SubType
from tests.support.messages.truth import Truth, Wrong
from tests.support.processes.free_port import free_port

KINDS = (*ALONE, SubType.Shared, SubType.Key_Shared)
ANY_MOMENT, STOPPED = "any-moment", "stopped"
WAYS = (*POINTS, *(ANY_MOMENT,) * 3 * len(POINTS), STOPPED, STOPPED)
"""All ways of a broker's end, most of them at any moment."""
LIFE_SECONDS = 3.0
LONGEST_LIFE = 1.2
"""Lifetime in seconds of a broker that dies at any moment."""
SAVED_SECONDS = 1.5
"""Age of an answered acknowledgement before a kill to be safe; the promise is one second."""
QUIET_SECONDS = 0.3
ENDING_STEPS = 25
LEDGER_ENTRIES = 40


@dataclass(frozen=True)
class KilledLaunch(ServerLaunch):
    """The start of a broker that kills itself; see killed_broker."""

    how: tuple[str, ...] = ()

    def command(self) -> list[str]:
        python, m, _, *rest = super().command()
        return [python, m, "tests.proof.soaks.killed_broker", *self.how, *rest]


class Start(NamedTuple):
    """A broker's time to be ready, without its wait for a processor, and in all."""

    own_seconds: float
    seconds: float


@dataclass
class Totals:
    """Totals of all histories, and of brokers' ends."""

    steps: Counter[str]
    kills: Counter[str]
    restarts: Counter[str]
    starts: list[Start]
    wrong: Wrong


class History:
    """Four topics, and their brokers in sequence."""

    def __init__(
        self, out: Path, number: int, random: Random, totals: Totals, stack: ExitStack
    ) -> None:
        self._out, self._number, self._random, self._totals = out, number, random, totals
        self._lives = 0
        self._is_ending = False
        self._fsync = number % 2 == 1
        retained = random.random() < 0.5
        self._truths = [
            Truth(kind, f"persistent://public/default/{number}-{kind}", retained=retained)
            for kind in KINDS
        ]
        self._port, self._web_port = free_port(), free_port()
        self._settings = self._broker_settings(retained)
        self._through: tuple[str, int] | None = None
        if number % 3 == 2:
            self._through = server_address(stack.enter_context(running_server(self._proxy())))

    def _broker_settings(self, retained: bool) -> dict[str, str]:
        database = (self._out / "messages.db").resolve()
        keeps = "-1" if retained else "0"
        return {
            **LOCAL,
            "brokerServicePort": str(self._port),
            "webServicePort": str(self._web_port),
            "floodgateMessageStore": f"sqlite://{database}?fsync={str(self._fsync).lower()}",
            "managedLedgerMaxEntriesPerLedger": str(LEDGER_ENTRIES),
            "activeConsumerFailoverDelayTimeMillis": "100",
            "defaultRetentionTimeInMinutes": keeps,
            "defaultRetentionSizeInMB": keeps,
        }

    def _proxy(self) -> ServerLaunch:
        settings = {
            **LOCAL,
            "servicePort": "0",
            "brokerServiceURL": f"pulsar://{self._host}",
            "brokerProxyAllowedTargetPorts": "*",
        }
        return ServerLaunch("proxy", settings, self._out / f"proxy-{self._number}.log")

    @property
    def _host(self) -> str:
        return f"127.0.0.1:{self._port}"

    def play(self, ways: list[str]) -> None:
        """End the broker in several ways, and compare the remaining messages."""
        for way in ways:
            self._life(way)
        with self._started(self._launch(NEVER, "0")):
            asyncio.run(self._left())
        self._stopped()
        with self._started(self._launch(NEVER, "0")):
            asyncio.run(self._left(to_the_end=True))
        self._stopped()
        for truth in self._truths:
            for one in fields(Wrong):
                found = [f"history {self._number}: {what}" for what in vars(truth.wrong)[one.name]]
                vars(self._totals.wrong)[one.name].extend(found)

    # -- brokers ------------------------------------------------------------------------------

    @property
    def _mark(self) -> Path:
        return self._out / "died"

    def _launch(self, point: str, number: str) -> KilledLaunch:
        self._mark.unlink(missing_ok=True)
        how = (point, number, str(self._mark))
        self._lives += 1
        log = self._out / f"broker-{self._number}-{self._lives}-{point}.log"
        return KilledLaunch("broker", self._settings, log, (), how)

    @contextmanager
    def _started(self, launch: ServerLaunch) -> Iterator[ServerProcess]:
        """Run a broker for a block, and note the duration of its start."""
        begun = time.monotonic()
        with running_server(launch) as broker:
            seconds = time.monotonic() - begun
            waited = int(Path(f"/proc/{broker.pid}/schedstat").read_text().split()[1]) / 1e9
            self._totals.starts.append(Start(seconds - waited, seconds))
            yield broker

    def _life(self, way: str) -> None:
        """Run a broker until it dies, or for some seconds."""
        number = self._random.randint(1, POINTS.get(way, 1))
        launch = self._launch(way if way in POINTS else NEVER, str(number))
        heard_at, ended = 0.0, True
        try:
            with self._started(launch) as broker:
                seconds = LIFE_SECONDS if way in POINTS else self._random.uniform(0, LONGEST_LIFE)
                heard_at = asyncio.run(self._under_load(broker, way, seconds))
                ended = _has_ended(broker.pid)
        except ServerStartError:
            if not self._mark.exists():
                raise  # else it died in recovery
        if way == ANY_MOMENT:
            self._mark.write_text(ANY_MOMENT)
        if self._mark.exists():
            self._totals.kills[self._mark.read_text()] += 1
            self._totals.restarts["killed"] += 1
            for truth in self._truths:
                truth.killed(heard_at - SAVED_SECONDS)
        else:
            self._totals.restarts["stopped under load"] += 1
            self._stopped(ended=ended)

    def _stopped(self, *, ended: bool = True) -> None:
        self._totals.restarts["clean"] += 1
        for truth in self._truths:
            truth.saved()
        if not ended:
            self._totals.wrong.refused.append(f"a broker did not stop within {STOP_SECONDS:.0f} s")

    # -- clients ------------------------------------------------------------------------------

    async def _connect(self) -> WirePeer:
        if self._through is not None:
            return await WirePeer.connected(self._through, self._host)
        return await WirePeer.connected(("127.0.0.1", self._port))

    async def _unload(self, topic: str) -> None:
        await asyncio.to_thread(self._rest, "PUT", f"{topic.replace('://', '/')}/unload")

    def _rest(self, method: str, path: str) -> Any:
        try:
            return rest(f"http://127.0.0.1:{self._web_port}", method, path)
        except HTTPError as error:
            raise RefusedError(f"{method} {path}: {error}") from None

    def _histories(self) -> list[WireHistory]:
        return [
            WireHistory(WireClients(truth, self._random, self._connect), self._unload)
            for truth in self._truths
        ]

    async def _under_load(self, broker: ServerProcess, way: str, seconds: float) -> float:
        """Play all topics until the broker is gone; return the time of the last receipt."""
        histories, self._is_ending = self._histories(), False
        lives = asyncio.gather(*(self._live(one) for one in histories))
        with suppress(TimeoutError):
            async with deadline(LoopClock(), seconds):
                await asyncio.shield(lives)
        self._is_ending = True
        with suppress(ProcessLookupError):
            os.kill(broker.pid, signal.SIGKILL if way == ANY_MOMENT else signal.SIGTERM)
        await lives
        for one in histories:
            one.clients.close()
            self._totals.steps.update(one.clients.counts)
        return max(one.clients.heard_at for one in histories)

    async def _live(self, history: WireHistory) -> None:
        """Play a topic until the broker's end."""
        try:
            await history.clients.open(self._random.randint(1, 2))
            await history.live()
        except OSError:
            pass  # The broker is gone: its earlier output counts.
        except RefusedError as error:
            if not self._is_ending:
                history.truth.wrong.refused.append(f"{history.truth.name}: {error}")

    async def _left(self, *, to_the_end: bool = False) -> None:
        """Receive all remaining messages, and compare."""
        histories = self._histories()
        await asyncio.gather(*(one.clients.open(1) for one in histories))
        await asyncio.gather(*(one.clients.all_came(QUIET_SECONDS) for one in histories))
        if to_the_end:
            await asyncio.gather(*(one.clients.acknowledge_all() for one in histories))
            await asyncio.gather(*(one.clients.all_came(QUIET_SECONDS) for one in histories))
            await asyncio.gather(*(one.clients.acknowledge_all() for one in histories))
        else:
            await asyncio.gather(*(one.end_in_part(ENDING_STEPS) for one in histories))
            await asyncio.gather(*(one.clients.all_came(QUIET_SECONDS) for one in histories))
        for one in histories:
            if to_the_end:
                await asyncio.to_thread(self._finish, one.truth)
            one.clients.close()
            self._totals.steps.update(one.clients.counts)

    def _finish(self, truth: Truth) -> None:
        """Check that a topic is empty, and delete it."""
        path = truth.topic.replace("://", "/")
        stats = self._rest("GET", f"{path}/stats")["subscriptions"][SUBSCRIPTION]
        for name in ("msgBacklog", "unackedMessages"):
            if stats[name]:
                truth.wrong.not_zero.append(f"{truth.name} {name} {stats[name]}")
        self._rest("DELETE", f"{path}?force=true")


def _has_ended(pid: int) -> bool:
    """Wait for a child's end after its signal: a second signal would kill it immediately."""
    end = time.monotonic() + STOP_SECONDS
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
