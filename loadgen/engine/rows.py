"""The rows in which a task records requests and events, and the reasons of failures.

A thousand refusals for a single cause carry a thousand request ids, ports and sizes; masked, they
become one reason with a count.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import proto.PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from client.discovery.schedule import Failure
    from loadgen.engine.answers import AnswerBody

RUN_ENDED = "not answered when the run ended"
"""Reason of a request cut off by the end of the client."""
_LONGEST_REASON = 300
# The proxy's error text: JSON with errorMsg, reqId, remote and local, at times after the name
# of a Java exception. All but errorMsg differs by request.
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
    """Why a request got no answer.

    Attributes:
        failure: The server's error code, or the kind of failure without a code.
        reason: In words, masked so that reasons can be counted.
    """

    failure: Failure
    reason: str


@dataclass(slots=True)
class RequestRow:
    """The record of a request; times are seconds since the run's agreed start.

    Attributes:
        operation: ``list``, ``watch``, ``lookup``, ``publish``, ...
        due: Scheduled moment of sending.
        sent: None for a request that was not sent.
        first_byte: When the answer's first byte was read.
        done: When the answer's last byte was read, or the request ended otherwise.
        outcome: None while under way.
        bytes: Of the answer.
        topics: Number of names in the answer, once verified.
        item: The subject, for operations with many: a message's number, a topic.
        answer: A listing, for verification when the run is over.
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
    """The record of something that happened to a client, other than a request.

    Attributes:
        at: Seconds since the agreed start.
        what: ``back``, ``gave-up``, ``reconnected``, ...
        value: The event's number.
        text: The event's words.
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
    """All rows of a task, in the order in which requests and events began.

    Bound: the requests that a document may have.
    """

    # Without repr: asyncio logs a finished task together with the result.
    requests: list[RequestRow] = field(default_factory=list, repr=False)
    events: list[EventRow] = field(default_factory=list, repr=False)


# -- reasons of refusals ----


def refusal_reason(error: int, message: str) -> str:
    """Return ``<ServerError name>: <message>``, with placeholders for parts that vary.

    Of a JSON message only ``errorMsg`` is kept.
    """
    known = pb.ServerError.DESCRIPTOR.values_by_number.get(error)
    # Codes newer than ours keep the number.
    name = f"ServerError {error}" if known is None else known.name
    return f"{name}: {masked(_essence(message))}"[:_LONGEST_REASON]


def masked(text: str) -> str:
    """Replace addresses, identifiers and numbers in a reason with placeholders."""
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
