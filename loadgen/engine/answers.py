"""Verification of listings: the number of topics, and Pulsar's hash of their names.

A thousand clients that read the same megabyte would hold a gigabyte, so the clients of a namespace
share a copy: each compares arriving bytes with the copy, and appends only beyond the copy's end. A
client with different bytes gets a copy of its own. Equal bytes are verified once, so a namespace is
verified in full once, and each different answer once more.

Verification waits until the run is over, because it would delay other clients. Up to
``PENDING_LIMIT_BYTES`` of different answers are kept; beyond, answers are verified immediately.
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
# The body begins after the request id; a complete message needs an id.
_ANY_REQUEST_ID = b"\x08\x01"


class AnswerVerdict(NamedTuple):
    """The result of verifying one listing.

    Attributes:
        topics: Number of names; None for a correct answer without names ("unchanged").
        hash: Pulsar's hash of the names, computed by this program.
        problem: A sentence on what is wrong with the answer; None for a right answer.
    """

    topics: int | None
    hash: str
    problem: str | None = None


class Told(NamedTuple):
    """The contents of a received listing that is not verified yet.

    Attributes:
        topics_hash: The hash that the server sent; None if it sent none.
        changed: False if the server says that the request's hash is still right.
        topics: The number of names.
        names: The first names of the listing, at most as many as the caller wanted.
    """

    topics_hash: str | None = None
    changed: bool = True
    topics: int = 0
    names: Sequence[str] = ()


class SharedAnswer:
    """The longest answer that any client has received to one kind of list request.

    Equal answers to other clients share its bytes.

    Attributes:
        known: Results of parsing the bytes, by number of bytes and kind of result.
        full: The answer to the same request without a hash, which has all names.
        reference: The verdict on the first right answer; later verdicts have to agree with it.
    """

    def __init__(self, expectation: Namespace) -> None:
        self.expectation = expectation
        self.known: dict[tuple[int, Hashable], Any] = {}
        self.full = self
        self.data = bytearray()
        self.reference: AnswerVerdict | None = None


class AnswerBody:
    """The bytes of one client's list answer after the request id.

    Equal answers share the bytes in memory.

    Args:
        shared: The longest answer to the same request.
        asked_hash: The request's hash; the answer may say that this hash is still right.
    """

    __slots__ = ("_verdict", "asked_hash", "own", "shared", "size_bytes")

    def __init__(self, shared: SharedAnswer, asked_hash: str | None = None) -> None:
        self.shared = shared
        self.asked_hash = asked_hash
        self.size_bytes = 0
        self.own: bytearray | None = None
        self._verdict: AnswerVerdict | None = None

    def feed(self, chunk: memoryview) -> None:
        """Append the next bytes of the answer; the caller may reuse the view afterwards."""
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
        """Return all bytes of the answer after the request id."""
        return bytes(self.shared.data[: self.size_bytes] if self.own is None else self.own)

    def told(self, names_wanted: int = 0, matching: TopicsPattern | None = None) -> Told:
        """Parse the complete answer; the result is empty if the bytes are not a list of topics.

        Args:
            names_wanted: The largest number of names to return.
            matching: Selects the names to return.
        """
        wanted = names_wanted, "" if matching is None else matching.text
        told: Told = self._read(wanted, lambda data: _told(data, names_wanted, matching))
        return told

    def verdict(self) -> AnswerVerdict:
        """Verify the complete answer once and free its bytes.

        Best called when the run is over, because verification would delay other clients.
        """
        if self._verdict is None:
            if self.asked_hash is not None and not (told := self.told()).changed:
                self._verdict = _unchanged(told, self.asked_hash, self.shared.full)
            else:
                self._verdict = self._read("verdict", lambda data: _verified(data, self.shared))
            self.own = None
        return self._verdict

    def _read(self, wanted: Hashable, read: Callable[[bytes], Any]) -> Any:  # noqa: ANN401
        """Parse the answer with ``read``, only once for all equal answers."""
        if self.own is not None:
            return read(bytes(self.own))
        known, key = self.shared.known, (self.size_bytes, wanted)
        if key not in known:
            known[key] = read(self.data())
        return known[key]


class AnswerChecker:
    """All list answers that one task received, kept for verification after the run."""

    def __init__(self) -> None:
        # By namespace and kind of question.
        self._shared: dict[tuple[str, str, bool], SharedAnswer] = {}
        self._pending_bytes = 0

    def body(
        self, namespace: Namespace, selection: str = "", asked_hash: str | None = None
    ) -> AnswerBody:
        """Return the object that collects the bytes of a new answer to a list request.

        Args:
            namespace: The namespace, with the known number and hash of all names.
            selection: The pattern and properties of the request; empty for all names.
            asked_hash: The hash in the request.
        """
        key = (namespace.name, selection, asked_hash is not None)
        shared = self._shared.get(key)
        if shared is None:
            # The number and hash of selected names are not known in advance.
            known = namespace
            if selection or namespace.changes:
                known = Namespace(name=namespace.name, changes=namespace.changes)
            shared = self._shared[key] = SharedAnswer(known)
            # An answer without names has to fit the answer to the same question without a hash.
            shared.full = self._shared.get((*key[:2], False), shared)
        return AnswerBody(shared, asked_hash)

    def submit(self, body: AnswerBody) -> AnswerBody:
        """Keep a complete answer to verify it later; verify it now if too many bytes are kept."""
        if body.own is not None:
            self._pending_bytes += len(body.own)
            if self._pending_bytes > PENDING_LIMIT_BYTES:
                self._pending_bytes -= len(body.own)
                body.verdict()
        return body


def parse_answer(body: bytes) -> pb.CommandGetTopicsOfNamespaceResponse:
    """Parse a listing from its bytes after the request id.

    Raises:
        DecodeError: The bytes are no GET_TOPICS_OF_NAMESPACE_RESPONSE.
    """
    return pb.CommandGetTopicsOfNamespaceResponse.FromString(_ANY_REQUEST_ID + body)


def _told(data: bytes, names_wanted: int, matching: TopicsPattern | None) -> Told:
    try:
        response = parse_answer(data)
    except DecodeError:  # The verdict names the fault.
        return Told()
    names = (each for each in response.topics if matching is None or matching.matches(each))
    told_hash = response.topics_hash if response.HasField("topics_hash") else None
    first = [*islice(names, names_wanted)]
    return Told(told_hash, response.changed, len(response.topics), first)


def _unchanged(told: Told, asked_hash: str, full: SharedAnswer) -> AnswerVerdict:
    """Verify an answer without names, which says that the hash in the client's request is right."""
    known = full.reference.hash if full.reference is not None else full.expectation.hash
    problem = None
    if told.topics:
        problem = f"says that nothing changed, and lists {told.topics} topics"
    elif known is not None and asked_hash != known:
        problem = f"says that nothing changed behind hash {asked_hash}, its names have {known}"
    return AnswerVerdict(None, "", problem)


def _verified(data: bytes, shared: SharedAnswer) -> AnswerVerdict:
    """Verify a full listing, and check that it agrees with earlier answers to the same request."""
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
    """Verify a listing: its own hash, and the number and hash that its names should have.

    The bytes are a CommandGetTopicsOfNamespaceResponse after the request id.
    """
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
