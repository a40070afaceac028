"""Checks every answer: number of topics and Pulsar's hash of their names.

A thousand clients that read the same megabyte would hold a gigabyte. Here the clients of one
namespace share one copy: each compares what arrives with the copy and adds to it only beyond its
end. A client whose bytes differ gets a copy of its own. Bytes already found right are right
again, so a namespace is verified in full once, and each answer that differs once more.

Verification is put off until the run is over, because it would make other clients late; up to
``PENDING_LIMIT_BYTES`` of answers that differ are kept for that, more are verified at once.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf.message import DecodeError

import proto.PulsarApi_pb2 as pb
from loadgen.plan.clients import Namespace
from proto.topic_hash import topics_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from client.discovery.topics_pattern import TopicsPattern

PENDING_LIMIT_BYTES = 256 * 1024 * 1024
# The body begins behind the request id; the message needs one to be complete.
_ANY_REQUEST_ID = b"\x08\x01"


class AnswerVerdict(NamedTuple):
    """The judgement of one answer.

    Attributes:
        topics: Number of names; None for an answer that rightly says "unchanged".
        hash: Pulsar's hash of those names, computed here.
        problem: Why the answer is wrong, as a sentence; None when it is right.
    """

    topics: int | None
    hash: str
    problem: str | None = None


class Told(NamedTuple):
    """The content of an answer, not yet verified.

    Attributes:
        topics_hash: As the server says; None where it says none.
        changed: False where the hash that was asked with is still right.
        topics: The number of its names.
        names: The first of them, as many as were wanted.
    """

    topics_hash: str | None = None
    changed: bool = True
    topics: int = 0
    names: Sequence[str] = ()


class SharedAnswer:
    """The longest answer seen to one question.

    Attributes:
        known: Results of reading the bytes, by length and kind of result.
        full: Of the same question without a hash, whose answer has all names.
        reference: The first right verdict, with which the others have to agree.
    """

    def __init__(self, expectation: Namespace) -> None:
        self.expectation = expectation
        self.known: dict[tuple[int, Hashable], Any] = {}
        self.full = self
        self.data = bytearray()
        self.reference: AnswerVerdict | None = None


class AnswerBody:
    """The bytes of one answer behind its request id, shared with equal answers.

    Args:
        shared: Of the question.
        asked_hash: Hash that the question had; the answer may say that it is still right.
    """

    __slots__ = ("_verdict", "asked_hash", "own", "shared", "size_bytes")

    def __init__(self, shared: SharedAnswer, asked_hash: str | None = None) -> None:
        self.shared = shared
        self.asked_hash = asked_hash
        self.size_bytes = 0
        self.own: bytearray | None = None
        self._verdict: AnswerVerdict | None = None

    def feed(self, chunk: memoryview) -> None:
        """Take the next bytes of the answer; the view may be reused afterwards."""
        begin = self.size_bytes
        self.size_bytes += len(chunk)
        if self.own is not None:
            self.own += chunk
            return
        data = self.shared.data
        known = min(len(data) - begin, len(chunk))
        # With a bytearray on the left this is one memcmp; two views are compared item by item.
        if data[begin : begin + known] == chunk[:known]:
            data += chunk[known:]
        else:
            self.own = data[:begin]
            self.own += chunk

    def data(self) -> bytes:
        """Return the whole answer behind its request id."""
        return bytes(self.shared.data[: self.size_bytes] if self.own is None else self.own)

    def told(self, names_wanted: int = 0, matching: TopicsPattern | None = None) -> Told:
        """Return the contents of the complete answer; empty if the bytes are no list of topics.

        Args:
            names_wanted: So many names are told.
            matching: Only names that match are.
        """
        wanted = names_wanted, "" if matching is None else matching.text
        told: Told = self._read(wanted, lambda data: _told(data, names_wanted, matching))
        return told

    def verdict(self) -> AnswerVerdict:
        """Verify the complete answer once and free its bytes; best when the run is over."""
        if self._verdict is None:
            if self.asked_hash is not None and not (told := self.told()).changed:
                self._verdict = _unchanged(told, self.asked_hash, self.shared.full)
            else:
                self._verdict = self._read("verdict", lambda data: _verified(data, self.shared))
            self.own = None
        return self._verdict

    def _read(self, wanted: Hashable, read: Callable[[bytes], Any]) -> Any:  # noqa: ANN401
        """Return the result of reading the bytes; equal answers share the result, too."""
        if self.own is not None:
            return read(bytes(self.own))
        known, key = self.shared.known, (self.size_bytes, wanted)
        if key not in known:
            known[key] = read(self.data())
        return known[key]


class AnswerChecker:
    """The answers of one task, by namespace."""

    def __init__(self) -> None:
        # One for each namespace of the scenario and kind of question.
        self._shared: dict[tuple[str, str, bool], SharedAnswer] = {}
        self._pending_bytes = 0

    def body(
        self, namespace: Namespace, selection: str = "", asked_hash: str | None = None
    ) -> AnswerBody:
        """Return the place for a new answer of a namespace.

        Args:
            namespace: With what is known of all its names.
            selection: What the request chose of them: pattern and properties; empty for all.
            asked_hash: The hash that it had.
        """
        key = (namespace.name, selection, asked_hash is not None)
        shared = self._shared.get(key)
        if shared is None:
            # Of a part nothing is known beforehand.
            known = namespace
            if selection or namespace.changes:
                known = Namespace(name=namespace.name, changes=namespace.changes)
            shared = self._shared[key] = SharedAnswer(known)
            # An answer without names has to fit what the same question brought without a hash.
            shared.full = self._shared.get((*key[:2], False), shared)
        return AnswerBody(shared, asked_hash)

    def submit(self, body: AnswerBody) -> AnswerBody:
        """Take a complete answer; verified later, unless too many that differ wait already."""
        if body.own is not None:
            self._pending_bytes += len(body.own)
            if self._pending_bytes > PENDING_LIMIT_BYTES:
                self._pending_bytes -= len(body.own)
                body.verdict()
        return body


def parse_answer(body: bytes) -> pb.CommandGetTopicsOfNamespaceResponse:
    """Return the response whose bytes behind the request id are given.

    Raises:
        DecodeError: They are no such response.
    """
    return pb.CommandGetTopicsOfNamespaceResponse.FromString(_ANY_REQUEST_ID + body)


def _told(data: bytes, names_wanted: int, matching: TopicsPattern | None) -> Told:
    try:
        response = parse_answer(data)
    except DecodeError:  # What is wrong with it, its verdict says.
        return Told()
    names = (each for each in response.topics if matching is None or matching.matches(each))
    told_hash = response.topics_hash if response.HasField("topics_hash") else None
    first = [*islice(names, names_wanted)]
    return Told(told_hash, response.changed, len(response.topics), first)


def _unchanged(told: Told, asked_hash: str, full: SharedAnswer) -> AnswerVerdict:
    """Verify an answer without names: the list is unchanged."""
    known = full.reference.hash if full.reference is not None else full.expectation.hash
    problem = None
    if told.topics:
        problem = f"says that nothing changed, and lists {told.topics} topics"
    elif known is not None and asked_hash != known:
        problem = f"says that nothing changed behind hash {asked_hash}, its names have {known}"
    return AnswerVerdict(None, "", problem)


def _verified(data: bytes, shared: SharedAnswer) -> AnswerVerdict:
    """Verify one answer in full, and its agreement with earlier answers to the same request."""
    verdict = verify_answer(data, shared.expectation)
    if verdict.problem is not None or shared.expectation.changes:
        return verdict
    if shared.reference is None:
        shared.reference = verdict
    other = shared.reference
    if verdict == other:
        return verdict
    return verdict._replace(
        problem=f"lists {verdict.topics} topics with hash {verdict.hash}, another answer of the "
        f"same namespace {other.topics} with hash {other.hash}"
    )


def verify_answer(body: bytes, expectation: Namespace) -> AnswerVerdict:
    """Verify one answer in full: a CommandGetTopicsOfNamespaceResponse without request id."""
    try:
        response = parse_answer(body)
    except DecodeError:
        return AnswerVerdict(0, "", "is not a CommandGetTopicsOfNamespaceResponse")
    topics, computed = len(response.topics), topics_hash(response.topics)
    problem = None
    if not response.changed:
        problem = "says that nothing changed, although no hash was sent"
    elif response.HasField("topics_hash") and response.topics_hash != computed:
        problem = f"says hash {response.topics_hash}, its {topics} names have {computed}"
    elif expectation.topics is not None and topics != expectation.topics:
        problem = f"lists {topics} topics, expected {expectation.topics}"
    elif expectation.hash is not None and computed != expectation.hash:
        problem = f"lists names with hash {computed}, expected {expectation.hash}"
    return AnswerVerdict(topics, computed, problem)
