"""A listing request, from estimate to outbound queue, with each refusal."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import proto.PulsarApi_pb2 as pb
from broker.listing import rules
from broker.listing.estimates import ListingEstimates
from broker.listing.handler import MAX_WAITS, GetTopicsHandler
from broker.listing.lister import TopicLister
from broker.listing.rules import AnswerRules
from broker.patterns.filter import PatternFilter, PatternRules
from broker.patterns.pattern import RegexImplementation
from broker.stores.changes import StoreError, TopicChanges
from broker.stores.memory import MemoryStore
from broker.topic_lists import tree
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from limiter.memory.response_memory import PrivateMemory, SharedMemory
from limiter.memory.size_estimate import SizeEstimate
from proto import topics_response
from proto.frames import DEFAULT_MAX_MESSAGE_BYTES
from proto.names import NamespaceName
from proto.topic_hash import topics_hash
from proto.transport.connection import Connection
from server.configuration.common import Profile
from server.connection.request_errors import RequestError, UnansweredRequestError
from server.tasks.cooperative import Steps
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started
from tests.support.processes.cluster import held, topic_names
from tests.support.processes.commands import Wire

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

NAMESPACE = NamespaceName.parse("tenant/ns")
NAMES = topic_names("tenant/ns", 100)
ESTIMATE = sum(len(name) + 32 for name in NAMES)
HASH = topics_hash(NAMES)
MODE = pb.CommandGetTopicsOfNamespace
HEAP, DIRECT = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY
PLENTY = 1_000_000


class Setup:
    """A handler over a store in memory, and a connection without a socket."""

    def __init__(
        self,
        heap: int = PLENTY,
        direct: int = PLENTY,
        *,
        as_shipped: bool = False,
        estimate: SizeEstimate = SizeEstimate.EXACT,
        pattern_length: int = 50,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
        queue: int = 10,
        timeout_seconds: float = 25,
        admission: AdmissionPolicy = AdmissionPolicy.FIFO,
        private: bool = False,
    ) -> None:
        self.clock = ManualClock()
        self.limiter = AsyncDualMemoryLimiter(
            MemoryLimit(heap, queue, timeout_seconds),
            MemoryLimit(direct, queue, timeout_seconds),
            self.clock,
            rules=AdmissionRules(admission),
        )
        self.store = MemoryStore()
        lister = TopicLister(self.store)
        pattern_filter = PatternFilter(
            PatternRules(
                enabled=pattern_length > 0,
                max_length=pattern_length,
                implementation=RegexImplementation.RE2J_WITH_JDK_FALLBACK,
                share=not as_shipped,
                timeout_seconds=1.0,
            ),
        )
        private = private or as_shipped
        self.memory = PrivateMemory(self.limiter) if private else SharedMemory(self.limiter)
        self.handler = GetTopicsHandler(
            lister,
            pattern_filter,
            ListingEstimates(estimate, lister, anyone_resets=as_shipped),
            self.memory,
            AnswerRules.of(
                Profile.PULSAR if as_shipped else Profile.FLOODGATE,
                private_buffers=private,
                max_message_bytes=max_message_bytes,
            ),
        )
        self.wire = Wire(Connection())

    async def fill(self, names: Sequence[str] = NAMES) -> Self:
        await self.store.apply(NAMESPACE, TopicChanges([name.encode() for name in names]))
        return self

    async def serve(self, request_id: int = 1, **fields: object) -> None:
        request = MODE(request_id=request_id, namespace=str(NAMESPACE), **fields)
        properties = self.handler.properties_of(request)
        await self.handler.serve(request, NAMESPACE, self.wire.cnx, properties)

    def answer(self) -> pb.CommandGetTopicsOfNamespaceResponse:
        """Return the single answer."""
        (command,) = self.wire.answers()
        assert command.type == pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE
        return command.getTopicsOfNamespaceResponse


async def refused(setup: Setup, **fields: object) -> RequestError:
    with pytest.raises(RequestError) as caught:
        await setup.serve(**fields)
    assert setup.wire.answers() == []
    return caught.value


@pytest.fixture
async def setup() -> Setup:
    return await Setup().fill()


@pytest.mark.parametrize("as_shipped", [False, True])
async def test_a_listing_is_answered_and_all_its_permits_are_released(as_shipped: bool) -> None:
    setup = await Setup(as_shipped=as_shipped).fill()
    await setup.serve(7)
    answer = setup.answer()
    assert list(answer.topics) == NAMES
    assert (answer.request_id, answer.topics_hash) == (7, HASH)
    assert (answer.filtered, answer.changed) == (False, True)
    assert held(setup.limiter) == {}


@pytest.mark.parametrize("as_shipped", [False, True])
async def test_the_direct_permit_is_held_until_the_kernel_has_the_last_byte(as_shipped) -> None:
    setup = await Setup(as_shipped=as_shipped).fill()
    setup.wire.transport.reads_at_once = False
    await setup.serve()
    size = setup.wire.transport.get_write_buffer_size()
    assert held(setup.limiter) == {"direct bytes": size - 8}
    setup.wire.transport.peer_reads(size - 1)
    assert held(setup.limiter) == {"direct bytes": size - 8}
    setup.wire.transport.peer_reads(1)
    assert held(setup.limiter) == {}


async def test_a_shared_answer_is_charged_once_and_private_answers_each() -> None:
    for as_shipped, times in ((False, 1), (True, 3)):
        setup = await Setup(as_shipped=as_shipped).fill()
        setup.wire.transport.reads_at_once = False
        for number in range(3):
            await setup.serve(number)
        one = setup.wire.transport.get_write_buffer_size() - 8
        assert setup.limiter.acquired_permits(DIRECT) // one == times


@pytest.mark.parametrize("waits", [False, True])
async def test_answers_that_differ_only_in_request_id_length_share_a_charge(
    setup: Setup, waits: bool
) -> None:
    setup.wire.transport.reads_at_once = False
    blocker = await setup.limiter.acquire(DIRECT, PLENTY) if waits else None
    tasks = [await started(setup.serve(number)) for number in (127, 128)]
    if blocker is not None:
        setup.limiter.release(blocker)
    await asyncio.gather(*tasks)
    size = setup.wire.transport.get_write_buffer_size() - 8
    assert held(setup.limiter) == {"direct bytes": size}
    setup.wire.transport.reads_at_once = True
    setup.wire.transport.peer_reads(2 * size)
    assert len(setup.wire.answers()) == 2


async def test_heap_is_charged_once_for_the_listing_and_once_for_each_distinct_pattern(
    setup: Setup,
) -> None:
    snapshot, may_go_on = setup.store.snapshot, asyncio.Event()

    async def later(namespace: NamespaceName) -> object:
        await may_go_on.wait()
        return await snapshot(namespace)

    setup.store.snapshot = later
    patterns = (None, "a/b/.*1", "a/b/.*2", "a/b/.*2")
    requests = [{} if pattern is None else {"topics_pattern": pattern} for pattern in patterns]
    waiting = [
        await started(setup.serve(number, **fields)) for number, fields in enumerate(requests)
    ]
    # A charge for the listing, and a charge for each distinct pattern
    assert setup.limiter.acquired_permits(HEAP) == 3 * ESTIMATE
    may_go_on.set()
    await asyncio.gather(*waiting)
    assert held(setup.limiter) == {}


async def test_a_missing_namespace_is_answered_with_an_empty_listing() -> None:
    setup = Setup()
    await setup.serve()
    answer = setup.answer()
    assert list(answer.topics) == []
    assert (answer.topics_hash, answer.changed) == ("00000000", True)


async def test_a_matching_topics_hash_is_answered_unchanged_without_topics(setup: Setup) -> None:
    await setup.serve(topics_hash=HASH)
    answer = setup.answer()
    assert list(answer.topics) == []
    assert (answer.topics_hash, answer.changed) == (HASH, False)


@pytest.mark.parametrize("wrong", ["", "00000000", HASH.upper() + "0"])
async def test_a_different_topics_hash_is_answered_with_all_topics(
    setup: Setup, wrong: str
) -> None:
    await setup.serve(topics_hash=wrong)
    answer = setup.answer()
    assert list(answer.topics) == NAMES
    assert answer.changed


@pytest.mark.parametrize("as_shipped", [False, True])
@pytest.mark.parametrize("pattern", ["tenant/ns/.*7", "persistent://tenant/ns/.*7"])
async def test_the_broker_filters_a_listing_by_its_pattern(pattern: str, as_shipped: bool) -> None:
    setup = await Setup(as_shipped=as_shipped).fill()
    kept = [name for name in NAMES if name.endswith("7")]
    await setup.serve(topics_pattern=pattern)
    answer = setup.answer()
    assert list(answer.topics) == kept
    assert (answer.filtered, answer.topics_hash) == (True, topics_hash(kept))


async def test_the_hash_of_a_filtered_listing_is_answered_unchanged(setup: Setup) -> None:
    kept = [name for name in NAMES if name.endswith("7")]
    await setup.serve(topics_pattern="tenant/ns/.*7", topics_hash=topics_hash(kept))
    answer = setup.answer()
    assert (list(answer.topics), answer.filtered, answer.changed) == ([], True, False)


@pytest.mark.parametrize("longest", [0, 5])
async def test_a_pattern_that_the_broker_does_not_evaluate_filters_no_topics(longest: int) -> None:
    setup = await Setup(pattern_length=longest).fill()
    await setup.serve(topics_pattern="tenant/ns/.*7")
    answer = setup.answer()
    assert list(answer.topics) == NAMES
    assert not answer.filtered


@pytest.mark.parametrize("pattern", ["[", "kafka://tenant/ns/.*", "(?P<x"])
async def test_a_pattern_that_cannot_be_compiled_is_a_metadata_error(pattern: str) -> None:
    setup = await Setup().fill()
    error = await refused(setup, topics_pattern=pattern)
    assert error.server_error == pb.MetadataError
    assert held(setup.limiter) == {}


async def test_a_failing_store_is_a_metadata_error() -> None:
    setup = Setup()

    async def fail(_: NamespaceName) -> None:
        raise StoreError("the disk is full")

    setup.store.snapshot = fail
    error = await refused(setup)
    assert (error.server_error, error.message) == (pb.MetadataError, "the disk is full")
    assert held(setup.limiter) == {}


@pytest.mark.parametrize(
    ("as_shipped", "estimate", "expected"),
    [
        (False, SizeEstimate.EXACT, [ESTIMATE, ESTIMATE, ESTIMATE]),
        (True, SizeEstimate.LAST, [10_240, ESTIMATE, ESTIMATE]),
        (True, SizeEstimate.PROPOSAL, [1_024, 1_024, 1_024]),
    ],
)
async def test_a_listing_reserves_the_heap_of_its_estimate(as_shipped, estimate, expected) -> None:
    setup, during = await Setup(as_shipped=as_shipped, estimate=estimate).fill(), []
    find = setup.store.snapshot

    async def look(namespace: NamespaceName) -> object:
        during.append(setup.limiter.acquired_permits(HEAP))
        return await find(namespace)

    setup.store.snapshot = look
    for number in range(3):
        await setup.serve(number)
    assert during == expected


async def test_a_failed_first_measurement_resumes_the_waiting_listings() -> None:
    setup = await Setup(as_shipped=True, estimate=SizeEstimate.LAST).fill()
    all_of_it = await setup.limiter.acquire(HEAP, PLENTY)
    first = await started(setup.serve(1))
    second = await started(setup.serve(2))
    assert setup.limiter.queue_size(HEAP) == 1
    first.cancel()
    await settle()
    assert setup.limiter.queue_size(HEAP) == 1
    setup.limiter.release(all_of_it)
    await second
    assert setup.answer().request_id == 2


@pytest.mark.parametrize("as_shipped", [False, True])
async def test_a_full_heap_queue_is_answered_too_many_requests(as_shipped: bool) -> None:
    setup = await Setup(as_shipped=as_shipped, queue=1).fill()
    all_of_it = await setup.limiter.acquire(HEAP, PLENTY)
    waiting = await started(setup.limiter.acquire(HEAP, 1))
    error = await refused(setup)
    assert error.server_error == pb.TooManyRequests
    assert error.message == "Failed due to heap memory limit exceeded"
    setup.limiter.release(all_of_it)
    setup.limiter.release(await waiting)
    assert held(setup.limiter) == {}


@pytest.mark.parametrize(("as_shipped", "heap"), [(False, 0), (True, ESTIMATE)])
async def test_a_wait_for_direct_memory_keeps_the_heap_permit_only_in_profile_pulsar(
    as_shipped, heap
) -> None:
    setup = await Setup(as_shipped=as_shipped).fill()
    all_of_it = await setup.limiter.acquire(DIRECT, PLENTY)
    waiting = await started(refused(setup))
    assert setup.limiter.acquired_permits(HEAP) == heap
    setup.clock.advance(25)
    error = await waiting
    assert error.server_error == pb.TooManyRequests
    assert error.message == "Cannot acquire permits for direct memory"
    setup.limiter.release(all_of_it)
    assert held(setup.limiter) == {}


async def waiting_for_direct_memory(setup: Setup, times: int) -> tuple[object, list[object]]:
    """Start listings waiting for direct memory; return the awaited permit and their tasks."""
    everything = await setup.limiter.acquire(DIRECT, PLENTY)
    return everything, [await started(setup.serve(1 + number)) for number in range(times)]


@pytest.mark.parametrize(("private", "charges"), [(False, 1), (True, 3)])
async def test_waiters_for_direct_memory_are_charged_once_if_shared_and_each_if_private(
    private: bool, charges: int
) -> None:
    setup = await Setup(private=private).fill()
    setup.wire.transport.reads_at_once = False
    everything, waiting = await waiting_for_direct_memory(setup, 3)
    setup.limiter.release(everything)
    await asyncio.gather(*waiting)
    size = setup.wire.transport.get_write_buffer_size() - 8
    assert held(setup.limiter) == {"direct bytes": charges * size}
    setup.wire.transport.reads_at_once = True
    setup.wire.transport.peer_reads(3 * PLENTY)
    assert len(setup.wire.answers()) == 3
    assert held(setup.limiter) == {}


@pytest.mark.parametrize("private", [False, True])
async def test_a_listing_that_grew_during_its_wait_is_answered_in_full(private: bool) -> None:
    setup = await Setup(private=private).fill()
    everything, waiting = await waiting_for_direct_memory(setup, 2)
    more = topic_names("tenant/ns-more", 50)
    await setup.fill(more)
    setup.limiter.release(everything)
    await asyncio.gather(*waiting)
    answers = [one.getTopicsOfNamespaceResponse for one in setup.wire.answers()]
    assert [sorted(one.topics) for one in answers] == [sorted(NAMES + more)] * 2
    assert held(setup.limiter) == {}


async def test_a_listing_that_grows_at_every_grant_is_refused_after_a_maximum_of_waits() -> None:
    # The listing grows at each attempt, and concurrent requests take the free memory
    setup = await Setup().fill()
    snapshot, others = setup.store.snapshot, []

    async def grown(namespace: NamespaceName) -> object:
        await setup.fill(topic_names(f"tenant/ns-{len(others)}", 1))
        if (free := setup.limiter.available_permits(DIRECT)) > 0:
            others.append(await setup.limiter.acquire(DIRECT, free))
        return await snapshot(namespace)

    setup.store.snapshot = grown
    waiting = await started(refused(setup))
    for _ in range(MAX_WAITS):
        setup.limiter.release(others[-1])
        await settle()
    assert (await waiting).message == "Cannot acquire permits for direct memory"
    assert len(others) == 1 + MAX_WAITS
    for one in others:
        setup.limiter.release(one)
    assert held(setup.limiter) == {}


async def test_a_client_leaving_while_its_answer_is_remade_holds_no_permits(setup: Setup) -> None:
    everything, (waiting,) = await waiting_for_direct_memory(setup, 1)
    all_heap = await setup.limiter.acquire(HEAP, PLENTY)
    setup.limiter.release(everything)
    await settle()
    assert setup.limiter.acquired_permits(DIRECT) > 0
    setup.memory.cancel_owner(setup.wire.cnx)
    assert setup.limiter.acquired_permits(DIRECT) == 0
    setup.limiter.release(all_heap)
    waiting.cancel()
    await settle()
    assert held(setup.limiter) == {}


async def test_a_refused_heap_permit_releases_the_direct_permit_acquired_before() -> None:
    setup = await Setup().fill()
    everything, (waiting,) = await waiting_for_direct_memory(setup, 1)
    all_heap = await setup.limiter.acquire(HEAP, PLENTY)
    setup.limiter.release(everything)
    await settle()
    setup.clock.advance(25)
    with pytest.raises(RequestError, match="heap memory limit exceeded"):
        await waiting
    setup.limiter.release(all_heap)
    assert held(setup.limiter) == {}


async def test_profile_pulsar_refuses_an_oversized_list_once_and_then_answers_nothing() -> None:
    shipped = Setup(heap=ESTIMATE - 1, as_shipped=True, estimate=SizeEstimate.PROPOSAL)
    last = Setup(heap=10_240, as_shipped=True, estimate=SizeEstimate.LAST)
    names = topic_names("tenant/ns", 300)
    for setup in (await shipped.fill(), last):
        await setup.fill(names)
        first = await refused(setup)
        assert first.server_error == pb.MetadataError
        assert first.message.startswith("java.lang.IllegalArgumentException: Requested permits=")
        assert held(setup.limiter) == {}
    with pytest.raises(UnansweredRequestError):
        await last.serve(2)
    assert held(last.limiter) == {}


async def test_a_listing_above_the_direct_limit_is_refused_with_the_error_of_each_profile() -> None:
    ours, shipped = Setup(direct=2_000), Setup(direct=2_000, as_shipped=True)
    own = await refused(await ours.fill())
    theirs = await refused(await shipped.fill())
    assert own.server_error == pb.TooManyRequests
    assert "limit of 2000 bytes: raise maxTopicListInFlightDirectMemSizeMB" in own.message
    assert theirs.server_error == pb.MetadataError
    assert held(ours.limiter) == held(shipped.limiter) == {}


async def test_requests_for_a_pattern_share_its_evaluation_when_the_first_is_cancelled() -> None:
    setup = await Setup().fill(topic_names("tenant/ns", 5_000, 100))
    listing = (await setup.store.snapshot(NAMESPACE)).listing(MODE.PERSISTENT)
    shared = setup.handler._pattern_filter
    asked = [
        asyncio.get_running_loop().create_task(shared.filter(listing, "tenant/ns/.*7x*"))
        for _ in range(3)
    ]
    await asyncio.sleep(0)
    asked[0].cancel()
    found = [await task for task in asked[1:]]
    assert len(found[0]) == 500
    assert found[0] is found[1]
    assert len(shared._evaluations) == 0


@pytest.mark.parametrize("as_shipped", [True, False])
async def test_a_request_cancelled_while_awaiting_the_first_size_resets_no_measurement(
    as_shipped,
) -> None:
    setup = await Setup(as_shipped=as_shipped, estimate=SizeEstimate.LAST).fill()
    all_of_it = await setup.limiter.acquire(HEAP, PLENTY)
    first, leaves, stays = [await started(setup.serve(number)) for number in range(3)]
    leaves.cancel()
    await settle()
    assert setup.limiter.queue_size(HEAP) == 1
    setup.limiter.release(all_of_it)
    await asyncio.gather(first, stays)
    assert [one.getTopicsOfNamespaceResponse.request_id for one in setup.wire.answers()] == [0, 2]
    assert held(setup.limiter) == {}


async def test_profile_pulsar_with_exact_estimates_refuses_once_and_then_never_answers() -> None:
    setup = await Setup(heap=ESTIMATE - 1, as_shipped=True).fill()
    first = await refused(setup)
    assert first.server_error == pb.MetadataError
    for number in (2, 3):
        with pytest.raises(UnansweredRequestError):
            await setup.serve(number)
    assert held(setup.limiter) == {}


@pytest.mark.parametrize(
    ("as_shipped", "waiting"), [(True, 2), (False, 1)], ids=["as shipped", "ours"]
)
async def test_a_failure_resets_the_measurement_of_another_request_only_in_profile_pulsar(
    as_shipped, waiting
) -> None:
    # A request estimated from a failed measurement, then a measuring request and a follower
    setup = Setup(as_shipped=as_shipped, estimate=SizeEstimate.LAST)
    setup.memory = setup.handler._memory = PrivateMemory(setup.limiter)
    await setup.fill()
    all_of_it = await setup.limiter.acquire(HEAP, PLENTY)
    first, second = [await started(setup.serve(number)) for number in range(2)]
    first.cancel()
    await settle()
    measures, behind = [await started(setup.serve(number)) for number in (2, 3)]
    assert setup.limiter.queue_size(HEAP) == 2
    second.cancel()
    await settle()
    assert setup.limiter.queue_size(HEAP) == waiting
    setup.limiter.release(all_of_it)
    await asyncio.gather(measures, behind)
    assert held(setup.limiter) == {}


LONG_NAMES = topic_names("tenant/ns", 100, 300)
LONG_FRAME_BYTES = 8 + 2 + 5 + 2 + 100 * (3 + 300) + 14
FRAME_PADDING = 10_240


async def with_long_names(max_message_bytes: int, *, as_shipped: bool = False) -> Setup:
    """Return a setup whose only listing is a frame of LONG_FRAME_BYTES."""
    return await Setup(max_message_bytes=max_message_bytes, as_shipped=as_shipped).fill(LONG_NAMES)


async def test_an_answer_of_exactly_the_frame_limit_is_sent() -> None:
    setup = await with_long_names(LONG_FRAME_BYTES - FRAME_PADDING)
    await setup.serve()
    assert list(setup.answer().topics) == LONG_NAMES


async def test_an_answer_above_the_frame_limit_is_refused_without_a_wait() -> None:
    setup = await with_long_names(LONG_FRAME_BYTES - FRAME_PADDING - 1)
    others = await setup.limiter.acquire(DIRECT, PLENTY)
    error = await refused(setup)
    assert error.server_error == pb.NotAllowedError
    assert error.message == (
        f"the answer of {LONG_FRAME_BYTES} bytes is larger than the frame limit of "
        f"{LONG_FRAME_BYTES - 1} bytes: raise maxMessageSize on broker and proxy, or ask with a "
        "pattern that keeps less"
    )
    setup.limiter.release(others)
    assert held(setup.limiter) == {}


async def test_a_filtered_answer_within_the_frame_limit_is_sent() -> None:
    setup = await with_long_names(1)
    await setup.serve(topics_pattern="tenant/ns/.*1x*")
    assert len(setup.answer().topics) == 10


async def test_a_matching_hash_is_answered_for_a_listing_above_the_frame_limit() -> None:
    setup = await with_long_names(1)
    await setup.serve(topics_hash=topics_hash(LONG_NAMES))
    assert not setup.answer().changed


async def test_profile_pulsar_sends_an_answer_above_the_frame_limit() -> None:
    setup = await with_long_names(1, as_shipped=True)
    await setup.serve()
    assert list(setup.answer().topics) == LONG_NAMES


def ask_at_once(setup: Setup, *, alone: bool = False, **fields: object) -> bool:
    """Send a request that needs no wait; tell whether it was answered."""
    request = MODE(request_id=1, namespace=str(NAMESPACE), **fields)
    return setup.handler.answer_at_once(request, NAMESPACE, setup.wire.cnx, alone=alone)


@pytest.mark.parametrize(("fields", "changed"), [({}, True), ({"topics_hash": "00000000"}, False)])
async def test_an_empty_namespace_is_answered_immediately_even_without_free_memory(
    fields: dict[str, str], changed: bool
) -> None:
    setup = Setup()
    await setup.limiter.acquire(HEAP, PLENTY)
    await setup.limiter.acquire(DIRECT, PLENTY)
    answered = ask_at_once(setup, **fields)
    assert answered
    answer = setup.answer()
    assert (list(answer.topics), answer.topics_hash) == ([], "00000000")
    assert (answer.filtered, answer.changed) == (False, changed)


async def test_the_immediate_answer_of_an_empty_namespace_equals_the_served_answer() -> None:
    at_once, served = Setup(), Setup()
    ask_at_once(at_once)
    await served.serve()
    assert at_once.answer() == served.answer()


@pytest.mark.parametrize("fields", [{"topics_pattern": "((("}, {"topics_pattern": ".*"}])
async def test_a_request_with_a_pattern_is_not_answered_immediately(fields: dict[str, str]) -> None:
    assert not ask_at_once(Setup(), **fields)


async def test_a_namespace_with_topics_or_in_profile_pulsar_is_not_answered_immediately() -> None:
    filled, shipped = await Setup().fill(), Setup(as_shipped=True)
    assert not ask_at_once(filled)
    assert not ask_at_once(shipped)
    assert (filled.wire.answers(), shipped.wire.answers()) == ([], [])


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("fields", [{}, {"topics_hash": HASH}, {"topics_hash": "00000000"}])
async def test_an_immediate_listing_equals_the_served_listing(fields, private) -> None:
    at_once = await Setup(private=private).fill()
    served = await Setup(private=private).fill()
    answered = ask_at_once(at_once, alone=True, **fields)
    await served.serve(**fields)
    assert answered
    assert at_once.answer() == served.answer()
    assert held(at_once.limiter) == {}
    assert at_once.limiter.statistics() == served.limiter.statistics()


async def test_an_immediate_listing_is_charged_until_the_kernel_has_the_last_byte(
    setup: Setup,
) -> None:
    setup.wire.transport.reads_at_once = False
    assert ask_at_once(setup, alone=True)
    size = setup.wire.transport.get_write_buffer_size()
    assert held(setup.limiter) == {"direct bytes": size - 8}
    assert ask_at_once(setup, alone=True)
    assert held(setup.limiter) == {"direct bytes": size - 8}
    for _ in range(2):
        setup.wire.transport.peer_reads(size)
    assert held(setup.limiter) == {}


@pytest.mark.parametrize("budget", [HEAP, DIRECT])
async def test_a_listing_without_free_memory_is_not_answered_immediately(budget: LimitType) -> None:
    setup = await Setup().fill()
    others = await setup.limiter.acquire(budget, PLENTY - ESTIMATE // 2)
    before = setup.limiter.statistics()
    assert not ask_at_once(setup, alone=True)
    assert setup.limiter.statistics() == before
    assert setup.wire.answers() == []
    setup.limiter.release(others)
    assert ask_at_once(setup, alone=True)


async def test_an_oversized_listing_is_not_answered_immediately() -> None:
    too_large_for_heap = await Setup(heap=ESTIMATE - 1).fill()
    too_large_for_a_frame = await with_long_names(1)
    for setup in (too_large_for_heap, too_large_for_a_frame):
        assert not ask_at_once(setup, alone=True)
        assert setup.wire.answers() == []


@pytest.mark.parametrize("estimate", [SizeEstimate.LAST, SizeEstimate.PROPOSAL])
async def test_a_listing_with_a_guessed_size_is_not_answered_immediately(
    estimate: SizeEstimate,
) -> None:
    setup = await Setup(estimate=estimate).fill()
    assert not ask_at_once(setup, alone=True)


async def test_an_immediate_answer_to_a_lost_peer_holds_no_permit(setup: Setup) -> None:
    setup.wire.transport.abort()
    assert ask_at_once(setup, alone=True)
    assert held(setup.limiter) == {}


@pytest.fixture
def small_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Yield the event loop after each 1,000 copied bytes."""
    for one in (rules, topics_response):
        monkeypatch.setattr(one, "COPY_BYTES", 1_000)
    monkeypatch.setattr(tree, "BLOCK_BYTES", 500)
    monkeypatch.setattr(Steps.__init__, "__defaults__", (0,))


