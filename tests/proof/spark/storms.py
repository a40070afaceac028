"""Topics and a storm on separate hosts, and the same on a single host: rows, clocks, schedule."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.processes import ROOT
from loadgen.topics.corpus import open_corpus
from tests.proof.result import ProofError
from tests.proof.spark.fast_clock import AHEAD_SECONDS, faketime
from tests.proof.spark.play import Play, require
from tests.proof.spark.stage import BACKLOG, FAST, PORTS, WORKERS
from tests.proof.spark.standalone import SCHEDULE, rows_of

TOGETHER_SECONDS = 0.05
"""Largest distance of the tasks' first requests at the servers."""
TOPICS, NAMESPACES = 20_000, 41
LARGE_CLIENTS, LARGE_TASKS = 30_000, 200
_ARRIVALS_SECONDS = 120.0
_STORM = """\
name: hosts
description: A client of each task at once, and four families that come back in ten seconds.
seed: 7
topics: {{corpus: {corpus}}}
clients:
  - {{name: first, do: list, count: {tasks}, namespaces: [0, 1]}}
{groups}
phases: {{measure: 14s, drain: 4s}}
"""
_FAMILIES = ("polite", "java-poll", "cpp", "go")


def make_topics(play: Play) -> None:
    """Make the topics on the cluster and on one host, and start the servers with them."""
    play.options.note("topics on the cluster, and on one of its hosts")
    words = ["topics", "--topics", str(TOPICS), "--namespaces", str(NAMESPACES), "--json"]
    cluster, local = play.corpus, play.out / "topics-local"
    there = play.stage.submit("topics", *words, "--out", str(cluster), "--place", "spark").ended()
    require(there)
    here = ["--out", str(local), "--master", "local[2]"]
    require(play.stage.local("topics-local", "servers", *words, *here).ended())
    rows = [[pq.read_table(file) for file in open_corpus(each).files] for each in (cluster, local)]
    same = rows[0] == rows[1] and open_corpus(cluster).manifest == open_corpus(local).manifest
    play.result.check(
        "the same topics",
        same,
        f"{TOPICS:,} topics are {'' if same else 'not '}the same, row by row, on three hosts "
        f"and by local[2]; {there.seconds:.0f} s with spark-submit",
    )
    play.stage.start_servers(cluster)


def play_storm(play: Play) -> None:
    """Play the storm on the cluster and on one host."""
    document = play.written("storm.yaml", _storm(play.corpus, play.clients, play.tasks))
    _dry_runs(play, document)
    play.options.note(f"a storm of {play.clients:,} clients by {play.tasks} tasks")
    namespace = next(iter(open_corpus(play.corpus).manifest.namespaces))
    recorder = _recorder(play, namespace)
    run = play.run("storm", document)
    ended = run.ended()
    heard, _ = recorder.communicate(timeout=_ARRIVALS_SECONDS)
    require(ended, 0, 98)
    _judge_clocks(play, "storm", json.loads(heard))
    lines = [line for line in ended.said.splitlines() if line.startswith("measuring: ")]
    play.result.check(
        "progress",
        len(lines) > 3,
        f"{len(lines)} lines of progress on the driver, the last: {lines[-1] if lines else '-'}",
    )
    play.options.note("the same storm by local[2]")
    words = [*play.words("storm-local", document, 2), "--master", "local[2]"]
    local = play.stage.local("storm-local", "servers", *words).ended()
    require(local, 0, 98)
    schedules = [rows_of(play.out / "runs" / name, SCHEDULE) for name in ("storm", "storm-local")]
    play.result.check(
        "the same schedule",
        schedules[0] == schedules[1] and len(schedules[0]) == play.clients,
        f"{len(schedules[0]):,} clients begin at the same moments with the same namespaces on "
        f"three hosts and by local[2]; exit codes {ended.code} and {local.code}",
    )


