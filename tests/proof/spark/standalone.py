"""One seed, one load: a standalone cluster, local sessions and plain processes do the same.

The package is made, a cluster is started (one master, two workers, all separate processes), and
spark-submit makes a corpus and runs a storm of client families on it. The same is done with
``local[1]``, ``local[2]`` and without Spark. Topics must be the same, and so must the requests of
each client: times, contents and kinds; the servers' answers are not compared.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from loadgen.places.server_process import ServerProcess, running_server
from loadgen.results.questions import QUERIES
from loadgen.results.results import Results
from loadgen.spark.session import SparkSettings, spark_session
from loadgen.topics.corpus import open_corpus
from tests.proof.commands import LOADGEN, run_loadgen
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import ClusterSettings
from tests.proof.spark.cluster import SPARK_HOME, StandaloneCluster, standalone_cluster
from tests.support.runs.in_spark import register_in_spark, spark_rows

PORT = int(os.environ.get("SPARK_PROOF_PORT", "22200"))
TOPICS, NAMESPACES = 100_000, 40
ARRIVAL_SECONDS = 5.0
CLIENTS, QUICK_CLIENTS = 400, 60
COMMAND_SECONDS = 300.0
_FAMILIES = ("polite", "java-watch", "java-poll", "cpp", "go")
SCHEDULE = """SELECT client, r.group AS group, family, namespace, min(due) AS due FROM requests r
  WHERE operation = 'list' GROUP BY client, r.group, family, namespace ORDER BY client"""
_JOINED = """SELECT a.run, a.second, a.answered, b.resident FROM (
    SELECT run, floor(done) AS second, count(*) AS answered FROM requests
    WHERE outcome = 'answered' GROUP BY run, floor(done)) a
  JOIN (SELECT run, floor(seconds) AS second, max(value) AS resident FROM samples
    WHERE process = 'broker' AND figure = 'resident' GROUP BY run, floor(seconds)) b
  ON a.run = b.run AND a.second = b.second"""
_DOCUMENT = """\
name: standalone
description: Clients of five families come back within five seconds.
seed: 7
clients:
{groups}
phases: {{measure: 8s, drain: 4s}}
"""


@dataclass(frozen=True)
class _Way:
    """A place where loadgen runs: its name, and its arguments."""

    name: str
    arguments: tuple[str, ...]
    tasks: int
    cluster: StandaloneCluster | None = None


def prove(options: ProofOptions) -> ProofResult:
    """Run the same in all four places and compare."""
    result = ProofResult()
    options.note("packing")
    where = str((options.out / "package").resolve())
    packed = json.loads(run_loadgen(["spark", "package", "--out", where, "--json"]).stdout)
    result.figures["archive_bytes"] = packed["archive_bytes"]
    options.note("starting a master and two workers")
    with standalone_cluster(options.out / "cluster", PORT) as cluster:
        ways = [
            _Way("cluster", ("--place", "spark"), 2, cluster),
            _Way("local[2]", ("--place", "spark", "--master", "local[2]"), 2),
            _Way("local[1]", ("--place", "spark", "--master", "local[1]"), 1),
            _Way("processes", ("--place", "processes"), 2),
        ]
        corpora = {way.name: _topics(options, way, packed) for way in ways}
        _compare_topics(corpora, result)
        corpus = corpora["processes"]
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
    words = [str(document.resolve()), "--service-url", broker.service_url]
    words += ["--set", f"topics.corpus={corpus}"]
    words += ["--admin-url", f"broker={broker.web_url},{broker.pid}"]
    words += ["--tasks", str(way.tasks), "--json", *where]
    # A busy machine starts clients late (98), which this proof does not judge.
    _loadgen(way, packed, ["run", *words], allowed=(0, 98))
    return options.out / "runs" / f"on-{way.name}"


def _document(clients: int) -> str:
    each = clients // len(_FAMILIES)
    arrivals = f"arrive: {{kind: poisson, rate: {each / ARRIVAL_SECONDS:g}}}"
    common = f"count: {each}, period: 10s, {arrivals}"
    groups = "\n".join(
        f"  - {{name: {family}, do: discover, library: {family}, {common}}}" for family in _FAMILIES
    )
    return _DOCUMENT.format(groups=groups)


def _loadgen(
    way: _Way, packed: dict[str, Any], words: Sequence[str], allowed: Sequence[int] = (0,)
) -> None:
    """Run loadgen as a user would: with spark-submit on the cluster, else by its command."""
    command: Sequence[str] = LOADGEN
    environment: Mapping[str, str] = os.environ
    if way.cluster is not None:
        submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", way.cluster.url]
        command = [
            *submit,
            "--load-spark-defaults",
            "--properties-file",
            packed["conf"],
            packed["job"],
        ]
        # Only the driver runs in this environment; executors unpack the packed files.
        environment = way.cluster.environment
    run_loadgen([*words, *way.arguments], allowed, command, environment, COMMAND_SECONDS)


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
    schedules = {name: rows_of(path, SCHEDULE) for name, path in runs.items()}
    first = next(iter(schedules))
    different = [name for name, each in schedules.items() if each != schedules[first]]
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
    result.figures["runs"] = {
        name: {"total": each["total"], "generator": each["generator"]}
        for name, each in summaries.items()
    }
    wrong = {name: each["total"]["wrong"] for name, each in summaries.items()}
    result.check(
        "every answer right",
        not any(wrong.values()) and all(each["total"]["answered"] for each in summaries.values()),
        "answered: "
        + ", ".join(f"{name} {each['total']['answered']:,}" for name, each in summaries.items())
        + "; none of them wrong",
    )


def rows_of(directory: Path, text: str) -> list[dict[str, Any]]:
    """Query a run."""
    with Results.open(directory) as results:
        return results.sql(text)


def _ask_runs(runs: Sequence[Path], result: ProofResult) -> None:
    """Query the same figures in Spark SQL, and clients and servers on one time axis."""
    found = {}
    with spark_session(SparkSettings("spark_standalone", cores=1)) as session:
        for path in runs:
            register_in_spark(session, [path])
            (row,) = spark_rows(session, QUERIES["all"].sql)
            found[path.name] = row["p99"]
        register_in_spark(session, runs)
        joined = spark_rows(session, _JOINED)
    told = {path.name: rows_of(path, QUERIES["all"].sql)[0]["p99"] for path in runs}
    result.check("SQL", found == told, f"Spark SQL finds the p99 of all {len(told)} reports")
    both = {row["run"] for row in joined if row["answered"] and row["resident"]}
    result.check(
        "joined",
        len(both) == len(runs),
        f"{len(joined)} seconds of {len(both)} runs have both answers and the broker's memory",
    )
