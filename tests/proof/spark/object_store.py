"""An object store in place of a folder: topics and runs are written, read back, interrupted.

The store is a local S3 server (moto's, of a Python named by ``S3_SERVER_PYTHON``). Tasks in
processes and in Spark write the same rows as to a folder; leftovers of a kill are not a corpus or a
run, and the next replaces them. DuckDB and Spark read them: loadgen's data source in any session,
Hadoop's s3a where its package is available.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyarrow import fs

from benchmarks.processes import ROOT
from loadgen.errors import LoadgenError
from loadgen.places.server_process import running_server, stop
from loadgen.results.results import Results
from loadgen.spark.session import SparkError, SparkSettings, spark_session
from loadgen.stored import placed
from loadgen.topics.corpus import open_corpus
from loadgen.topics.data_source import register
from tests.proof.commands import LOADGEN, run_loadgen, wait_until
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import ClusterSettings

PYTHON = os.environ.get("S3_SERVER_PYTHON", sys.executable)
PORT = int(os.environ.get("S3_PROOF_PORT", "22300"))
HADOOP = os.environ.get("S3_PROOF_PACKAGES", "org.apache.hadoop:hadoop-aws:3.5.0")
TOPICS, NAMESPACES, KILLED_TOPICS = 200_000, 40, 4_000_000
BUCKET = "floodgate"
WAIT_SECONDS = 120.0
_ANSWERED = re.compile(r"measuring: .* [1-9]\d* answered")
"""A line of a run's progress once its clients have answers."""
ENDPOINT = f"http://127.0.0.1:{PORT}"
STORE = {
    "AWS_ENDPOINT_URL": ENDPOINT,
    "AWS_ACCESS_KEY_ID": "rehearsal",
    "AWS_SECRET_ACCESS_KEY": "rehearsal-secret",
    "AWS_REGION": "us-east-1",
}
_DOCUMENT = """\
name: stored
description: Clients come back within five seconds.
seed: 7
clients:
  - {name: all, do: list, count: 60, every: 4s, arrive: {kind: poisson, rate: 12}}
phases: {measure: 8s, drain: 4s}
"""
_FIRST = "SELECT client, min(due) AS due FROM requests GROUP BY client ORDER BY client"
_SLOWEST = "SELECT namespace, max(response_seconds) AS slowest FROM requests GROUP BY namespace"


def prove(options: ProofOptions) -> ProofResult:
    """Make topics and runs in a store, as in a folder, and read them back."""
    result = ProofResult()
    asked = [PYTHON, "-c", "import moto.server"]
    if subprocess.run(asked, check=False, capture_output=True).returncode:
        sentence = f"skipped: {PYTHON} has no S3 server (pip install 'moto[server]')"
        result.check("skipped", True, sentence)
        return result
    with patch.dict(os.environ, STORE), _s3_server(options.out):
        _prove_topics(options, result)
        _prove_runs(options, result)
        _prove_spark(options, result)
    return result


@contextmanager
def _s3_server(out: Path) -> Iterator[None]:
    out.mkdir(parents=True, exist_ok=True)
    command = [PYTHON, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(PORT)]
    with (out / "s3.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until(f"the S3 server of {out / 's3.log'}", _bucket_made, WAIT_SECONDS)
            yield
        finally:
            stop(process)


def _bucket_made() -> bool:
    try:
        made = fs.S3FileSystem(
            endpoint_override=ENDPOINT, region="us-east-1", allow_bucket_creation=True,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=1),
        )  # fmt: skip
        made.create_dir(BUCKET)
    except OSError:
        return False
    return True


def _place(name: str) -> Path:
    return placed(Path(f"s3a://{BUCKET}/{name}"))


