"""200 clients that connect, request, read slowly or not at all, and vanish at any stage.

Both profiles get half of the time. At the end no permits, queued requests, lookups or pending bytes
may be held; and memory must not have grown since the warm-up.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.imports.memory_import import write_topics
from benchmarks.process_memory import resident_bytes
from benchmarks.processes import ROOT
from loadgen.engine.connecting import raise_open_file_limit
from loadgen.places.server_process import ServerProcess
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.proof.servers import ClusterSettings, judged_cluster, limited, server_address
from tests.proof.soaks.conversation import Outcome

CLIENTS = 200
QUICK_CLIENTS = 40
TOPICS = 40_000
LIMIT_MB = 20
TIMEOUT_MILLIS = 2_000
WARM_UP_SHARE = 0.3
LOOK_SECONDS = 1.0
GROWTH_BYTES = 24 * 1024 * 1024
"""Growth allowed after the warm-up: a limit's worth of answers kept by the allocator."""
PROFILES = ("floodgate", "pulsar")
Resident = dict[str, list[float]]


def prove(options: ProofOptions) -> ProofResult:
    corpus = options.out / "topics"
    write_topics(corpus, TOPICS, lambda _: None)
    result = ProofResult()
    for number, profile in enumerate(PROFILES):
        options.note(f"profile {profile}")
        _soak(options, corpus, profile, number, result)
    return result


def _soak(
    options: ProofOptions, corpus: Path, profile: str, seed: int, result: ProofResult
) -> None:
    """Run clients with small limits and short timeouts, so that every path is taken."""
    seconds = options.soak_seconds / len(PROFILES)
    clients = QUICK_CLIENTS if options.quick else CLIENTS
    raise_open_file_limit(4 * clients)
    both = limited(profile, LIMIT_MB, TIMEOUT_MILLIS)
    keys = {"metadataStoreUrl": "memory:local", "brokerDeleteInactiveTopicsEnabled": "false"}
    settings = ClusterSettings(options.out / profile, both, keys, (corpus,))
    with judged_cluster(settings, result, f"{profile}: ") as servers:
        addresses = ["{}:{}".format(*server_address(server)) for server in servers]
        arguments = [str(corpus), str(seconds), str(clients), str(seed), *addresses]
        found, resident = _run_clients(arguments, servers, seconds)
    result.figures[profile] = {
        "clients": clients,
        "seconds": seconds,
        **found,
        "resident_bytes": {name: _resident_figures(curve) for name, curve in resident.items()},
    }
    _judge(profile, found, result)
    _judge_memory(profile, resident, result)


def _run_clients(
    arguments: list[str], servers: tuple[ServerProcess, ...], seconds: float
) -> tuple[dict[str, Any], Resident]:
    """Run the clients while sampling the servers' memory."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.proof.soaks.churn_clients", *arguments],
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    resident: Resident = {server.module: [] for server in servers}
    try:
        give_up = time.monotonic() + seconds + 120
        while process.poll() is None and time.monotonic() < give_up:
            for server in servers:
                resident[server.module].append(resident_bytes(server.pid))
            time.sleep(LOOK_SECONDS)
        if process.poll() != 0:
            raise ProofError(f"the clients ended with {process.poll()}")
        output = process.stdout.read() if process.stdout else b""
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()
    return json.loads(output), resident


def _judge(profile: str, found: dict[str, Any], result: ProofResult) -> None:
    outcomes = found["outcomes"]
    wrong, right = outcomes[Outcome.WRONG], outcomes[Outcome.RIGHT]
    result.check(
        f"{profile}: every answer is right",
        wrong == 0 and right > 0,
        f"{profile}: {right:,} answers right, {wrong} wrong, {outcomes[Outcome.REFUSED]:,} "
        f"refused, {outcomes[Outcome.LEFT]:,} clients vanished" + "".join(found["problems"][:1]),
    )
    lost = outcomes[Outcome.DISCONNECTED] + outcomes[Outcome.UNREACHABLE]
    silent = outcomes[Outcome.TIMEOUT]
    result.check(
        f"{profile}: nobody is left alone",
        lost == 0 and silent == 0,
        f"{profile}: {lost} disconnected by a server, {silent} without any answer",
    )


def _resident_figures(curve: list[float]) -> dict[str, float]:
    warm = curve[int(len(curve) * WARM_UP_SHARE) :]
    third = max(1, len(warm) // 3)
    early, late = sorted(warm[:third]), sorted(warm[-third:])
    return {
        "first": curve[0],
        "after_warm_up": early[len(early) // 2],
        "at_the_end": late[len(late) // 2],
        "peak": max(curve),
    }


def _judge_memory(profile: str, resident: Resident, result: ProofResult) -> None:
    for module, curve in resident.items():
        figures = _resident_figures(curve)
        growth = figures["at_the_end"] - figures["after_warm_up"]
        result.check(
            f"{profile}: memory of the {module}",
            growth <= GROWTH_BYTES,
            f"{profile}: the {module} had {figures['after_warm_up'] / 1e6:.0f} MB after the "
            f"warm-up and {figures['at_the_end'] / 1e6:.0f} MB at the end, at most "
            f"{figures['peak'] / 1e6:.0f} MB",
        )
