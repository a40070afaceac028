"""One seed, one load: a standalone cluster, local sessions and plain processes do the same.

The package is made, a cluster is started (one master, two workers, all processes of their own),
and spark-submit makes a corpus and runs a storm of client families on it. The same is done with
``local[1]``, ``local[2]`` and without Spark. Topics must be the same, and so must who asks when,
for what, and how; what a server answers when is another matter.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from benchmarks.processes import ROOT
from loadgen.topics.corpus import open_corpus
from loadgen.places.server_process import running_server
from tests.proof.result import ProofError, ProofResult
from tests.proof.servers import ClusterSettings
from tests.proof.spark.cluster import SPARK_HOME, StandaloneCluster, standalone_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadgen.places.server_process import ServerProcess
    from tests.proof.result import ProofOptions

PORT = int(os.environ.get("SPARK_PROOF_PORT", "22200"))
TOPICS, NAMESPACES = 100_000, 40
ARRIVAL_SECONDS = 5.0
CLIENTS, QUICK_CLIENTS = 400, 60
COMMAND_SECONDS = 300.0
_FAMILIES = ("polite", "java-watch", "java-poll", "cpp", "go")
_SCHEDULE = ["client", "group", "family", "namespace", "intended_start_seconds"]
_DOCUMENT = """\
name: standalone
description: Clients of five families come back within five seconds.
kind: discovery
load:
  seed: 7
  groups:
{groups}
  phases: {{measure_seconds: 8s, drain_seconds: 4s}}
"""


@dataclass(frozen=True)
class _Way:
    """A place where loadgen runs: its name, and the arguments that choose it."""

    name: str
    arguments: tuple[str, ...]
    tasks: int
    cluster: StandaloneCluster | None = None


def prove(options: ProofOptions) -> ProofResult:
    """Do the same in all four places and compare."""
    result = ProofResult()
    options.note("packing")
    where = str((options.out / "package").resolve())
    packed = _answer_of([*_LOADGEN, "spark", "package", "--out", where, "--json"])
    result.figures["archive_bytes"] = packed["archive_bytes"]
    options.note("starting a master and two workers")
    with standalone_cluster(options.out / "cluster", PORT) as cluster:
        ways = [
            _Way("cluster", ("--executor", "spark"), 2, cluster),
            _Way("local[2]", ("--executor", "spark", "--master", "local[2]"), 2),
            _Way("local[1]", ("--executor", "spark", "--master", "local[1]"), 1),
            _Way("process", ("--executor", "process"), 2),
        ]
        corpora = {way.name: _topics(options, way, packed) for way in ways}
        _compare_topics(corpora, result)
        corpus = corpora["process"]
        settings = ClusterSettings(options.out, {}, {"metadataStoreUrl": "memory:local"}, (corpus,))
        with running_server(settings.broker_launch(), COMMAND_SECONDS) as broker:
            runs = {way.name: _storm(options, way, packed, broker, corpus) for way in ways}
        _compare_runs(runs, result)
        options.note("asking the runs in Spark SQL")
        _ask_runs(list(runs.values()), result)
        applications = cluster.applications()
        slots = [(each["name"], each["cores"], each["state"]) for each in applications]
        result.figures["applications"] = slots
        on_both = [each for each in slots if each[1] == 2 and each[2] == "FINISHED"]
        result.check(
            "on the cluster",
            len(on_both) == 2,
            f"{len(on_both)} of 2 applications ran on both workers to their end",
        )
    for corpus in corpora.values():
        shutil.rmtree(corpus, ignore_errors=True)
    return result


_LOADGEN = (sys.executable, "-m", "loadgen")


def _topics(options: ProofOptions, way: _Way, packed: dict[str, Any]) -> Path:
    options.note(f"making topics ({way.name})")
    out = (options.out / f"topics-{way.name}").resolve()
    words = ["--topics", str(TOPICS), "--namespaces", str(NAMESPACES), "--namespace-skew", "1"]
    _loadgen(way, packed, ["topics", *words, "--out", str(out), "--json"])
    return out


def _storm(
    options: ProofOptions, way: _Way, packed: dict[str, Any], broker: ServerProcess, corpus: Path
) -> Path:
    options.note(f"a storm ({way.name})")
    document = options.out / "standalone.yaml"
    document.write_text(_document(QUICK_CLIENTS if options.quick else CLIENTS), encoding="utf-8")
    where = ["--out", str((options.out / "runs").resolve()), "--name", f"on-{way.name}"]
    words = [str(document.resolve()), "--service-url", broker.service_url, "--corpus", str(corpus)]
    words += ["--broker-admin-url", broker.web_url]
    words += ["--tasks", str(way.tasks), "--json", *where]
    # A machine that is busy starts clients late (98); that is no part of this proof.
    _loadgen(way, packed, ["run", *words], allowed=(0, 98))
    return options.out / "runs" / f"on-{way.name}"


def _document(clients: int) -> str:
    each = clients // len(_FAMILIES)
    arrivals = f"arrivals: {{kind: poisson, per_second: {each / ARRIVAL_SECONDS:g}}}"
    common = f"clients: {each}, period_seconds: 10s, {arrivals}"
    groups = "\n".join(
        f"    - {{name: {family}, family: {family}, {common}}}" for family in _FAMILIES
    )
    return _DOCUMENT.format(groups=groups)


def _loadgen(
    way: _Way, packed: dict[str, Any], words: Sequence[str], allowed: Sequence[int] = (0,)
) -> None:
    """Run loadgen as a user would: with spark-submit on the cluster, else by its command."""
    command, environment = [*_LOADGEN], dict(os.environ)
    if way.cluster is not None:
        submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", way.cluster.url]
        command = [*submit, "--properties-file", packed["conf"], packed["job"]]
        # Only the driver runs in this environment; executors unpack what was packed.
        environment = dict(way.cluster.environment)
    done = subprocess.run(
        [*command, words[0], *words[1:], *way.arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=COMMAND_SECONDS,
    )
    if done.returncode not in allowed:
        last = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise ProofError(f"{way.name}: loadgen {words[0]} ended with {done.returncode}: {last}")


def _answer_of(command: Sequence[str]) -> Any:
    """Return the JSON that a command of loadgen prints."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ProofError(f"{' '.join(command[2:4])} failed: {done.stderr.strip()}")
    return json.loads(done.stdout)


