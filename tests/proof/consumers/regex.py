"""A thousand regex consumers of the official Python client attach through the proxy, twice.

Each has a client and a connection, and matches ten topics of one namespace. All are killed and
restarted simultaneously. Broker and proxy list under tight limits.
"""

import http.client
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from loadgen.engine.connecting import raise_open_file_limit
from loadgen.places.sampling import Samples, ServerWatch
from loadgen.places.server_process import ServerProcess
from tests.official.clients import ClientMissingError, python_client
from tests.official.servers import ANY_TARGET
from tests.proof.programs import Program, running_programs
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.proof.servers import ClusterSettings, judged_cluster, limits

PROGRAM = Path(__file__).resolve().parents[2] / "official" / "python" / "regex_consumers.py"
NAMESPACE = "public/regex"
TOPICS_EACH = 10


@dataclass(frozen=True)
class CrowdSize:
    consumers: int
    processes: int

    @property
    def topics(self) -> int:
        """Number of topics; each matches one consumer's pattern."""
        return self.consumers * TOPICS_EACH

    def names(self) -> list[str]:
        return [
            f"persistent://{NAMESPACE}/group-{number // TOPICS_EACH:05d}-{number % TOPICS_EACH}"
            for number in range(self.topics)
        ]


FULL = CrowdSize(consumers=1_000, processes=10)
QUICK = CrowdSize(consumers=50, processes=2)
LIMIT_MB = 1
TIMEOUT_MILLIS = 60_000
BROKER = {
    "metadataStoreUrl": "memory:local",
    "exposeTopicLevelMetricsInPrometheus": "false",
}
"""Sampling 10,000 topics four times a second would cost more than the measured work."""
COLD, RESTART = "cold", "restart"
OWN_CONNECTIONS = 4
"""Descriptors of a client at the proxy: two connections and the two behind them."""


@dataclass
class Attached:
    """The result of one start of the crowd.

    Attributes:
        seconds: From the first process's start until the last consumer had all its topics.
        refused: Clients' errors.
        threads, resident_bytes: Of all client processes together.
        attachments: Consumers over all topics, by REST.
    """

    seconds: float
    refused: list[str]
    threads: int
    resident_bytes: int
    attachments: int


def prove(options: ProofOptions) -> ProofResult:
    """Attach the crowd, kill it, attach it again."""
    size = QUICK if options.quick else FULL
    topics = options.out / "topics.txt"
    topics.write_text("".join(f"{name}\n" for name in size.names()), encoding="utf-8")
    raise_open_file_limit(OWN_CONNECTIONS * size.consumers + 1_000)
    # The client lists all topics and filters locally. Shared answers are charged once, so that no
    # request waits; private answers are charged each, as upstream's are.
    keys = {
        "floodgateProfile": "floodgate",
        "floodgateResponseBuffers": "private",
        **limits(LIMIT_MB, TIMEOUT_MILLIS),
    }
    result = ProofResult()
    settings = ClusterSettings(options.out, keys, BROKER, [topics], ANY_TARGET)
    try:
        with judged_cluster(settings, result) as servers:
            _attach_twice(options, size, servers, result)
    except ClientMissingError as missing:
        raise ProofError(str(missing)) from None
    return result


def _attach_twice(
    options: ProofOptions,
    size: CrowdSize,
    servers: tuple[ServerProcess, ServerProcess],
    result: ProofResult,
) -> None:
    broker, proxy = servers
    urls = {one.module: one.web_url for one in servers}
    pids = {one.module: one.pid for one in servers}
    with ServerWatch(urls, pids) as watch:
        for name in (COLD, RESTART):
            options.note(f"{name}: {size.consumers:,} consumers attach")
            at = time.perf_counter()
            with _crowd(size, proxy.service_url, options.out) as crowd:
                with ThreadPoolExecutor(len(crowd)) as threads:
                    said = list(threads.map(Program.line, crowd.values()))
                seconds = time.perf_counter() - at
                options.note(f"{name}: REST counts")
                found = Attached(
                    seconds,
                    [error for one in said for error in one["refused"]],
                    sum(one["threads"] for one in said),
                    sum(one["resident_bytes"] for one in said),
                    _attachments(broker, size),
                )
            result.figures[name] = {**asdict(found), "refused": found.refused[:5]}
            _judge(name, found, size, result)
    result.figures["servers"] = {module: _peaks(watch, module) for module in watch.processes}
    _judge_permits(result)
    if size is FULL:
        _judge_waiting(result)


