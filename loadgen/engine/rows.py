"""The rows of a task: one for each request, one for each event."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loadgen.engine.answers import AnswerBody


class Outcome(StrEnum):
    """The ways in which a request ends."""

    ANSWERED = "answered"
    REFUSED = "refused"
    WRONG = "wrong"
    TIMEOUT = "timeout"
    DISCONNECTED = "disconnected"
    UNREACHABLE = "unreachable"


@dataclass(slots=True)
class RequestRow:
    """One request; times are seconds since the agreed start.

    Attributes:
        operation: What was requested: ``list``, ``watch``, ``lookup``, ``publish``, ...
        due: When the schedule wanted it sent.
        sent: None if it never was.
        first_byte: When the first byte of its answer was read.
        done: When its last byte was read, or it ended otherwise.
        outcome: None while it is under way.
        bytes: Of its answer.
        topics: Names that the answer lists, once it is verified.
        item: What it was about, where there are many: a message's number, a topic.
        answer: A listing, to be verified when the run is over.
    """

    client: int
    group: str
    family: str
    operation: str
    namespace: str
    due: float
    sent: float | None = None
    first_byte: float | None = None
    done: float | None = None
    outcome: Outcome | None = None
    reason: str = ""
    bytes: int = 0
    topics: int | None = None
    topics_hash: str = ""
    item: str = ""
    answer: AnswerBody | None = field(default=None, repr=False)


@dataclass(slots=True)
class EventRow:
    """Whatever else a client knows.

    Attributes:
        at: Seconds since the agreed start.
        what: ``back``, ``gave-up``, ``reconnected``, ...
        value: A number that belongs to it.
        text: Words that belong to it.
    """

    at: float
    client: int
    group: str
    family: str
    namespace: str
    what: str
    value: float | None = None
    text: str = ""


@dataclass(slots=True)
class Rows:
    """All rows of a task, in the order in which they began.

    Bound: the requests that a document may have.
    """

    # asyncio describes a task, with its result, when it ends.
    requests: list[RequestRow] = field(default_factory=list, repr=False)
    events: list[EventRow] = field(default_factory=list, repr=False)
