"""Large imports: a million topics into memory, and SQLite killed during imports."""

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.imports.memory_import import GOAL_PER_SECOND
from benchmarks.processes import ROOT, run_json
from client.pulsar_client import PulsarClient
from loadgen.places.server_process import ServerProcess, running_server, stop
from loadgen.plan.clients import Namespace
from proto.topic_hash import topics_hash
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.proof.servers import ClusterSettings, expectations

FULL_TOPICS, QUICK_TOPICS = 1_000_000, 100_000
SQLITE_TOPICS, QUICK_SQLITE_TOPICS = 200_000, 40_000
TOPICS_PER_NAMESPACE = 10_000
IMPORTS = 3
IMPORT_SECONDS = 600.0
"""Deadline of a broker's import before it is ready, on a busy machine."""
KILL_POINTS = (0.3, 0.5, 0.7)
"""Moments of the kills, as shares of the time of start and import."""


def prove_memory_import(options: ProofOptions) -> ProofResult:
    """Measure the rate, then import into a broker and list every namespace."""
    topics = QUICK_TOPICS if options.quick else FULL_TOPICS
    corpus = _make_topics(options, topics)
    rates = []
    for number in range(IMPORTS):
        options.note(f"import {number + 1} of {IMPORTS}")
        found = run_json("benchmarks.imports.client", str(corpus))
        rates.append(found["topics"] / found["seconds"])
    result = ProofResult({"topics": topics, "topics_per_second": rates})
    rate = statistics.median(rates)
    result.check(
        "rate",
        options.quick or rate >= GOAL_PER_SECOND,
        f"{topics:,} topics were imported at {rate:,.0f} a second (median of {IMPORTS}; "
        f"{min(rates):,.0f} to {max(rates):,.0f}), wanted are {GOAL_PER_SECOND:,.0f}",
    )
    settings = ClusterSettings(options.out, {}, {"metadataStoreUrl": "memory:local"}, (corpus,))
    options.note("a broker imports and is asked")
    started = time.perf_counter()
    with running_server(settings.broker_launch(), IMPORT_SECONDS) as broker:
        result.figures["broker_ready_seconds"] = time.perf_counter() - started
        _check_everything(broker, corpus, result)
    return result


def prove_sqlite_import(options: ProofOptions) -> ProofResult:
    """Kill the broker during and right after imports; then list every namespace."""
    corpus = _make_topics(options, QUICK_SQLITE_TOPICS if options.quick else SQLITE_TOPICS)
    database = options.out / "topics.sqlite"
    for path in options.out.glob(f"{database.name}*"):
        path.unlink()
    keys = {"metadataStoreUrl": f"sqlite:///{database.resolve()}"}
    importing = ClusterSettings(options.out, {}, keys, (corpus,))
    serving = replace(importing, imports=())
    result = ProofResult()
    seconds = result.figures["start_and_import_seconds"] = _import_seconds(options, corpus)
    for share in KILL_POINTS:
        options.note(f"killed at {share:.0%} of an import")
        _kill_during_start(importing, share * seconds)
        _check_whole_namespaces(serving, corpus, share, result)
    options.note("killed after an import")
    with running_server(importing.broker_launch(), IMPORT_SECONDS) as broker:
        os.kill(broker.pid, signal.SIGKILL)
    started = time.perf_counter()
    with running_server(serving.broker_launch()) as broker:
        result.figures["restart_seconds"] = time.perf_counter() - started
        _check_everything(broker, corpus, result)
    return result


def _make_topics(options: ProofOptions, topics: int) -> Path:
    """Make a corpus with the user's command."""
    options.note(f"making {topics:,} topics")
    corpus = options.out / "topics"
    arguments = ["--topics", str(topics), "--namespaces", str(topics // TOPICS_PER_NAMESPACE)]
    command = [sys.executable, "-m", "loadgen", "topics", "--json"]
    made = subprocess.run(
        [*command, *arguments, "--out", str(corpus.resolve())],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode or json.loads(made.stdout)["topics"] != topics:
        raise ProofError(f"the topics could not be made: {made.stderr.strip()}")
    return corpus


def _import_seconds(options: ProofOptions, corpus: Path) -> float:
    """Return the seconds of start and import, with a temporary database."""
    options.note("an import without a kill")
    database = options.out / "measured.sqlite"
    keys = {"metadataStoreUrl": f"sqlite:///{database.resolve()}"}
    started = time.perf_counter()
    settings = ClusterSettings(options.out, {}, keys, (corpus,))
    with running_server(settings.broker_launch(), IMPORT_SECONDS):
        seconds = time.perf_counter() - started
    for path in options.out.glob(f"{database.name}*"):
        path.unlink()
    return seconds


def _kill_during_start(settings: ClusterSettings, seconds: float) -> None:
    process = subprocess.Popen(
        settings.broker_launch().command(),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        time.sleep(seconds)
        process.kill()
    finally:
        stop(process)


def _check_whole_namespaces(
    settings: ClusterSettings, corpus: Path, share: float, result: ProofResult
) -> None:
    """Check that after a kill each namespace is complete or absent."""
    with running_server(settings.broker_launch()) as broker:
        found = asyncio.run(_listings(broker, expectations(corpus)))
    whole = sum(right(expected, names) for expected, names in found)
    absent = sum(not names for _, names in found)
    result.figures[f"whole_namespaces_after_a_kill_at_{share:.0%}"] = whole
    result.check(
        f"killed at {share:.0%}",
        whole + absent == len(found),
        f"killed at {share:.0%} of an import: {whole} of {len(found)} namespaces are whole, "
        f"{absent} absent, {len(found) - whole - absent} torn",
    )


def _check_everything(broker: ServerProcess, corpus: Path, result: ProofResult) -> None:
    """Check that every namespace is listed with its number of topics and their hash."""
    found = asyncio.run(_listings(broker, expectations(corpus)))
    good = sum(right(expected, names) for expected, names in found)
    topics = sum(len(names) for _, names in found)
    result.check(
        "everything is there",
        good == len(found),
        f"{good} of {len(found)} namespaces are listed right, {topics:,} topics in all",
    )


def right(expected: Namespace, names: tuple[str, ...]) -> bool:
    """Return whether names match the manifest of a namespace."""
    return len(names) == expected.topics and topics_hash(names) == expected.hash


async def _listings(
    broker: ServerProcess, namespaces: list[Namespace]
) -> list[tuple[Namespace, tuple[str, ...]]]:
    async with PulsarClient(broker.service_url) as client:
        return [
            (expected, (await client.topics_of_namespace(expected.name)).topics)
            for expected in namespaces
        ]
