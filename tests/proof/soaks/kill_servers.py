"""kill -9 of broker and proxy alternately, under load, while clients reconnect.

The broker keeps its topics in SQLite. Answers may be cut off and requests refused; no whole answer
may be wrong, and after each restart the proxy answers again without intervention.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.imports.memory_import import write_topics
from benchmarks.processes import ROOT
from loadgen.engine.connecting import raise_open_file_limit
from loadgen.places.server_process import running_server
from tests.proof.peers.conversation import Outcome, Plan, Stage, Truth, converse
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.proof.servers import (
    ClusterSettings,
    Restartable,
    check_logs,
    check_nothing_held,
    expectations,
    settled_figures,
)

CLIENTS = 40
TOPICS = 20_000
SEED = 11
SHARE_OF_SOAK = 0.4
SHORTEST_SECONDS = 15.0
LAST_KILL_SECONDS = 6.0
"""No kills this shortly before the clients end."""
RECOVERY_SECONDS = 5.0
PROBE_SECONDS = 0.02


def prove(options: ProofOptions) -> ProofResult:
    """Kill and restart for a while; then everything must be at rest."""
    corpus = options.out / "topics"
    write_topics(corpus, TOPICS, lambda _: None)
    settings = _imported(options, corpus)
    raise_open_file_limit(4 * CLIENTS)
    result = ProofResult()
    with ExitStack() as stack:
        broker = Restartable(stack, settings.broker_launch)
        proxy = Restartable(stack, lambda port: settings.proxy_launch(broker.server, port))
        seconds = max(SHORTEST_SECONDS, SHARE_OF_SOAK * options.soak_seconds)
        clients = _start_clients(stack, corpus, seconds, (broker, proxy))
        recoveries = _kill_in_turn(options, corpus, (broker, proxy), seconds)
        found = _finished(clients)
        held = {part.server.module: settled_figures(part.server) for part in (broker, proxy)}
    result.figures = {"seconds": seconds, **found, "recoveries": recoveries, "held": held}
    _judge(result, found, recoveries)
    check_nothing_held(held, result)
    check_logs(options.out, result)
    return result


def _imported(options: ProofOptions, corpus: Path) -> ClusterSettings:
    """Import the topics into a database, and return its settings."""
    database = options.out / "topics.sqlite"
    for path in [*options.out.glob(f"{database.name}*"), *options.out.glob("*.log")]:
        path.unlink()
    keys = {"metadataStoreUrl": f"sqlite:///{database.resolve()}"}
    importing = ClusterSettings(options.out, {}, keys, (corpus,))
    with running_server(importing.broker_launch()):
        return replace(importing, imports=())


def _start_clients(
    stack: ExitStack, corpus: Path, seconds: float, servers: tuple[Restartable, ...]
) -> subprocess.Popen[bytes]:
    addresses = ["{}:{}".format(*server.address) for server in servers]
    arguments = [str(corpus), str(seconds), str(CLIENTS), str(SEED), "whole", *addresses]
    process = stack.enter_context(
        subprocess.Popen(
            [sys.executable, "-m", "tests.proof.peers.churn_clients", *arguments],
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
    )
    stack.callback(process.kill)
    return process


def _kill_in_turn(
    options: ProofOptions, corpus: Path, servers: tuple[Restartable, ...], seconds: float
) -> list[dict[str, Any]]:
    """Kill the servers alternately; return the proxy's time to answer after each kill."""
    chance, truth = random.Random(SEED), Truth(expectations(corpus))
    recoveries: list[dict[str, Any]] = []
    proxy = servers[-1]
    until = time.perf_counter() + seconds - LAST_KILL_SECONDS
    while time.perf_counter() < until:
        victim = servers[len(recoveries) % len(servers)]
        options.note(f"kill {len(recoveries) + 1}: {victim.server.module}")
        time.sleep(chance.uniform(0.3, 1.5))
        os.kill(victim.server.pid, signal.SIGKILL)
        victim.restart()
        started = time.perf_counter()
        asyncio.run(_until_answered(proxy.address, truth, chance))
        seconds_taken = time.perf_counter() - started
        recoveries.append({"killed": victim.server.module, "seconds": seconds_taken})
    return recoveries


async def _until_answered(address: tuple[str, int], truth: Truth, chance: random.Random) -> None:
    """Request through the proxy until a right answer; raise on a wrong answer."""
    expected = truth.namespaces[0]
    for request_id in range(int(10 * RECOVERY_SECONDS / PROBE_SECONDS)):
        plan = Plan(address, expected, Stage.WHOLE, request_id)
        if Outcome.RIGHT in await converse(plan, truth, chance):
            return
        await asyncio.sleep(PROBE_SECONDS)
    raise ProofError("the proxy does not answer any more after a restart")


def _finished(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    output, _ = process.communicate(timeout=120)
    if process.returncode:
        raise ProofError(f"the clients ended with {process.returncode}")
    found: dict[str, Any] = json.loads(output)
    return found


def _judge(
    result: ProofResult,
    found: dict[str, Any],
    recoveries: list[dict[str, Any]],
) -> None:
    outcomes = found["outcomes"]
    wrong, right = outcomes[Outcome.WRONG], outcomes[Outcome.RIGHT]
    result.check(
        "every answer is right",
        wrong == 0 and right > 0,
        f"{right:,} answers right, {wrong} wrong; {outcomes[Outcome.DISCONNECTED]:,} cut off, "
        f"{outcomes[Outcome.UNREACHABLE]:,} connections refused, "
        f"{outcomes[Outcome.REFUSED]:,} requests refused" + "".join(found["problems"][:1]),
    )
    result.check(
        "nobody waits for ever",
        outcomes[Outcome.TIMEOUT] == 0,
        f"{outcomes[Outcome.TIMEOUT]} requests without any answer",
    )
    slowest = max((recovery["seconds"] for recovery in recoveries), default=RECOVERY_SECONDS + 1)
    result.check(
        "the proxy recovers",
        slowest <= RECOVERY_SECONDS,
        f"{len(recoveries)} kills: a right answer through the proxy at most {slowest:.2f} s after "
        "the killed server was ready again",
    )
