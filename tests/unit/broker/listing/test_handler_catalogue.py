"""Upstream's cases of AsyncDualMemoryLimiterUtilTest about writing under a direct permit.

Upstream's acquireDirectMemoryPermitsAndWriteAndFlush is GetTopicsHandler and Connection here:
direct memory of the command's size is acquired, the answer is queued, and the memory is released
when the kernel has the last byte or never will. The error handler is the connection's RequestError.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

import broker.listing.responses
import proto.PulsarApi_pb2 as pb
from broker.errors import NO_DIRECT_MEMORY
from limiter.admission.rules import AdmissionPolicy
from limiter.memory.dual_limiter import LimitType
from proto.topics_response import TopicsResponse
from server.connection.request_errors import RequestError
from tests.support.clocks.settle import settle, started
from tests.support.processes.cluster import held
from tests.unit.broker.listing.test_handler import Setup

DIRECT = LimitType.DIRECT_MEMORY
NAME = "persistent://tenant/ns/topic"


class Writing(Setup):
    """A handler whose only namespace has one topic, and a connection without a socket.

    Two combinations: as shipped (fifo, private bytes for every answer), and fair with answers
    sharing bytes.
    """

    def __init__(
        self, direct: int = 10_000, timeout_seconds: float = 5.0, *, shipped: bool
    ) -> None:
        super().__init__(
            10_000,
            direct,
            as_shipped=shipped,
            queue=100,
            timeout_seconds=timeout_seconds,
            admission=AdmissionPolicy.FIFO if shipped else AdmissionPolicy.FAIR,
        )

    @property
    def writes(self) -> list[int]:
        """The sizes of the writes to the transport."""
        return self.wire.transport.writes


WAYS = pytest.mark.parametrize("shipped", [True, False], ids=["as shipped", "fair, shared"])


@WAYS
async def test_an_answer_is_a_single_write_and_releases_its_direct_memory(shipped: bool) -> None:
    """Upstream: AsyncDualMemoryLimiterUtilTest case 7."""
    writing = await Writing(shipped=shipped).fill([NAME])
    writing.wire.transport.reads_at_once = False
    await writing.serve()
    (size,) = writing.writes
    assert held(writing.limiter) == {"direct bytes": size - 8}
    writing.wire.transport.peer_reads(size)
    assert held(writing.limiter) == {}
    (answer,) = writing.wire.answers()
    assert list(answer.getTopicsOfNamespaceResponse.topics) == [NAME]


@WAYS
async def test_a_direct_memory_timeout_refuses_the_request_without_a_write(shipped: bool) -> None:
    """Upstream: AsyncDualMemoryLimiterUtilTest case 8."""
    writing = await Writing(100, 0.1, shipped=shipped).fill([NAME])
    await writing.limiter.acquire(DIRECT, 100, owner="holder")
    waiting = await started(writing.serve())
    writing.clock.advance(0.1)
    with pytest.raises(RequestError) as caught:
        await waiting
    assert (caught.value.server_error, caught.value.message) == (
        pb.TooManyRequests,
        NO_DIRECT_MEMORY,
    )
    assert writing.writes == []
    assert held(writing.limiter) == {"direct bytes": 100}


def fails_to_assemble(*args: object, **kwargs: object) -> TopicsResponse:
    raise MemoryError("no room to assemble")


def fails_to_join(response: TopicsResponse) -> TopicsResponse:
    raise MemoryError("no room to join")


def write_fails(data: bytes) -> None:
    raise RuntimeError("Write failed")


@pytest.mark.parametrize(
    ("shipped", "owner", "name", "fails"),
    [
        (True, broker.listing.responses, "topics_response", fails_to_assemble),
        (False, broker.listing.responses, "topics_response", fails_to_assemble),
        (True, TopicsResponse, "joined", fails_to_join),
    ],
    ids=["as shipped", "fair, shared", "as shipped, when granted"],
)
async def test_an_answer_that_cannot_be_assembled_fails_and_holds_no_memory(
    shipped: bool,
    owner: object,
    name: str,
    fails: Callable[..., TopicsResponse],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Upstream: AsyncDualMemoryLimiterUtilTest case 9."""
    writing = await Writing(shipped=shipped).fill([NAME])
    monkeypatch.setattr(owner, name, fails)
    with pytest.raises(MemoryError, match="no room"):
        await writing.serve()
    assert writing.writes == []
    assert held(writing.limiter) == {}


@WAYS
async def test_a_failing_write_closes_the_connection_and_releases_its_memory(
    shipped: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Upstream: AsyncDualMemoryLimiterUtilTest case 10.

    The connection fails here, not the request: no bytes may follow half an answer.
    """
    writing = await Writing(shipped=shipped).fill([NAME])
    monkeypatch.setattr(writing.wire.transport, "write", write_fails)
    await writing.serve()
    await settle()
    assert writing.wire.cnx.closed
    assert "Write failed" in caplog.text
    assert held(writing.limiter) == {}


@WAYS
async def test_a_failing_later_write_closes_the_connection_and_releases_its_memory(
    shipped: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Upstream: AsyncDualMemoryLimiterUtilTest case 10, where the peer has to read first."""
    writing = await Writing(shipped=shipped).fill([NAME])
    writing.wire.transport.reads_at_once = False
    await writing.serve(1)
    await writing.serve(2)
    monkeypatch.setattr(writing.wire.transport, "write", write_fails)
    writing.wire.transport.peer_reads(1_000)
    await settle()
    assert writing.wire.cnx.closed
    assert "Write failed" in caplog.text
    assert held(writing.limiter) == {}


@WAYS
async def test_an_answer_for_a_disconnected_peer_is_not_written(shipped: bool) -> None:
    """Upstream: AsyncDualMemoryLimiterUtilTest case 11: its flag is a disconnected peer here."""
    writing = await Writing(100, shipped=shipped).fill([NAME])
    holder = await writing.limiter.acquire(DIRECT, 100, owner="holder")
    waiting = await started(writing.serve())
    writing.memory.cancel_owner(writing.wire.cnx)
    writing.limiter.release(holder)
    with pytest.raises(RequestError, match=NO_DIRECT_MEMORY):
        await waiting
    assert writing.writes == []
    assert held(writing.limiter) == {}


@WAYS
async def test_ten_simultaneous_answers_are_ten_writes_in_order(shipped: bool) -> None:
    """Upstream: AsyncDualMemoryLimiterUtilTest case 12."""
    writing = await Writing(shipped=shipped).fill([NAME])
    await asyncio.gather(*(writing.serve(number) for number in range(10)))
    assert len(writing.writes) == 10
    answers = [answer.getTopicsOfNamespaceResponse for answer in writing.wire.answers()]
    assert [(answer.request_id, *answer.topics) for answer in answers] == [
        (number, NAME) for number in range(10)
    ]
    assert held(writing.limiter) == {}


@WAYS
async def test_losing_the_peer_after_the_answer_was_queued_releases_its_memory(
    shipped: bool,
) -> None:
    """Upstream: AsyncDualMemoryLimiterUtilTest case 13."""
    writing = await Writing(shipped=shipped).fill([NAME])
    writing.wire.transport.reads_at_once = False
    await writing.serve()
    assert writing.limiter.acquired_permits(DIRECT) > 0
    writing.wire.transport.breaks(ConnectionResetError("Socket write failed"))
    assert held(writing.limiter) == {}
    assert writing.wire.answers() == []
