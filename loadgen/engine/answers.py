"""Checks every answer: number of topics and Pulsar's hash of their names.

A thousand clients that read the same megabyte would hold a gigabyte. Here the clients of one
namespace share one copy: each compares what arrives with the copy and adds to it only beyond its
end. A client whose bytes differ gets a copy of its own. Bytes already found right are right
again, so a namespace is verified in full once, and each answer that differs once more.

Verification is put off until the run is over, because it would make other clients late; up to
``PENDING_LIMIT_BYTES`` of answers that differ are kept for that, more are verified at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

import proto.PulsarApi_pb2 as pb
from loadgen.plan.clients import Namespace
from proto.parsing.varint import decode_varint
from proto.topic_hash import topics_hash

if TYPE_CHECKING:
    from collections.abc import Iterator

    from client.discovery.topics_pattern import TopicsPattern

PENDING_LIMIT_BYTES = 256 * 1024 * 1024
# changed, a hash of eight digits, filtered; with names there is more.
_LONGEST_UNCHANGED_BYTES = 256
# The body begins behind the request id; the message needs one to be complete.
_ANY_REQUEST_ID = b"\x08\x01"


@dataclass(frozen=True, slots=True)
class AnswerVerdict:
    """The judgement of one answer.

    Attributes:
        topics: Number of names in it; None where it rightly says that nothing changed.
        hash: Pulsar's hash of those names, computed here.
        problem: Why the answer is wrong, as a sentence; None when it is right.
    """

    topics: int | None
    hash: str
    problem: str | None = None


class SharedAnswer:
    """The longest answer seen to one question, and which lengths of it were verified.

    Attributes:
        first_names: The first names that were looked for, by length of the answer and question.
        endings: Hash and change that answers told, by their length.
        full: Of the same question without a hash, whose answer has all names.
    """

    def __init__(self, expectation: Namespace) -> None:
        self.expectation = expectation
        self.first_names: dict[tuple[int, int, str], list[str]] = {}
        self.endings: dict[int, tuple[str | None, bool]] = {}
        self.full = self
        self.data = bytearray()
        self.verdicts: dict[int, AnswerVerdict] = {}  # by length of a right answer
        self.reference: AnswerVerdict | None = None


class AnswerBody:
    """The bytes of one answer behind its request id, shared as long as they are the same.

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
        if self.own is not None:
            self.own += chunk
        elif not self._matches(chunk):
            self.own = self.shared.data[: self.size_bytes]
            self.own += chunk
        self.size_bytes += len(chunk)

    def _matches(self, chunk: memoryview) -> bool:
        data = self.shared.data
        known = min(len(data) - self.size_bytes, len(chunk))
        # Compared as bytes: that is one memcmp, while views compare item by item.
        if data[self.size_bytes : self.size_bytes + known] != bytes(chunk[:known]):
            return False
        data += chunk[known:]
        return True

    def data(self) -> bytes:
        """Return the whole answer behind its request id."""
        return bytes(self.shared.data[: self.size_bytes] if self.own is None else self.own)

    def verdict(self) -> AnswerVerdict:
        """Verify the complete answer once, and give its bytes back; best when the run is over."""
        if self._verdict is None:
            self._verdict = _verify(self)
            self.own = None
        return self._verdict


class AnswerChecker:
    """The answers that one task has seen of each namespace."""

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


def _verify(body: AnswerBody) -> AnswerVerdict:
    shared = body.shared
    if body.asked_hash is not None and body.size_bytes <= _LONGEST_UNCHANGED_BYTES:
        unchanged = _unchanged(body.data(), body.asked_hash, shared.full)
        if unchanged is not None:
            return unchanged
    if body.own is None and body.size_bytes in shared.verdicts:
        return shared.verdicts[body.size_bytes]
    verdict = _compared_with_reference(verify_answer(body.data(), shared.expectation), shared)
    if body.own is None:
        shared.verdicts[body.size_bytes] = verdict
    return verdict


def _unchanged(data: bytes, asked_hash: str, full: SharedAnswer) -> AnswerVerdict | None:
    """Judge an answer that says that nothing changed; None if it says something else."""
    try:
        response = parse_answer(data)
    except DecodeError:
        return None
    if response.changed:
        return None
    known = full.reference.hash if full.reference is not None else full.expectation.hash
    problem = None
    if response.topics:
        problem = f"says that nothing changed, and lists {len(response.topics)} topics"
    elif known is not None and asked_hash != known:
        problem = f"says that nothing changed behind hash {asked_hash}, its names have {known}"
    return AnswerVerdict(None, "", problem)


