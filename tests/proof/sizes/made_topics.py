"""A hundred million topics made in under five minutes, by Spark and by plain processes.

Both make the same manifest. Some namespaces are read back and hashed in plain Python, without code
of the generator.
"""

import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.processes import ROOT
from loadgen.topics.corpus import Corpus, open_corpus
from proto.topic_hash import topics_hash
from tests.proof.result import ProofError, ProofOptions, ProofResult

TOPICS, QUICK_TOPICS = 100_000_000, 1_000_000
TOPICS_PER_NAMESPACE = 10_000
MOST_SECONDS = 300.0
FILES_READ_BACK = 5
BYTES_NEEDED_PER_TOPIC = 25
"""On the disk, for both corpora together."""


def prove(options: ProofOptions) -> ProofResult:
    """Make both corpora; delete their files at the end."""
    topics = QUICK_TOPICS if options.quick else TOPICS
    free = shutil.disk_usage(options.out).free
    if free < topics * BYTES_NEEDED_PER_TOPIC:
        raise ProofError(f"the disk has {free / 1e9:.1f} GB left, which is too little")
    result = ProofResult({"topics": topics})
    folders = {place: options.out / place for place in ("spark", "processes")}
    try:
        corpora = {
            place: _make(options, topics, place, out, result) for place, out in folders.items()
        }
        same = corpora["spark"].manifest == corpora["processes"].manifest
        result.check("same", same, "the manifests of both are the same, namespace by namespace")
        options.note("reading some back")
        _check_read_back(corpora["spark"], result)
    finally:
        for out in folders.values():
            shutil.rmtree(out, ignore_errors=True)
    return result


def _make(options: ProofOptions, topics: int, place: str, out: Path, result: ProofResult) -> Corpus:
    """Make a corpus with the user's command."""
    options.note(f"making {topics:,} topics ({place})")
    words = ["--topics", str(topics), "--namespaces", str(topics // TOPICS_PER_NAMESPACE)]
    command = [sys.executable, "-m", "loadgen", "topics", "--place", place, "--json"]
    made = subprocess.run(
        [*command, *words, "--out", str(out.resolve())],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise ProofError(f"the topics could not be made: {made.stderr.strip()}")
    told: dict[str, Any] = json.loads(made.stdout)
    seconds = told["seconds"]
    # Of all children so far, and of the largest process among them.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    result.figures[place] = {**told, "largest_process_bytes_so_far": peak}
    result.check(
        f"{place}: in time",
        options.quick or seconds < MOST_SECONDS,
        f"{place}: {told['topics']:,} topics in {seconds:.0f} s ({topics / seconds:,.0f} a "
        f"second), {told['file_bytes'] / 1e6:,.0f} MB of Parquet; at most {MOST_SECONDS:.0f} s",
    )
    return open_corpus(out)


def _check_read_back(corpus: Corpus, result: ProofResult) -> None:
    step = max(1, len(corpus.files) // FILES_READ_BACK)
    names: dict[str, list[str]] = {}
    for file in corpus.files[::step]:
        table = pq.read_table(file, columns=["namespace", "topic"])
        for namespace, topic in zip(*(column.to_pylist() for column in table.columns), strict=True):
            names.setdefault(namespace, []).append(topic)
    entries = corpus.manifest.namespaces
    wrong = [
        name
        for name, topics in names.items()
        if (len(set(topics)), topics_hash(topics)) != (entries[name].topics, entries[name].hash)
    ]
    what = f"{wrong[0]} is not what the manifest says" if wrong else "as the manifest says"
    result.check("read back", not wrong, f"{len(names):,} namespaces were read back: {what}")