@contextmanager
def _crowd(size: CrowdSize, service_url: str, logs: Path) -> Iterator[dict[str, Program]]:
    """Run the client processes for a block."""
    each, python = size.consumers // size.processes, python_client().command[0]
    commands = {}
    for number in range(size.processes):
        log = str(logs / f"clients-{number}.log")
        words = (service_url, NAMESPACE, str(number * each), str(each), log)
        commands[f"clients-{number}"] = (python, "-B", str(PROGRAM), *words)
    with running_programs(commands, logs) as programs:
        yield programs


def _attachments(broker: ServerProcess, size: CrowdSize) -> int:
    """Return the number of consumers in the statistics of all topics."""
    address, found = urlsplit(broker.web_url), 0
    with closing(http.client.HTTPConnection(address.netloc, timeout=30)) as connection:
        for name in size.names():
            connection.request("GET", f"/admin/v2/{name.replace('://', '/')}/stats")
            answer = connection.getresponse()
            body = answer.read()
            if answer.status == http.client.NOT_FOUND:
                continue  # not loaded: without consumers
            stats = json.loads(body)
            found += sum(len(one["consumers"]) for one in stats["subscriptions"].values())
    return found


def _peaks(samples: Samples, module: str) -> dict[str, float]:
    """Return the peaks of a server."""

    def values(metric: str) -> list[float]:
        return list(samples.series(module, metric)[1])

    resident = values("process_resident_memory_bytes")
    cpu = values("process_cpu_seconds_total")
    found = {
        "resident_idle_bytes": resident[0] if resident else 0.0,
        "resident_peak_bytes": max(values("process_resident_memory_high_water_bytes"), default=0.0),
        "cpu_seconds": cpu[-1] - cpu[0] if cpu else 0.0,
    }
    for kind in ("heap", "direct"):
        own = f"pulsar_{module}_topic_list_{kind}"
        found[f"{kind}_permits_peak_bytes"] = max(values(f"{own}_memory_used_bytes"), default=0.0)
        found[f"{kind}_waiting_peak"] = max(values(f"{own}_queue_size"), default=0.0)
    return found


def _judge(name: str, found: Attached, size: CrowdSize, result: ProofResult) -> None:
    refused = "".join(found.refused[:1])
    result.check(
        f"{name}: all attach",
        not found.refused and found.attachments == size.topics,
        f"{name}: {found.attachments:,} of {size.topics:,} attachments after {found.seconds:.1f} s,"
        f" {len(found.refused)} of {size.consumers:,} consumers refused {refused}".rstrip(),
    )


def _judge_permits(result: ProofResult) -> None:
    servers: dict[str, dict[str, Any]] = result.figures["servers"]
    most = LIMIT_MB * 1024 * 1024
    for module, found in servers.items():
        used = {kind: found[f"{kind}_permits_peak_bytes"] for kind in ("heap", "direct")}
        waiting = max(found[f"{kind}_waiting_peak"] for kind in used)
        result.check(
            f"permits of the {module}",
            max(used.values()) <= most,
            f"{module}: at most {used['heap'] / 1e6:.2f} MB of heap and {used['direct'] / 1e6:.2f} "
            f"MB of direct permits of {most / 1e6:.2f} MB, and {waiting:.0f} waited; "
            f"peak of {found['resident_peak_bytes'] / 1e6:.0f} MB resident, "
            f"{found['cpu_seconds']:.1f} s of processor time",
        )


def _judge_waiting(result: ProofResult) -> None:
    """Check that requests waited for the limits: without waits the proof shows nothing."""
    waited = {
        module: max(found["heap_waiting_peak"], found["direct_waiting_peak"])
        for module, found in result.figures["servers"].items()
    }
    what = " and ".join(f"{most:.0f} in the {module}" for module, most in waited.items())
    result.check("requests waited", any(waited.values()), f"at most {what} waited for permits")