@pytest.mark.usefixtures("small_copies")
@pytest.mark.parametrize("as_shipped", [False, True])
async def test_a_large_private_answer_is_copied_in_several_turns_of_the_event_loop(
    as_shipped: bool,
) -> None:
    setup = await Setup(private=True, as_shipped=as_shipped).fill()
    serving, turns = asyncio.ensure_future(setup.serve()), 0
    while not serving.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > ESTIMATE // 2_000
    assert list(setup.answer().topics) == NAMES
    assert held(setup.limiter) == {}


@pytest.mark.usefixtures("small_copies")
async def test_a_large_private_answer_is_not_copied_in_the_turn_of_its_request() -> None:
    setup = await Setup(private=True).fill()
    request = MODE(request_id=1, namespace=str(NAMESPACE))
    assert not setup.handler.answer_at_once(request, NAMESPACE, setup.wire.cnx, alone=True)
    assert held(setup.limiter) == {}


@pytest.mark.usefixtures("small_copies")
async def test_a_request_cancelled_while_its_answer_is_copied_holds_no_permits() -> None:
    setup = await Setup(private=True).fill()
    async with setup.handler._rules.copies._turn:
        serving = await started(setup.serve())
        assert held(setup.limiter)
        serving.cancel()
        await settle()
    assert serving.cancelled()
    assert held(setup.limiter) == {}


async def test_an_immediate_private_answer_is_written_without_shared_blocks(monkeypatch) -> None:
    setup = await Setup(private=True).fill()
    pieces: list[list[bytes]] = []
    monkeypatch.setattr(setup.wire.transport, "writelines", pieces.append)
    assert ask_at_once(setup, alone=True)
    # No block was handed out
    assert pieces == []
    assert list(setup.answer().topics) == NAMES
