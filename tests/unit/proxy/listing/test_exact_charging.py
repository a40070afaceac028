"""Exact charging: reserve, settle by the announced length, never wait with a body."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

import proto.PulsarApi_pb2 as pb
from limiter.memory.dual_limiter import LimitType, MemoryPermit
from proxy.listing.exact_charging import ExactCharging
from server.connection.request_errors import RequestError, UnansweredRequestError
from tests.support.processes.cluster import held, until
from tests.unit.proxy.listing.charging_setup import (
    BIG,
    COMMAND_BYTES,
    DIRECT,
    HEAP,
    NAMES,
    PLENTY,
    SMALL,
    Setup,
    charging_setup,
)

TEXTS = {
    HEAP: "Failed due to heap memory limit exceeded",
    DIRECT: "Failed due to direct memory limit exceeded",
}
KEYS = {
    HEAP: "maxTopicListInFlightHeapMemSizeMB",
    DIRECT: "maxTopicListInFlightDirectMemSizeMB",
}
RESERVED = 10_240


@asynccontextmanager
async def exact(*, patient: bool, **limits: int) -> AsyncIterator[Setup]:
    async with charging_setup(partial(ExactCharging, patient=patient), **limits) as setup:
        yield setup


async def refused(setup: Setup) -> RequestError:
    with pytest.raises(RequestError) as caught:
        await setup.list_topics()
    return caught.value


@pytest.mark.parametrize("patient", [True, False])
async def test_exactly_the_announced_length_of_an_answer_is_charged(patient: bool) -> None:
    async with exact(patient=patient) as setup:
        topics = [await setup.list_topics(namespace) for namespace in (BIG, BIG, SMALL)]
        assert topics == [NAMES, NAMES, setup.broker.names[SMALL]]
        big, again, (heap, direct) = setup.held
        assert big == again == (COMMAND_BYTES, COMMAND_BYTES)
        assert heap == direct < 200
        assert held(setup.limiter) == {}


@pytest.mark.parametrize("lacking", list(LimitType))
async def test_profile_pulsar_immediately_refuses_an_answer_without_enough_free_permits(
    lacking,
) -> None:
    async with exact(patient=False) as setup:
        others = await setup.limiter.acquire(lacking, PLENTY - COMMAND_BYTES + 1)
        error = await refused(setup)
        assert (error.server_error, error.message) == (pb.TooManyRequests, TEXTS[lacking])
        assert setup.broker.requests == [BIG]
        assert held(setup.limiter) == {f"{lacking.value} bytes": others.size}


@pytest.mark.parametrize("lacking", list(LimitType))
async def test_profile_pulsar_refuses_an_answer_without_permits_while_the_queue_is_full(
    lacking, monkeypatch
) -> None:
    async with exact(patient=False, queue=1) as setup:
        others = await setup.limiter.acquire(lacking, PLENTY - RESERVED)
        answer, waiting = setup.broker.answer, list[asyncio.Task[MemoryPermit]]()

        def answer_when_somebody_waits(request: pb.CommandGetTopicsOfNamespace) -> bytes:
            assert setup.acquired(lacking) == PLENTY
            waiting.append(asyncio.create_task(setup.limiter.acquire(lacking, PLENTY)))
            return answer(request)

        monkeypatch.setattr(setup.broker, "answer", answer_when_somebody_waits)
        error = await refused(setup)
        assert error.message == TEXTS[lacking]
        setup.limiter.release(others)
        (waited,) = waiting
        setup.limiter.release(await waited)
        assert held(setup.limiter) == {}


async def test_the_connection_stays_usable_after_a_refused_answer_is_drained() -> None:
    async with exact(patient=False, heap=COMMAND_BYTES) as setup:
        others = await setup.limiter.acquire(HEAP, COMMAND_BYTES - RESERVED)
        await refused(setup)
        topics = await setup.list_topics(SMALL)
        assert topics == setup.broker.names[SMALL]
        assert len(setup.broker.peers) == 1
        setup.limiter.release(others)


async def test_in_profile_pulsar_the_next_request_first_waits_for_the_known_size() -> None:
    async with exact(patient=False) as setup:
        others = await setup.limiter.acquire(HEAP, PLENTY - COMMAND_BYTES + 1)
        await refused(setup)
        asking = asyncio.create_task(setup.list_topics())
        await until(lambda: setup.limiter.queue_size(HEAP) == 1)
        forwarded = list(setup.broker.requests)
        setup.limiter.release(others)
        assert await asking == NAMES
        assert forwarded == [BIG]
        assert setup.broker.requests == [BIG, BIG]


@pytest.mark.parametrize("lacking", list(LimitType))
async def test_profile_floodgate_sends_the_request_again_once_the_true_size_is_granted(
    lacking: LimitType,
) -> None:
    async with exact(patient=True) as setup:
        others = await setup.limiter.acquire(lacking, PLENTY - COMMAND_BYTES + 1)
        asking = asyncio.create_task(setup.list_topics())
        await until(lambda: setup.limiter.queue_size(lacking) == 1)
        await until(lambda: setup.broker.requests == [BIG])
        setup.limiter.release(others)
        assert await asking == NAMES
        assert setup.broker.requests == [BIG, BIG]
        assert held(setup.limiter) == {}


@pytest.mark.parametrize(("patient", "heap"), [(True, 0), (False, RESERVED)])
async def test_only_profile_pulsar_holds_heap_permits_while_waiting_for_direct_memory(
    patient: bool, heap: int
) -> None:
    async with exact(patient=patient) as setup:
        others = await setup.limiter.acquire(DIRECT, PLENTY)
        asking = asyncio.create_task(setup.list_topics(SMALL))
        await until(lambda: setup.limiter.queue_size(DIRECT) == 1)
        assert setup.limiter.acquired_permits(HEAP) == heap
        setup.limiter.release(others)
        assert await asking == setup.broker.names[SMALL]
        assert held(setup.limiter) == {}


@pytest.mark.parametrize("limited", list(LimitType))
async def test_profile_pulsar_never_answers_a_listing_larger_than_a_limit(
    limited: LimitType,
) -> None:
    limits = {limited.value: COMMAND_BYTES - 1}
    async with exact(patient=False, **limits) as setup:
        for _ in range(3):
            with pytest.raises(UnansweredRequestError) as caught:
                await setup.list_topics()
            assert str(caught.value) == (
                f"Requested permits={COMMAND_BYTES} is larger than maxPermits={COMMAND_BYTES - 1}"
            )
            assert held(setup.limiter) == {}
        assert setup.broker.requests == [BIG] * 3


@pytest.mark.parametrize("limited", list(LimitType))
async def test_profile_floodgate_immediately_refuses_a_listing_larger_than_a_limit_every_time(
    limited,
) -> None:
    # The other budget has not enough left to read the answer
    (other,) = set(LimitType) - {limited}
    limits = {limited.value: COMMAND_BYTES - 1}
    async with exact(patient=True, **limits) as setup:
        others = await setup.limiter.acquire(other, PLENTY - RESERVED)
        for _ in range(3):
            error = await refused(setup)
            assert error.server_error == pb.TooManyRequests
            assert error.message == (
                f"the topic list of {COMMAND_BYTES} bytes is larger than the proxy's limit of "
                f"{COMMAND_BYTES - 1} bytes: raise {KEYS[limited]}"
            )
            assert held(setup.limiter) == {f"{other.value} bytes": others.size}
        assert setup.broker.requests == [BIG] * 3


@pytest.mark.parametrize("patient", [True, False])
async def test_a_namespace_that_shrank_below_the_limit_is_answered_again(patient: bool) -> None:
    # Sizes above a limit are remembered neither before nor after a fitting size
    async with exact(patient=patient, heap=COMMAND_BYTES - 1) as setup:
        expected = RequestError if patient else UnansweredRequestError
        with pytest.raises(expected):
            await setup.list_topics()
        setup.broker.names[BIG] = NAMES[:10]
        setup.broker._bodies.clear()
        assert await setup.list_topics() == NAMES[:10]


@pytest.mark.parametrize(
    "selective",
    [
        {"topics_pattern": ".*"},
        {"topics_hash": "00000000"},
        {"properties": [pb.KeyValue(key="team", value="x")]},
    ],
    ids=lambda fields: next(iter(fields)),
)
async def test_the_size_of_a_whole_listing_does_not_predict_a_selective_listing(
    selective: dict,
) -> None:
    async with exact(patient=True) as setup:
        await setup.list_topics()
        whole = pb.CommandGetTopicsOfNamespace(request_id=1, namespace=BIG)
        part = pb.CommandGetTopicsOfNamespace(request_id=1, namespace=BIG, **selective)
        assert setup.charging.expected_bytes(whole) == COMMAND_BYTES
        assert setup.charging.expected_bytes(part) is None