def _killed(
    words: Sequence[Any], begun: Callable[[str], object], by: signal.Signals, log: Path
) -> int:
    """Send a signal to a command as soon as it has begun, and return its exit code.

    Args:
        words: The command.
        begun: Returns, by the command's output, whether it has begun.
        by: The signal.
        log: File of the command's output.
    """
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [*LOADGEN, *map(str, words)], cwd=ROOT, stdout=output, stderr=output
        ) as process,
    ):
        wait_until(
            f"the begin of loadgen {words[0]}",
            lambda: process.poll() is not None or begun(log.read_text(encoding="utf-8")),
            WAIT_SECONDS,
        )
        process.send_signal(by)
        return process.wait(WAIT_SECONDS)


def _refusal(of: Callable[[], object]) -> str:
    try:
        of()
    except LoadgenError as error:
        return str(error)
    return ""


def _rows(directory: Path) -> list[dict[str, Any]]:
    corpus = open_corpus(directory)
    found = []
    for file in corpus.files:
        with file.open("rb") as opened:
            found += [hash(opened.read())]
    return [corpus.manifest.model_dump(), *found]


def _prove_topics(options: ProofOptions, result: ProofResult) -> None:
    words = ["topics", "--topics", TOPICS, "--namespaces", NAMESPACES, "--json", "--out"]
    here, seconds = options.out / "topics", {}
    for name, place, more in (
        ("folder", here, ()),
        ("processes", _place("processes"), ()),
        ("Spark", _place("topics"), ("--master", "local[2]")),
    ):
        options.note(f"making topics ({name})")
        seconds[name] = json.loads(run_loadgen([*words, place, *more]).stdout)["seconds"]
    result.figures["topics_seconds"] = seconds
    result.check(
        "topics",
        _rows(here) == _rows(_place("processes")) == _rows(_place("topics")),
        f"{TOPICS:,} topics are the same, byte by byte, in a folder, and in the store by processes "
        f"and by Spark ({', '.join(f'{name} {taken:.1f} s' for name, taken in seconds.items())})",
    )
    options.note("killing a job that makes topics")
    place = _place("processes")
    many = ["topics", "--topics", KILLED_TOPICS, "--namespaces", NAMESPACES, "--out", place]

    def begun(_: str) -> bool:
        return (place / "part-00005.parquet").is_file()  # the older corpus has four files

    _killed(many, begun, signal.SIGKILL, options.out / "killed.log")
    left, said = len([*place.iterdir()]), _refusal(lambda: open_corpus(place))
    run_loadgen([*words, place])
    result.check(
        "killed topics",
        "has no _manifest.json" in said and _rows(here) == _rows(place),
        f"a killed job left {left} files, which are no corpus ({said}); the next one replaced them",
    )
    made = run_loadgen(["topics", "--from", _place("topics"), "--out", _place("mine"), "--json"])
    import_said = run_loadgen(["load", _place("topics")], allowed=(2,)).stderr
    result.check(
        "as a list",
        json.loads(made.stdout)["topics"] == TOPICS and "a broker imports files" in import_said,
        f"it is read as a list from there; an import is refused: {import_said.strip()}",
    )