def _dry_runs(play: Play, document: Path) -> None:
    """Check that a dry run fails on the driver's kernel alone, and passes on the cluster."""
    large = play.written("large.yaml", _storm(play.corpus, LARGE_CLIENTS, LARGE_TASKS))
    told = []
    for path, tasks in ((document, play.tasks), (large, LARGE_TASKS)):
        words = [*play.words("dry", path, tasks), "--dry-run"]
        here = play.stage.local("dry-here", "driver", *words).ended()
        there = play.stage.local(
            "dry-there", "driver", *words, "--master", play.stage.master_url
        ).ended()
        told.append((here.code, there.code))
    play.result.check(
        "a small driver",
        told[1] == (2, 0) and told[0][1] == 0 and (play.options.quick or told[0][0] == 2),
        f"with {PORTS} ports and a backlog of {BACKLOG} on the driver's host: exit codes of "
        f"dry runs there and on the cluster: {told[0]} for {play.clients:,} clients, "
        f"{told[1]} for 30,000 of 200 tasks",
    )


def _recorder(play: Play, namespace: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "tests.proof.spark.arrivals", namespace]
    words += [str(play.tasks), str(_ARRIVALS_SECONDS)]
    command = play.stage.hosts["servers"].command(words, {"PYTHONPATH": str(ROOT)}, ROOT)
    recorder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert recorder.stderr is not None
    if recorder.stderr.readline() != "listening\n":
        raise ProofError(f"nobody can listen on a host: {recorder.stderr.read()[-300:]}")
    return recorder


def _judge_clocks(play: Play, name: str, heard: list[tuple[float, str]]) -> None:
    told = play.manifest(name)
    tasks = told["tasks"]
    ahead = [each["clock_ahead_seconds"] for each in tasks]
    fast = [each for each in ahead if abs(each) > AHEAD_SECONDS / 2]
    others = [abs(each) for each in ahead if each not in fast]
    expected = play.tasks // len(WORKERS) if faketime() else 0
    play.result.check(
        "the clock that is ahead",
        len(fast) == expected
        and all(abs(each - AHEAD_SECONDS) < TOGETHER_SECONDS for each in fast)
        and max(others) < TOGETHER_SECONDS,
        (
            f"{len(fast)} tasks of {FAST} report {min(fast, default=0):.4f} to "
            f"{max(fast, default=0):.4f} s ahead, the others at most {max(others):.4f} s"
            if faketime()
            else "libfaketime is not installed (apt-get install faketime), so no clock is ahead"
        )
        + f"; known within {max(each['clock_doubt_seconds'] for each in tasks) * 1e3:.2f} ms",
    )
    moments = sorted(moment for moment, _ in heard)
    apart = moments[-1] - moments[0] if moments else float("inf")
    late = moments[-1] - tasks[0]["t0_epoch_seconds"] if moments else float("inf")
    senders = Counter(sender for _, sender in heard)
    each_host = {host.address for key, host in play.stage.hosts.items() if key in WORKERS}
    play.result.check(
        "a common start",
        len(heard) == play.tasks and apart <= TOGETHER_SECONDS and senders.keys() == each_host,
        f"the first requests of {len(heard)} tasks of {len(senders)} hosts came to the servers' "
        f"kernel within {apart * 1e3:.1f} ms, the last {late * 1e3:.1f} ms after the start",
    )
    play.result.figures["clocks"] = {
        "ahead_seconds": ahead,
        "first_sends_apart_seconds": apart,
        "start_errors_seconds": [each["start_error_seconds"] for each in tasks],
    }


def _storm(corpus: Path, clients: int, tasks: int) -> str:
    each = (clients - tasks) // len(_FAMILIES)
    arrivals = f"arrive: {{kind: poisson, rate: {each / 10:g}}}"
    counts = [each] * (len(_FAMILIES) - 1)
    counts.append(clients - tasks - sum(counts))
    groups = "\n".join(
        f"  - {{name: {family}, do: discover, library: {family}, count: {count}, "
        f"namespaces: [1, {NAMESPACES}], {arrivals}}}"
        for family, count in zip(_FAMILIES, counts, strict=True)
    )
    return _STORM.format(corpus=corpus, tasks=tasks, groups=groups)