def _compared_with_reference(verdict: AnswerVerdict, shared: SharedAnswer) -> AnswerVerdict:
    if verdict.problem is not None or shared.expectation.changes:
        return verdict
    if shared.reference is None:
        shared.reference = verdict
    return disagreement(verdict, shared.reference)


def disagreement(verdict: AnswerVerdict, reference: AnswerVerdict) -> AnswerVerdict:
    """Return ``verdict``, with a problem if it lists other topics than ``reference``."""
    if (verdict.topics, verdict.hash) == (reference.topics, reference.hash):
        return verdict
    return AnswerVerdict(
        verdict.topics,
        verdict.hash,
        f"lists {verdict.topics} topics with hash {verdict.hash}, another answer of the same "
        f"namespace {reference.topics} with hash {reference.hash}",
    )


def verify_answer(body: bytes, expectation: Namespace) -> AnswerVerdict:
    """Verify one answer in full: a CommandGetTopicsOfNamespaceResponse without request id."""
    try:
        response = parse_answer(body)
    except DecodeError:
        return AnswerVerdict(0, "", "is not a CommandGetTopicsOfNamespaceResponse")
    topics = len(response.topics)
    computed = topics_hash(response.topics)
    return AnswerVerdict(topics, computed, _problem(response, computed, expectation))


def parse_answer(body: bytes) -> pb.CommandGetTopicsOfNamespaceResponse:
    """Return the response whose bytes behind the request id are given.

    Raises:
        DecodeError: They are no such response.
    """
    return pb.CommandGetTopicsOfNamespaceResponse.FromString(_ANY_REQUEST_ID + body)


def _problem(
    response: pb.CommandGetTopicsOfNamespaceResponse,
    computed: str,
    expectation: Namespace,
) -> str | None:
    topics = len(response.topics)
    if not response.changed:
        return "says that nothing changed, although no hash was sent"
    if response.HasField("topics_hash") and response.topics_hash != computed:
        return f"says hash {response.topics_hash}, its {topics} names have {computed}"
    if expectation.topics is not None and topics != expectation.topics:
        return f"lists {topics} topics, expected {expectation.topics}"
    if expectation.hash is not None and computed != expectation.hash:
        return f"lists names with hash {computed}, expected {expectation.hash}"
    return None


# -- parts of an answer, read where they stand ------------------------------------------------

_TOPICS_TAG = 0x12


def ending(body: AnswerBody) -> tuple[str | None, bool]:
    """Return the hash that a complete answer says, if any, and whether the list has changed.

    Raises:
        DecodeError: It is no answer.
        RemoteProtocolError: The same.
    """
    known = body.shared.endings
    if body.own is None and body.size_bytes in known:
        return known[body.size_bytes]
    offset = 0
    with memoryview(body.shared.data if body.own is None else body.own)[: body.size_bytes] as view:
        while offset < len(view) and view[offset] == _TOPICS_TAG:
            size, begin = decode_varint(view, offset + 1)
            offset = begin + size
        response = parse_answer(bytes(view[offset:]))
    found = response.topics_hash if response.HasField("topics_hash") else None, response.changed
    if body.own is None:
        known[body.size_bytes] = found
    return found


def first_names(body: AnswerBody, count: int, matching: TopicsPattern | None = None) -> list[str]:
    """Return the first ``count`` names of a complete answer, or of those that match.

    Raises:
        RemoteProtocolError: The answer is no list of names.
    """
    if body.own is not None:
        return _first(body.own, body.size_bytes, count, matching)
    key = body.size_bytes, count, "" if matching is None else matching.text
    found = body.shared.first_names.get(key)
    if found is None:
        found = _first(body.shared.data, body.size_bytes, count, matching)
        body.shared.first_names[key] = found
    return found


def _first(
    data: bytearray, size_bytes: int, count: int, matching: TopicsPattern | None
) -> list[str]:
    found: list[str] = []
    if count:
        with memoryview(data)[:size_bytes] as view:
            for name in _names(view):
                if matching is None or matching.matches(name):
                    found.append(name)
                    if len(found) == count:
                        break
    return found


def _names(view: memoryview) -> Iterator[str]:
    offset = 0
    while offset < len(view) and view[offset] == _TOPICS_TAG:
        size, begin = decode_varint(view, offset + 1)
        offset = begin + size
        yield str(view[begin:offset], "utf-8", "replace")
