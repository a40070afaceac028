"""The rows in which a task records its clients' requests and events, and masked failure reasons.

A thousand refusals for a single cause contain a thousand request ids, ports and sizes; masked, they
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
    """The possible outcomes of a request."""

    ANSWERED = "answered"
    REFUSED = "refused"
    WRONG = "wrong"
    TIMEOUT = "timeout"
    DISCONNECTED = "disconnected"
    UNREACHABLE = "unreachable"


class Failed(NamedTuple):
    """The failure of a request: a code, and a reason in words.

    Attributes:
        failure: The server's error code; without one, the kind of failure.
        reason: The reason in words, masked so that equal reasons can be counted.
    """

    failure: Failure
    reason: str


@dataclass(slots=True)
class RequestRow:
    """The record of one request; times are in seconds since the run's agreed start.

    Attributes:
        operation: ``list``, ``watch``, ``lookup``, ``publish``, ...
        due: The scheduled moment of sending.
        sent: When the request was sent; None if it was not sent.
        first_byte: When the answer's first byte was read.
        done: When the answer's last byte was read, or the request ended otherwise.
        outcome: How the request ended; None while it is under way.
        bytes: Size of the answer in bytes.
        topics: Number of topic names in the answer, once verified.
        item: The subject of the request, such as a message's number or a topic.
        answer: The received listing, for verification when the run is over.
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
    """The record of a client's event that is not a request, such as a reconnection.

    Attributes:
        at: Seconds since the agreed start.
        what: The kind of event: ``back``, ``gave-up``, ``reconnected``, ...
        value: A number that belongs to the event, such as seconds; None if it has none.
        text: Words that belong to the event, such as a reason; empty if it has none.
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
    """All rows of one task, in the order in which the requests and events began.

    Bound: the number of requests that a document may have.
    """

    # Without repr: asyncio logs a finished task together with the result.
    requests: list[RequestRow] = field(default_factory=list, repr=False)
    events: list[EventRow] = field(default_factory=list, repr=False)


# -- reasons of refusals ----


def refusal_reason(error: int, message: str) -> str:
    """Return a refusal as ``<ServerError name>: <message>``, with placeholders for varying parts.

    Of a JSON message only the value of ``errorMsg`` is kept.
    """
    known = pb.ServerError.DESCRIPTOR.values_by_number.get(error)
    # Codes newer than ours keep the number.
    name = f"ServerError {error}" if known is None else known.name
    return f"{name}: {masked(_essence(message))}"[:_LONGEST_REASON]


def masked(text: str) -> str:
    """Replace the addresses, identifiers and numbers in a failure's reason by placeholders."""
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