def _prove_runs(options: ProofOptions, result: ProofResult) -> None:
    document = (options.out / "stored.yaml").resolve()
    document.write_text(_DOCUMENT, encoding="utf-8")
    runs, store = options.out.resolve() / "runs", _place("runs")
    settings = ClusterSettings(
        options.out, {}, {"metadataStoreUrl": "memory:local"}, (options.out / "topics",)
    )
    with running_server(settings.broker_launch(), WAIT_SECONDS) as broker:
        run = ["run", document, "--service-url", broker.service_url, "--tasks", "2", "--admin-url"]
        run += [f"broker={broker.web_url},{broker.pid}", "--set"]
        run += [f"topics.corpus={_place('topics')}"]
        for name, place, more in (
            ("folder", runs, ()),
            ("processes", store, ()),
            ("spark", store, ("--master", "local[2]")),
        ):
            options.note(f"a run ({name})")
            called = ["--name", name, "--set", f"description=In {name}"]  # or repeats
            run_loadgen([*run, "--out", place, *called, *more], allowed=(0, 98))
        options.note("interrupting runs")
        begun = store / "killed"
        words, log = [*run, "--out", store, "--name", "killed"], options.out / "killed.log"
        _killed(words, _ANSWERED.search, signal.SIGKILL, log)
        said = _refusal(lambda: Results.open(begun))
        code = _killed(words, _ANSWERED.search, signal.SIGINT, log)
    made = (runs / "folder", store / "processes", store / "spark")
    told = [_asked_of(directory, _FIRST) for directory in made]
    wrong = _asked_of(store / "spark", "SELECT count(*) AS n FROM requests WHERE outcome = 'wrong'")
    result.check(
        "runs",
        told[0] == told[1] == told[2] and wrong == [{"n": 0}],
        f"{len(told[0])} clients begin at the same moments in a folder and in the store, by "
        "processes and by Spark; no answer is wrong",
    )
    interrupted = _asked_of(begun, "SELECT count(*) AS n FROM requests")[0]["n"]
    result.check(
        "interrupted runs",
        bool(said) and code == 130 and interrupted > 0,
        f"a killed run is none ({said}); the next one took its place, and a Ctrl-C left its "
        f"{interrupted} requests",
    )
    sql = run_loadgen(["sql", store / "processes", store / "spark", "by-group-operation", "--csv"])
    run_loadgen(["report", store / "spark"])
    page = (store / "spark" / "index.html").read_bytes()
    compared = run_loadgen(["compare", store / "processes", store / "spark", "--force"])
    result.check(
        "read back",
        len(sql.stdout.splitlines()) == 3 and len(page) > 10_000 and "all" in compared.stdout,
        f"loadgen sql, report and compare read the runs there; the page has {len(page):,} bytes",
    )
    nowhere = [each for each in (ROOT / "s3a:", Path("s3a:")) if each.exists()]
    result.check("no folder of that name", not nowhere, "nothing was written to a folder s3a: here")


def _asked_of(directory: Path, text: str) -> list[dict[str, Any]]:
    with Results.open(directory) as results:
        return results.sql(text)


def _prove_spark(options: ProofOptions, result: ProofResult) -> None:
    options.note("reading in Spark")
    with spark_session(SparkSettings("object_store", cores=2)) as session:
        register(session)
        read = session.read.format("floodgate").load(str(_place("topics")))
        own = read.groupBy("namespace").count().collect()
    manifest = open_corpus(_place("topics")).manifest.namespaces
    result.check(
        "Spark, by loadgen's data source",
        dict(own) == {name: entry.topics for name, entry in manifest.items()},
        f"a session without anything of S3 reads {TOPICS:,} topics of {len(own)} namespaces",
    )
    options.note("reading in Spark by s3a")
    try:
        with spark_session(SparkSettings("s3a", cores=2, conf=_HADOOP)) as session:
            topics = session.read.parquet(f"s3a://{BUCKET}/topics").count()
            session.read.parquet(f"s3a://{BUCKET}/runs/spark/requests").createTempView("requests")
            found = {tuple(row) for row in session.sql(_SLOWEST).collect()}
    except SparkError as error:
        result.check("Spark, by s3a", True, f"skipped: {HADOOP} cannot be used: {error}")
        return
    told = {tuple(row.values()) for row in _asked_of(_place("runs") / "spark", _SLOWEST)}
    result.check(
        "Spark, by s3a",
        (topics, found) == (TOPICS, told),
        f"Hadoop's s3a reads {topics:,} topics, and the slowest answers of {len(found)} namespaces "
        "as DuckDB finds them",
    )


_HADOOP = (
    ("spark.jars.packages", HADOOP),
    ("spark.hadoop.fs.s3a.endpoint", ENDPOINT),
    ("spark.hadoop.fs.s3a.path.style.access", "true"),
    ("spark.hadoop.fs.s3a.access.key", STORE["AWS_ACCESS_KEY_ID"]),
    ("spark.hadoop.fs.s3a.secret.key", STORE["AWS_SECRET_ACCESS_KEY"]),
)