def _compare_topics(corpora: dict[str, Path], result: ProofResult) -> None:
    opened = {name: open_corpus(path) for name, path in corpora.items()}
    rows = {name: [pq.read_table(file) for file in each.files] for name, each in opened.items()}
    first = next(iter(opened))
    different = [
        name
        for name, each in opened.items()
        if each.manifest != opened[first].manifest or rows[name] != rows[first]
    ]
    result.check(
        "the same topics",
        not different,
        f"{opened[first].manifest.topics:,} topics in {len(opened[first].manifest.namespaces)} "
        f"namespaces are the same, row by row: {', '.join(opened)}"
        + (f"; but not {', '.join(different)}" if different else ""),
    )


def _compare_runs(runs: dict[str, Path], result: ProofResult) -> None:
    schedules = {
        name: pq.read_table(path / "clients.parquet").select(_SCHEDULE).sort_by("client")
        for name, path in runs.items()
    }
    first = next(iter(schedules))
    different = [name for name, each in schedules.items() if not each.equals(schedules[first])]
    result.check(
        "the same schedule",
        not different,
        f"{len(schedules[first]):,} clients begin at the same moments, ask for the same namespaces "
        f"and belong to the same families: {', '.join(schedules)}"
        + (f"; but not {', '.join(different)}" if different else ""),
    )
    summaries = {
        name: json.loads((path / "summary.json").read_text()) for name, path in runs.items()
    }
    wanted = ("answered", "wrong", "latency_seconds", "start_error_seconds_max")
    result.figures["runs"] = {
        name: {key: each.get(key) for key in wanted} for name, each in summaries.items()
    }
    wrong = {name: each["wrong"] for name, each in summaries.items()}
    result.check(
        "every answer right",
        not any(wrong.values()) and all(each["answered"] for each in summaries.values()),
        "answered: "
        + ", ".join(f"{name} {each['answered']:,}" for name, each in summaries.items())
        + "; none of them wrong",
    )


def _ask_runs(runs: Sequence[Path], result: ProofResult) -> None:
    """Ask for the same figures in Spark SQL, and for clients and servers on one time axis."""
    words = [str(path) for path in runs]
    rows = _answer_of([*_LOADGEN, "sql", *words, "--query", "by-outcome", "--json"])
    found = {row["run"]: row["p99"] for row in rows if row["outcome"] == "answered"}
    told = {
        path.name: json.loads((path / "summary.json").read_text())["latency_seconds"]["p99"]
        for path in runs
    }
    close = all(abs(found.get(name, -1.0) - value) < 1e-5 for name, value in told.items())
    result.check("SQL", close, f"Spark SQL finds the p99 of all {len(told)} reports")
    joined = _answer_of([*_LOADGEN, "sql", *words, "--query", "timeline", "--json"])
    both = [row for row in joined if row["answered"] and row["broker_resident"]]
    result.check(
        "joined", bool(both), f"{len(both)} seconds have both answers and the broker's memory"
    )
