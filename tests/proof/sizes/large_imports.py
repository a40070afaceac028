"""Ten million topics in a thousand namespaces, from the Spark job's Parquet: memory and minutes.

Into memory, the judged bound is names and 40 bytes a topic with two or more properties, and 300 MB
above that during the import. Into SQLite the figures are only reported.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.processes import ROOT
from client.pulsar_client import PulsarClient
from loadgen.places.server_process import ServerProcess, running_server
from loadgen.topics.manifest import Manifest, read_manifest
from tests.proof.process_memory import peak_resident_bytes, resident_bytes
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.proof.servers import ClusterSettings, expectations
from tests.proof.sizes.imports import right

TOPICS, QUICK_TOPICS = 10_000_000, 200_000
TOPICS_PER_NAMESPACE = 10_000
BYTES_PER_TOPIC = 40
IMPORTING_BYTES = 300_000_000
READY_SECONDS = 7_200.0


def prove(options: ProofOptions) -> ProofResult:
    topics = QUICK_TOPICS if options.quick else TOPICS
    result = ProofResult({"topics": topics})
    corpus = _make_topics(options, topics, result)
    manifest = read_manifest(corpus)
    result.figures["name_bytes"] = manifest.name_bytes
    _prove_import(options, corpus, "memory", {"metadataStoreUrl": "memory:local"}, result)
    _judge_memory(manifest, result, quick=options.quick)
    database = options.out / "topics.sqlite"
    for path in options.out.glob(f"{database.name}*"):
        path.unlink()
    keys = {"metadataStoreUrl": f"sqlite:///{database.resolve()}"}
    _prove_import(options, corpus, "sqlite", keys, result)
    _report_sqlite(database, result)
    database.unlink()
    return result


def _make_topics(options: ProofOptions, topics: int, result: ProofResult) -> Path:
    """Make the corpus with the Spark job; quick: without Java."""
    place = "processes" if options.quick else "spark"
    options.note(f"making {topics:,} topics ({place})")
    corpus = options.out / "topics"
    words = ["--topics", str(topics), "--namespaces", str(topics // TOPICS_PER_NAMESPACE)]
    command = [sys.executable, "-m", "loadgen", "topics", "--place", place, "--json"]
    made = subprocess.run(
        [*command, *words, "--out", str(corpus.resolve())],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise ProofError(f"the topics could not be made: {made.stderr.strip()}")
    result.figures["corpus"] = json.loads(made.stdout)
    return corpus


def _prove_import(
    options: ProofOptions, corpus: Path, store: str, keys: Mapping[str, str], result: ProofResult
) -> None:
    options.note(f"importing ({store})")
    settings = ClusterSettings(options.out / store, {}, keys, (corpus,))
    started = time.perf_counter()
    with running_server(settings.broker_launch(), READY_SECONDS) as broker:
        figures = {
            "ready_seconds": time.perf_counter() - started,
            "resident_bytes": resident_bytes(broker.pid),
            "peak_resident_bytes": peak_resident_bytes(broker.pid),
        }
        options.note(f"asking for everything ({store})")
        namespaces, good, listed = asyncio.run(_ask_for_everything(broker, corpus))
        figures["resident_bytes_after_listings"] = resident_bytes(broker.pid)
    result.figures[store] = figures
    result.check(
        f"{store}: everything is there",
        good == namespaces,
        f"{store}: {good:,} of {namespaces:,} namespaces are listed right, {listed:,} topics",
    )


async def _ask_for_everything(broker: ServerProcess, corpus: Path) -> tuple[int, int, int]:
    """List every namespace; return the number of namespaces, right listings and topics."""
    expected, good, listed = expectations(corpus), 0, 0
    async with PulsarClient(broker.service_url) as client:
        for one in expected:
            names = (await client.topics_of_namespace(one.name)).topics
            good += right(one, names)
            listed += len(names)
    return len(expected), good, listed


def _judge_memory(manifest: Manifest, result: ProofResult, *, quick: bool) -> None:
    found = result.figures["memory"]
    allowed = manifest.name_bytes + BYTES_PER_TOPIC * manifest.topics
    beside = (found["resident_bytes"] - manifest.name_bytes) / manifest.topics
    result.check(
        "memory: after the import",
        quick or found["resident_bytes"] <= allowed,
        f"memory: the broker holds {found['resident_bytes'] / 1e6:,.0f} MB after the import, "
        f"allowed are {allowed / 1e6:,.0f} MB: {manifest.name_bytes / 1e6:,.0f} MB of names and "
        f"{BYTES_PER_TOPIC} B a topic; beside the names it holds {beside:.1f} B a topic, "
        "the process itself included",
    )
    allowed += IMPORTING_BYTES
    result.check(
        "memory: during the import",
        quick or found["peak_resident_bytes"] <= allowed,
        f"memory: at most {found['peak_resident_bytes'] / 1e6:,.0f} MB during the import, allowed "
        f"are {allowed / 1e6:,.0f} MB",
    )
    result.check(
        "memory: minutes",
        True,
        f"memory: {manifest.topics:,} topics in {len(manifest.namespaces):,} namespaces were "
        f"there after {found['ready_seconds'] / 60:.1f} minutes "
        f"({manifest.topics / found['ready_seconds']:,.0f} a second)",
    )


def _report_sqlite(database: Path, result: ProofResult) -> None:
    found, topics = result.figures["sqlite"], result.figures["topics"]
    file_bytes = database.stat().st_size
    found["file_bytes"] = file_bytes
    result.check(
        "sqlite: minutes",
        True,
        f"sqlite: the same were there after {found['ready_seconds'] / 60:.1f} minutes "
        f"({topics / found['ready_seconds']:,.0f} a second); {file_bytes / 1e6:,.0f} MB on disk, "
        f"{found['resident_bytes'] / 1e6:,.0f} MB in memory, at most "
        f"{found['peak_resident_bytes'] / 1e6:,.0f} MB during the import, "
        f"{found['resident_bytes_after_listings'] / 1e6:,.0f} MB after every namespace was listed",
    )
