"""The rows of a task, one for each request and each event, and why requests fail.

A thousand refusals for one cause carry a thousand request ids, ports and sizes. Masked, they are
one reason with a count.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import proto.PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from client.discovery.actions import Failure
    from loadgen.engine.answers import AnswerBody

RUN_ENDED = "not answered when the run ended"
"""Reason of a request that the end of its client cut."""
_LONGEST_REASON = 300
# What the proxy answers with: JSON text with errorMsg, reqId, remote and local, at times behind
# the name of a Java exception. The rest of it names one request only.
_JSON_ERROR_MESSAGE = re.compile(r'"errorMsg"\s*:\s*("(?:[^"\\]|\\.)*")')
# localhost/127.0.0.1:6650, /10.0.0.7:41220, [::1]:6650, broker-7.internal:6650
_ADDRESS = re.compile(
    r"(?:[\w.-]*/)?(?:\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?|\[[0-9a-fA-F:.]+\](?::\d+)?)"
    r"|\b[A-Za-z][\w-]*(?:\.[\w-]+)*:\d{2,5}\b"
)
_HEXADECIMAL = re.compile(
    r"\b(?:0x[0-9a-fA-F]+|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\b"
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class Outcome(StrEnum):
    """The ways in which a request ends."""

    ANSWERED = "answered"
    REFUSED = "refused"
    WRONG = "wrong"
    TIMEOUT = "timeout"
    DISCONNECTED = "disconnected"
    UNREACHABLE = "unreachable"


class Failed(NamedTuple):
    """Why a request has no answer.

    Attributes:
        failure: The server's error code, or that there was none.
        reason: In words, masked so that reasons can be counted.
    """

    failure: Failure
    reason: str


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


# -- reasons of refusals ----


def refusal_reason(error: int, message: str) -> str:
    """Return ``<ServerError name>: <message>`` with the parts masked that differ by request.

    Of a message that is JSON only ``errorMsg`` is kept.
    """
    known = pb.ServerError.DESCRIPTOR.values_by_number.get(error)
    # Codes that are newer than us keep their number.
    name = f"ServerError {error}" if known is None else known.name
    return f"{name}: {masked(_essence(message))}"[:_LONGEST_REASON]


def masked(text: str) -> str:
    """Replace addresses, identifiers and numbers by placeholders."""
    text = _ADDRESS.sub("<address>", text)
    text = _HEXADECIMAL.sub("<id>", text)
    return _NUMBER.sub("<n>", text)


def _essence(message: str) -> str:
    found = _JSON_ERROR_MESSAGE.search(message)
    if found is None:
        return message.strip()
    try:
        return str(json.loads(found.group(1), strict=False)).strip()
    except json.JSONDecodeError:
        return found.group(1).strip('"')
