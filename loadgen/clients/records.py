"""The report of one task: a row for each request, and how punctual the task was.

A report travels as one piece of bytes (two Arrow streams, the first with the rest in its metadata),
so that Spark and the process executor carry the same thing.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from operator import add
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from loadgen.clients.latency_buckets import BUCKETS, bucket_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.clients.answers import AnswerBody

    Look = Callable[[], tuple[float, "RequestCounters"]]
    """Looks at a run in virtual time: its seconds since T0, and the totals by then."""


class Outcome(StrEnum):
    """The ways in which a request ends."""

    ANSWERED = "answered"
    REFUSED = "refused"
    WRONG = "wrong"
    TIMEOUT = "timeout"
    DISCONNECTED = "disconnected"
    UNREACHABLE = "unreachable"


@dataclass(slots=True)
class RequestRecord:
    """One request while it runs; times are seconds relative to the agreed T0.

    Attributes:
        intended_start_seconds: When the schedule wanted it sent.
        started_seconds: When it was sent; None if it never was.
        first_byte_seconds: When the first byte of its answer was read.
        finished_seconds: When its last byte was read, or it ended otherwise.
        outcome: None while it runs.
        bytes: Bytes read while it ran.
        answer: The listing, to be verified when the run is over.
        operation: What was asked for: ``list``, ``watch``, ``lookup``, ``publish``, ...
        group: The group of clients that it belongs to, where a scenario has several.
        family: How its client goes about it; empty where clients have no family.
    """

    client: int
    namespace: str
    intended_start_seconds: float
    started_seconds: float | None = None
    first_byte_seconds: float | None = None
    finished_seconds: float | None = None
    outcome: Outcome | None = None
    reason: str = ""
    bytes: int = 0
    answer: AnswerBody | None = field(default=None, repr=False)
    operation: str = "list"
    group: str = ""
    family: str = ""

    @property
    def started(self) -> bool:
        """True if it was sent."""
        return self.started_seconds is not None


ROWS = pa.schema(
    [
        pa.field("client", pa.int32(), nullable=False),
        pa.field("task", pa.int32(), nullable=False),
        pa.field("namespace", pa.string(), nullable=False),
        pa.field("operation", pa.string(), nullable=False),
        pa.field("group", pa.string(), nullable=False),
        pa.field("family", pa.string(), nullable=False),
        pa.field("intended_start_seconds", pa.float64(), nullable=False),
        # Null for a client that was never connected: it sent nothing and nothing came.
        pa.field("started_seconds", pa.float64()),
        pa.field("first_byte_seconds", pa.float64()),
        pa.field("finished_seconds", pa.float64()),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        # Null for an answer that is no listing.
        pa.field("topics", pa.int32()),
        pa.field("bytes", pa.int64(), nullable=False),
        # Only until the tasks' answers were compared; not written to requests.parquet.
        pa.field("topics_hash", pa.string(), nullable=False),
    ]
)
# One row for each client, of scenarios whose clients have families. A client is back when its list
# is answered and, where its family watches, the watch acknowledged.
CLIENT_ROWS = pa.schema(
    [
        pa.field("client", pa.int32(), nullable=False),
        pa.field("task", pa.int32(), nullable=False),
        pa.field("group", pa.string(), nullable=False),
        pa.field("family", pa.string(), nullable=False),
        pa.field("namespace", pa.string(), nullable=False),
        # Null for a client whose turn did not come.
        pa.field("intended_start_seconds", pa.float64()),
        pa.field("connected_seconds", pa.float64()),
        pa.field("listed_seconds", pa.float64()),
        # Null for a client that was not back by the end of the run.
        pa.field("back_seconds", pa.float64()),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("listings", pa.int32(), nullable=False),
        pa.field("reconnects", pa.int32(), nullable=False),
        # How often its program began anew because a subscription had failed.
        pa.field("restarts", pa.int32(), nullable=False),
        # The most connections that it had at once.
        pa.field("connections", pa.int32(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """Facts about one task: its punctuality, and whether it ran to its end.

    Attributes:
        start_error_seconds: The worst delay between an intended moment and the first start of a
            client that was due then: how late the task itself was.
        client_start_error_seconds: The worst delay of any client. Of 500 that are due at the same
            moment the last one waits for the others, and for the processor if a server that
            answers the first ones runs on it.
        t0_epoch_seconds: The agreed T0 on the wall clock.
        attempt: Number of the attempt; above 0 means that the load was offered twice.
        interrupted: Whether it ended early, so that requests under way have no row.
        connections_lost: Lasting connections that ended before the run did.
        moments: Moments of the schedule that the task waited for.
        lag_p99_seconds: How late 1 % of them came at least.
        loop_lag_p99_seconds: The same of the event loop, asked twenty times a second.
        cpu_seconds: Processor time of the process, in ``measured_seconds`` since T0.
        descriptors: The most open files of the process.
    """

    task: int
    clients: int
    start_error_seconds: float
    client_start_error_seconds: float
    t0_epoch_seconds: float
    attempt: int = 0
    interrupted: bool = False
    connections_lost: int = 0
    moments: int = 0
    lag_p99_seconds: float = 0.0
    loop_lag_p99_seconds: float = 0.0
    loop_lag_max_seconds: float = 0.0
    cpu_seconds: float = 0.0
    measured_seconds: float = 0.0
    descriptors: int = 0


@dataclass(frozen=True, slots=True)
class TaskReport:
    """The result of one task.

    Attributes:
        rows: Its requests (schema ``ROWS``).
        facts: Its punctuality.
        details: Rows that its scenario adds; JSON values.
        clients: Its clients (schema ``CLIENT_ROWS``), where they have families.
    """

    rows: pa.Table
    facts: TaskFacts
    details: tuple[dict[str, Any], ...] = ()
    clients: pa.Table = field(default_factory=CLIENT_ROWS.empty_table)

    def to_bytes(self) -> bytes:
        """Return the report as Arrow streams: its requests, then its clients."""
        facts = json.dumps(asdict(self.facts)).encode()
        sink = pa.BufferOutputStream()
        details = json.dumps(self.details).encode()
        table = self.rows.replace_schema_metadata({b"facts": facts, b"details": details})
        for part in (table, self.clients):
            with pa.ipc.new_stream(sink, part.schema) as stream:
                stream.write_table(part)
        return bytes(sink.getvalue().to_pybytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> TaskReport:
        """Read what :meth:`to_bytes` wrote."""
        source = pa.BufferReader(data)
        table, clients = (pa.ipc.open_stream(source).read_all() for _ in range(2))
        facts: dict[str, Any] = json.loads(table.schema.metadata[b"facts"])
        details = tuple(json.loads(table.schema.metadata[b"details"]))
        return cls(table.replace_schema_metadata(None), TaskFacts(**facts), details, clients)


def report_rows(task: int, records: list[RequestRecord]) -> pa.Table:
    """Verify the answers and return one row for each request."""
    return pa.Table.from_pylist([_row(task, record) for record in records], schema=ROWS)


def _row(task: int, record: RequestRecord) -> dict[str, object]:
    outcome, reason = record.outcome, record.reason
    topics: int | None = None if outcome is Outcome.ANSWERED else 0
    topics_hash = ""
    if record.answer is not None:
        verdict = record.answer.verdict()
        topics, topics_hash = verdict.topics, verdict.hash
        if verdict.problem is not None:
            outcome = Outcome.WRONG
            reason = f"the answer for {record.namespace} {verdict.problem}"
    assert outcome is not None, record
    return {
        "client": record.client,
        "task": task,
        "namespace": record.namespace,
        "operation": record.operation,
        "group": record.group,
        "family": record.family,
        "intended_start_seconds": record.intended_start_seconds,
        "started_seconds": record.started_seconds,
        "first_byte_seconds": record.first_byte_seconds,
        "finished_seconds": record.finished_seconds,
        "outcome": str(outcome),
        "reason": reason,
        "topics": topics,
        "bytes": record.bytes,
        "topics_hash": topics_hash,
    }


@dataclass(slots=True)
class FamilyCounters:
    """Totals of one family: clients that arrived and were back; requests refused and lost."""

    arrived: int = 0
    back: int = 0
    refused: int = 0
    lost: int = 0


@dataclass(slots=True)
class RequestCounters:
    """Totals of one task, or of a whole run.

    Attributes:
        bytes: Those read of answers.
        phase: The phase that the task is in, in a word; empty if it has no names for them.
        ended: Requests that ended, by operation and outcome: ``list.answered``.
        families: Clients by family, where they have one.
        latencies: Answers by the bucket of how long they took since they were meant to start.
    """

    connected: int = 0
    started: int = 0
    answered: int = 0
    refused: int = 0
    wrong: int = 0
    timeout: int = 0
    disconnected: int = 0
    unreachable: int = 0
    bytes: int = 0
    phase: str = ""
    ended: dict[str, int] = field(default_factory=dict)
    families: dict[str, FamilyCounters] = field(default_factory=dict)
    latencies: list[int] = field(default_factory=lambda: [0] * BUCKETS)

    def count(
        self,
        outcome: Outcome,
        operation: str = "list",
        *,
        seconds: float | None = None,
        family: str = "",
    ) -> None:
        """Count a request that ended, how long it took if it was answered, and for its family."""
        setattr(self, outcome.value, getattr(self, outcome.value) + 1)
        name = f"{operation}.{outcome.value}"
        self.ended[name] = self.ended.get(name, 0) + 1
        if outcome is Outcome.ANSWERED:
            if seconds is not None:
                self.latencies[bucket_of(seconds)] += 1
        elif family and outcome is Outcome.REFUSED:
            self.family(family).refused += 1
        elif family:
            self.family(family).lost += 1

    def family(self, name: str) -> FamilyCounters:
        """Return the totals of a family, to count on."""
        return self.families.setdefault(name, FamilyCounters())

    @property
    def lost(self) -> int:
        """Requests that ended with neither a right answer nor a refusal."""
        return self.wrong + self.timeout + self.disconnected + self.unreachable

    def plus(self, other: RequestCounters) -> RequestCounters:
        """Return the sum of both; the phase is that of the other, which is the later one."""
        total = RequestCounters(phase=other.phase or self.phase)
        for name in _TOTALS:
            setattr(total, name, getattr(self, name) + getattr(other, name))
        total.latencies = list(map(add, self.latencies, other.latencies))
        total.ended = dict(Counter(self.ended) + Counter(other.ended))
        for part in (self, other):
            for name, counted in part.families.items():
                into = total.family(name)
                for each in fields(FamilyCounters):
                    value = getattr(into, each.name) + getattr(counted, each.name)
                    setattr(into, each.name, value)
        return total

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> RequestCounters:
        """Read what ``asdict`` made of counters.

        Raises:
            TypeError, ValueError: It is something else.
        """
        families = {
            str(name): FamilyCounters(**each) for name, each in document.pop("families").items()
        }
        found = cls(**document, families=families)
        numbers = [getattr(found, name) for name in _TOTALS]
        for each in families.values():
            numbers += [each.arrived, each.back, each.refused, each.lost]
        numbers += [*found.ended.values(), *found.latencies]
        if len(found.latencies) != BUCKETS or not isinstance(found.phase, str):
            raise ValueError("these are no counters")
        if any(not isinstance(number, int) for number in numbers):
            raise TypeError("these are no counters")
        return found


_TOTALS = (
    "connected",
    "started",
    "answered",
    "refused",
    "wrong",
    "timeout",
    "disconnected",
    "unreachable",
    "bytes",
)
