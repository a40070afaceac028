"""Virtual time is true: the same scenario in it and in real runs comes out the same."""

from __future__ import annotations

import statistics
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyarrow.parquet as pq

from loadgen.topics.corpus import write_corpus
from loadgen.topics.executors import in_this_process
from loadgen.documents.document import namespaces_of, topic_plan
from loadgen.run.options import RunOptions
from loadgen.run.run import execute
from loadgen.scenario import NamespaceExpectation
from loadgen.places.server_process import ServerLaunch, running_server
from loadgen.virtual.simulation import run_in_virtual_time
from tests.proof.result import ProofResult
from tests.proof.servers import LOCAL
from tests.proof.virtual.cases import cases

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from tests.proof.result import ProofOptions
    from tests.proof.virtual.cases import Case

RUNS = 3
SHARE_OF_REQUESTS = 0.02
SHARE_OF_MEDIAN = 0.05
LEAST_SECONDS = 0.02


@dataclass(frozen=True)
class Outcome:
    """What a run came to. The median is of the answered ones' response times."""

    answered: int
    refused: int
    others: int
    median_seconds: float

    @classmethod
    def of(cls, rows: pa.Table) -> Outcome:
        """Count a run's rows."""
        counts = Counter(rows["outcome"].to_pylist())
        answered = rows.filter(pc.equal(rows["outcome"], "answered"))
        seconds = pc.subtract(answered["finished_seconds"], answered["intended_start_seconds"])
        others = rows.num_rows - counts["answered"] - counts["refused"]
        median = statistics.median(seconds.to_pylist()) if len(seconds) else 0.0
        return cls(counts["answered"], counts["refused"], others, median)


def prove(options: ProofOptions) -> ProofResult:
    """Run each case for real and in virtual time, and compare."""
    result = ProofResult()
    for case in cases(quick=options.quick):
        options.note(case.name)
        compare(
            case, options.out / case.name.replace(", ", "-"), result, 1 if options.quick else RUNS
        )
    return result


def compare(case: Case, out: Path, result: ProofResult, runs: int) -> None:
    """Compare one case's virtual run with the median of real ones."""
    scenario = case.scenario("pulsar://127.0.0.1:6650", namespaces_of(case.cluster.topics))
    virtual = run_in_virtual_time(scenario, case.cluster)
    found = Outcome.of(virtual.reports[0].rows)
    real = [real_run(case, out, number) for number in range(runs)]
    middle = Outcome(
        *(statistics.median(values) for values in zip(*map(_values, real), strict=True))
    )
    total = virtual.reports[0].rows.num_rows
    allowed = max(SHARE_OF_REQUESTS * total, 0.5)
    allowed_seconds = max(SHARE_OF_MEDIAN * middle.median_seconds, LEAST_SECONDS)
    result.figures[case.name] = {
        "virtual": vars(found),
        "real": [vars(each) for each in real],
        "requests": total,
        "requests_per_second": round(virtual.requests_per_second),
        "real_seconds": round(virtual.real_seconds, 2),
    }
    result.check(
        case.name,
        abs(found.answered - middle.answered) <= allowed
        and abs(found.refused - middle.refused) <= allowed
        and abs(found.median_seconds - middle.median_seconds) <= allowed_seconds,
        f"{case.name}: {found.answered} answered, {found.refused} refused, median "
        f"{found.median_seconds:.3f} s; real {middle.answered:g}, {middle.refused:g}, "
        f"{middle.median_seconds:.3f} s",
    )


def _values(outcome: Outcome) -> tuple[float, ...]:
    return outcome.answered, outcome.refused, outcome.others, outcome.median_seconds


def real_run(case: Case, out: Path, number: int) -> Outcome:
    """Run a case once with real processes and sockets."""
    cluster = case.cluster
    logs = out / str(number)
    corpus = write_corpus(
        topic_plan(cluster.topics), out / "topics", 2, in_this_process(lambda _: None)
    )
    namespaces = tuple(
        NamespaceExpectation(name=name, topics=entry.topics, hash=entry.hash)
        for name, entry in corpus.manifest.namespaces.items()
    )
    both = {**LOCAL, "floodgateProfile": cluster.profile}
    keys = {**cluster.broker, **both, "brokerServicePort": "0", "metadataStoreUrl": "memory:local"}
    launch = ServerLaunch("broker", keys, logs / "broker.log", ("--import", str(corpus.directory)))
    with ExitStack() as stack:
        server = broker = stack.enter_context(running_server(launch))
        proxy_url = None
        if cluster.proxy is not None:
            keys = {
                **cluster.proxy,
                **both,
                "servicePort": "0",
                "brokerServiceURL": broker.service_url,
            }
            launch = ServerLaunch("proxy", keys, logs / "proxy.log")
            server = stack.enter_context(running_server(launch))
            proxy_url = server.web_url
        options = RunOptions(
            name="run",
            out=logs,
            tasks=1,
            broker_admin_url=broker.web_url,
            proxy_admin_url=proxy_url,
        )
        execute(case.scenario(server.service_url, namespaces), options)
    return Outcome.of(pq.read_table(logs / "run" / "requests.parquet"))
