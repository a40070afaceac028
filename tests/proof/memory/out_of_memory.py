"""A broker with 400 MB: the storm without limits kills it; with limits all clients are served.

The same storm three times, each against a new broker in the same memory bound. The results are in
docs/what-you-will-see.md.
"""

import signal
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.imports.memory_import import write_topics
from loadgen.documents.model import Document
from loadgen.errors import LoadgenError
from loadgen.places.experiment import experiment
from loadgen.places.operator_files import local_broker
from loadgen.places.options import RunOptions
from loadgen.places.server_process import await_ready, log_tail, start, stop
from loadgen.results.results import Results
from tests.proof.memory.rooms import LaunchInRoom, Room, room
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import limited

LIMIT_BYTES = 400 * 1024 * 1024
TOPICS = 100_000
CLIENTS = 800
"""A megabyte each: twice the process's bound."""
READ_RATE_BYTES_PER_SECOND = 1_000_000
RECEIVE_BUFFER_BYTES = 65_536
MEASURE_SECONDS = 60.0
READY_SECONDS = 60.0
_ENDS = """SELECT what, text, count(*) AS n FROM events WHERE what IN ('refused', 'lost')
  GROUP BY what, text ORDER BY n DESC, text"""
_LINE = 120


class Storm(NamedTuple):
    """A storm: profile and limits of its broker; 0 is off."""

    name: str
    label: str
    profile: str
    limit_mb: int


RUNS = (
    Storm("off", "profile pulsar, limits off", "pulsar", 0),
    Storm("pulsar", "profile pulsar, limits of 50 MB", "pulsar", 50),
    Storm("floodgate", "profile floodgate, limits of 50 MB", "floodgate", 50),
)


@dataclass(frozen=True)
class Fate:
    """The end of a storm.

    Attributes:
        bound: Kind of the broker's memory bound.
        limit_bytes: Size of the bound.
        exit_code: The broker's before shutdown; None: it lived.
        kills: Kernel kills in its group.
        peak_bytes: Peak memory of its group.
        last_lines: The end of its log.
        clients: Results of the clients, by name.
        error: Cause of the run's end; empty on success.
    """

    bound: str
    limit_bytes: int
    exit_code: int | None
    kills: int | None
    peak_bytes: int | None
    last_lines: str
    clients: dict[str, Any]
    error: str

    @property
    def lived(self) -> bool:
        """True if the broker lived to the end."""
        return self.exit_code is None

    def end_in_words(self) -> str:
        if self.exit_code is None:
            return "lived"
        if self.exit_code < 0:
            return f"was ended by {signal.Signals(-self.exit_code).name}"
        return f"ended with exit code {self.exit_code}"


def prove(options: ProofOptions) -> ProofResult:
    """Run the storms, write the transcript, and judge."""
    corpus = options.out / "topics"
    write_topics(corpus, TOPICS, lambda _: None)
    fates = {}
    for run in RUNS:
        options.note(run.label)
        with room(run.name, LIMIT_BYTES) as bound:
            fates[run.name] = _storm(options, corpus, run, bound)
    result = ProofResult({name: asdict(fate) for name, fate in fates.items()})
    transcript = "\n".join(line for run in RUNS for line in _told(run, fates[run.name]))
    (options.out / "transcript.txt").write_text(f"{transcript}\n", encoding="utf-8")
    _judge(fates, result)
    return result


def _storm(options: ProofOptions, corpus: Path, run: Storm, bound: Room) -> Fate:
    log = options.out / f"{run.name}.log"
    launch = LaunchInRoom(
        "broker",
        {**local_broker(), **limited(run.profile, run.limit_mb)},
        log,
        ("--import", str(corpus)),
        room=bound,
    )
    with log.open("wb") as file:
        process = start(launch, file.fileno())
    try:
        broker = await_ready(process, launch, READY_SECONDS)
        told = RunOptions(
            name=run.name,
            out=options.out / "runs",
            service_url=broker.service_url,
            admin_urls={"broker": broker.web_url},
        )
        clients, error = _clients(corpus, told)
        exit_code = process.poll()
        kills, peak = bound.kills(), bound.peak_bytes()
    finally:
        stop(process)
    return Fate(
        bound.kind, bound.limit_bytes, exit_code, kills, peak, log_tail(log), clients, error
    )


def _clients(corpus: Path, told: RunOptions) -> tuple[dict[str, Any], str]:
    reader = {"rate": READ_RATE_BYTES_PER_SECOND, "buffer": RECEIVE_BUFFER_BYTES}
    document = Document.model_validate(
        {
            "name": "out-of-memory",
            "topics": {"corpus": str(corpus)},
            "clients": [{"name": "storm", "do": "list", "count": CLIENTS, "read": reader}],
            "phases": {"measure": MEASURE_SECONDS},
        }
    )
    try:
        return _seen(experiment(document, told)), ""
    except LoadgenError as error:
        return {}, str(error)


def _seen(directory: Path) -> dict[str, Any]:
    """Return the numbers of answers, and of clients by their end; refusals and losses by reason."""
    with Results.open(directory) as results:
        (total,) = results.query("all") or [{"answered": 0}]
        groups, ends = results.query("back"), results.sql(_ENDS)
    back = sum(row["back"] for row in groups)
    refused, lost = (
        {row["text"]: row["n"] for row in ends if row["what"] == what}
        for what in ("refused", "lost")
    )
    left = sum(row["clients"] for row in groups) - back - sum((refused | lost).values())
    return {
        "answered": total["answered"],
        "back": back,
        "refused": refused,
        "lost": lost,
        "unfinished": left,
    }


def _told(run: Storm, fate: Fate) -> list[str]:
    """Return a storm's report for people."""
    limit = f"{fate.limit_bytes / 1024**2:.0f} MiB ({fate.bound})"
    peak = "" if fate.peak_bytes is None else f", at most {fate.peak_bytes / 1024**2:.0f} MiB used"
    kills = f"; the kernel killed {fate.kills} in its group" if fate.kills else ""
    return [
        f"== {run.label}; the broker has {limit}",
        f"{CLIENTS} clients ask at once for a megabyte each and read {READ_RATE_BYTES_PER_SECOND:,}"
        " bytes a second",
        f"the broker {fate.end_in_words()}{peak}{kills}",
        "what the clients saw:",
        *(f"    {name}: {value}" for name, value in fate.clients.items()),
        *([f"    {fate.error}"] if fate.error else []),
        "the end of its log:",
        *(line[:_LINE] for line in fate.last_lines.splitlines()[-2:]),
        "",
    ]


def _judge(fates: dict[str, Fate], result: ProofResult) -> None:
    off = fates["off"]
    # RLIMIT_DATA kills no process: allocations above it fail, and may be survived.
    failed = off.kills is None and off.clients.get("answered", 0) < CLIENTS
    result.check(
        "without limits it dies",
        not off.lived or failed,
        f"without limits the broker {off.end_in_words()} (bounded by {off.bound}); its clients: "
        f"{off.clients or off.error}",
    )
    for name in ("pulsar", "floodgate"):
        fate = fates[name]
        answered = fate.clients.get("answered", 0)
        result.check(
            f"{name}: with limits all are served",
            fate.lived and answered == CLIENTS,
            f"{name}: with limits the broker {fate.end_in_words()}, {answered} of {CLIENTS} "
            f"clients were answered, {(fate.peak_bytes or 0) / 1024**2:.0f} MiB at most",
        )
