"""Charging as shipped: an estimate first, then the names, then direct memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

import proto.PulsarApi_pb2 as pb
from limiter.memory.dual_limiter import LimitType
from limiter.memory.size_estimate import SizeEstimate
from proxy.listing.pulsar_charging import PulsarCharging
from server.connection.request_errors import RequestError, UnansweredRequestError
from tests.support.clocks.settle import settle, started
from tests.support.processes.cluster import held, until
from tests.unit.proxy.listing.charging_setup import (
    BIG,
    COMMAND_BYTES,
    DIRECT,
    ESTIMATE_BYTES,
    HEAP,
    NAME_BYTES,
    NAMES,
    PLENTY,
    Setup,
    charging_setup,
)

LAST, PROPOSAL = SizeEstimate.LAST, SizeEstimate.PROPOSAL
TEXTS = {
    HEAP: "Failed due to heap memory limit exceeded",
    DIRECT: "Failed due to direct memory limit exceeded",
}


@asynccontextmanager
async def shipped(
    *, mended: bool = False, policy: SizeEstimate = LAST, **limits: int
) -> AsyncIterator[Setup]:
    make = partial(PulsarCharging, policy=policy, mended=mended)
    async with charging_setup(make, **limits) as setup:
        yield setup


async def refused(setup: Setup) -> RequestError:
    with pytest.raises(RequestError) as caught:
        await setup.list_topics()
    return caught.value


def too_large(size_bytes: int, limit_bytes: int) -> str:
    return f"Requested permits={size_bytes} is larger than maxPermits={limit_bytes}"


@pytest.mark.parametrize("mended", [True, False])
@pytest.mark.parametrize(
    ("policy", "reserved", "charged"),
    [
        (LAST, [10_240, ESTIMATE_BYTES], ESTIMATE_BYTES),
        (PROPOSAL, [1_024, 1_024], NAME_BYTES),
    ],
)
async def test_each_size_estimate_policy_reserves_and_charges_its_own_sizes(
    policy: SizeEstimate, reserved: list[int], charged: int, mended: bool
) -> None:
    async with shipped(policy=policy, mended=mended) as setup:
        seen, answer = [], setup.broker.answer

        def look(request: pb.CommandGetTopicsOfNamespace) -> bytes:
            seen.append(setup.acquired(HEAP))
            return answer(request)

        setup.broker.answer = look
        topics = [await setup.list_topics() for _ in range(2)]
        assert topics == [NAMES, NAMES]
        assert seen == reserved
        assert setup.held == [(charged, COMMAND_BYTES)] * 2
        assert held(setup.limiter) == {}


# -- listings larger than a limit, as shipped ----------------------------------------------------


async def test_in_profile_pulsar_only_the_first_listing_above_the_heap_limit_is_refused() -> None:
    limit = ESTIMATE_BYTES - 1
    async with shipped(heap=limit) as setup:
        first = await refused(setup)
        assert first.server_error == pb.ServiceNotReady
        assert first.message == (
            f"java.lang.IllegalArgumentException: {too_large(ESTIMATE_BYTES, limit)}"
        )
        for _ in range(2):
            with pytest.raises(UnansweredRequestError) as caught:
                await setup.list_topics()
            assert str(caught.value) == too_large(ESTIMATE_BYTES, limit)
            assert held(setup.limiter) == {}
        assert setup.broker.requests == [BIG]


async def test_policy_proposal_refuses_a_listing_above_the_heap_limit_every_time() -> None:
    async with shipped(policy=PROPOSAL, heap=NAME_BYTES - 1) as setup:
        errors = [await refused(setup) for _ in range(3)]
        assert {error.server_error for error in errors} == {pb.ServiceNotReady}
        assert held(setup.limiter) == {}


async def test_in_profile_pulsar_a_listing_above_the_direct_memory_limit_is_never_answered() -> (
    None
):
    async with shipped(direct=COMMAND_BYTES - 1) as setup:
        for _ in range(3):
            with pytest.raises(UnansweredRequestError) as caught:
                await setup.list_topics()
            assert str(caught.value) == too_large(COMMAND_BYTES, COMMAND_BYTES - 1)
            assert held(setup.limiter) == {}
        assert setup.broker.requests == [BIG] * 3


async def test_in_profile_pulsar_a_refused_namespace_stays_unanswered_after_shrinking() -> None:
    async with shipped(heap=ESTIMATE_BYTES - 1) as setup:
        await refused(setup)
        setup.broker.names[BIG] = NAMES[:10]
        setup.broker._bodies.clear()
        with pytest.raises(UnansweredRequestError):
            await setup.list_topics()


# -- listings larger than a limit, mended --------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "limits", "size", "key"),
    [
        (LAST, {"heap": ESTIMATE_BYTES - 1}, ESTIMATE_BYTES, "maxTopicListInFlightHeapMemSizeMB"),
        (LAST, {"heap": COMMAND_BYTES - 1}, COMMAND_BYTES, "maxTopicListInFlightHeapMemSizeMB"),
        (LAST, {"direct": COMMAND_BYTES - 1}, COMMAND_BYTES, "maxTopicListInFlightDirectMemSizeMB"),
        (PROPOSAL, {"heap": NAME_BYTES - 1}, COMMAND_BYTES, "maxTopicListInFlightHeapMemSizeMB"),
        (
            PROPOSAL,
            {"direct": COMMAND_BYTES - 1},
            COMMAND_BYTES,
            "maxTopicListInFlightDirectMemSizeMB",
        ),
    ],
)
async def test_mended_charging_refuses_with_the_size_the_limit_and_the_configuration_key_every_time(
    policy, limits, size, key
) -> None:
    async with shipped(mended=True, policy=policy, **limits) as setup:
        (limit,) = limits.values()
        for _ in range(3):
            error = await refused(setup)
            assert error.server_error == pb.TooManyRequests
            assert error.message == (
                f"the topic list of {size} bytes is larger than the proxy's limit of {limit} "
                f"bytes: raise {key}"
            )
            assert held(setup.limiter) == {}
        assert setup.broker.requests == [BIG] * 3


@pytest.mark.parametrize("limit", [ESTIMATE_BYTES - 1, COMMAND_BYTES - 1])
async def test_mended_charging_answers_a_namespace_that_shrank_below_the_limit(limit: int) -> None:
    async with shipped(mended=True, heap=limit) as setup:
        await refused(setup)
        setup.broker.names[BIG] = NAMES[:10]
        setup.broker._bodies.clear()
        assert await setup.list_topics() == NAMES[:10]


# -- waits for permits ---------------------------------------------------------------------------

WAITS = pytest.mark.parametrize(
    ("budget", "left"),
    [(HEAP, 10_239), (HEAP, ESTIMATE_BYTES - 1), (DIRECT, COMMAND_BYTES - 1)],
    ids=["estimate", "names", "direct"],
)


@pytest.mark.parametrize("mended", [True, False])
@WAITS
async def test_a_timed_out_wait_for_permits_is_refused_with_too_many_requests(
    budget, left, mended
) -> None:
    async with shipped(mended=mended) as setup:
        others = await setup.limiter.acquire(budget, PLENTY - left)
        asking = asyncio.create_task(refused(setup))
        await until(lambda: setup.limiter.queue_size(budget) == 1)
        setup.clock.advance(25)
        error = await asking
        assert (error.server_error, error.message) == (pb.TooManyRequests, TEXTS[budget])
        setup.limiter.release(others)
        assert held(setup.limiter) == {}


@WAITS
async def test_a_request_at_a_full_queue_is_refused_with_too_many_requests(
    budget: LimitType, left: int
) -> None:
    async with shipped(queue=1) as setup:
        others = await setup.limiter.acquire(budget, PLENTY - left)
        answer, waiting = setup.broker.answer, []

        def crowd(request: pb.CommandGetTopicsOfNamespace) -> bytes:
            waiting.append(asyncio.create_task(setup.limiter.acquire(budget, PLENTY)))
            return answer(request)

        setup.broker.answer = crowd
        if left < 10_240:
            crowd(pb.CommandGetTopicsOfNamespace(request_id=1, namespace=BIG))
            await settle()
        error = await refused(setup)
        assert (error.server_error, error.message) == (pb.TooManyRequests, TEXTS[budget])
        setup.limiter.release(others)
        setup.limiter.release(await waiting[0])
        assert held(setup.limiter) == {}


@pytest.mark.parametrize(("mended", "kept"), [(False, 0), (True, 10_240)])
async def test_only_mended_charging_holds_the_estimate_while_waiting_for_a_larger_size(
    mended: bool, kept: int
) -> None:
    async with shipped(mended=mended) as setup:
        others = await setup.limiter.acquire(HEAP, PLENTY - ESTIMATE_BYTES + 1)
        asking = asyncio.create_task(setup.list_topics())
        await until(lambda: setup.limiter.queue_size(HEAP) == 1)
        await settle()
        assert setup.acquired(HEAP) - others.size == kept
        setup.limiter.release(others)
        assert await asking == NAMES
        assert setup.held == [(ESTIMATE_BYTES, COMMAND_BYTES)]
        assert held(setup.limiter) == {}


@WAITS
@pytest.mark.parametrize("mended", [True, False])
async def test_a_cancelled_request_releases_its_permits(budget, left, mended) -> None:
    async with shipped(mended=mended) as setup:
        others = await setup.limiter.acquire(budget, PLENTY - left)
        asking = asyncio.create_task(setup.list_topics())
        await until(lambda: setup.limiter.queue_size(budget) == 1)
        asking.cancel()
        await asyncio.wait([asking])
        setup.limiter.release(others)
        assert held(setup.limiter) == {}


@pytest.mark.parametrize("mended", [True, False])
async def test_cancelling_a_request_that_waits_for_the_first_size_resets_no_measurement(
    mended,
) -> None:
    async with shipped(mended=mended) as setup:
        others = await setup.limiter.acquire(HEAP, PLENTY)
        first = asyncio.create_task(setup.list_topics())
        await until(lambda: setup.limiter.queue_size(HEAP) == 1)
        leaves, stays = (asyncio.create_task(setup.list_topics()) for _ in range(2))
        await settle()
        leaves.cancel()
        await settle()
        assert setup.limiter.queue_size(HEAP) == 1
        setup.limiter.release(others)
        assert await first == await stays == NAMES
        assert held(setup.limiter) == {}


@pytest.mark.parametrize(("mended", "waiting"), [(False, 2), (True, 1)], ids=["as shipped", "ours"])
async def test_only_in_profile_pulsar_a_failure_resets_the_measurement_of_another_request(
    mended, waiting
) -> None:
    # A request with an estimate from a failed measurement; a measuring request, and a follower
    async with shipped(mended=mended) as setup:
        others = await setup.limiter.acquire(HEAP, PLENTY)
        first, second = [await started(setup.list_topics()) for _ in range(2)]
        first.cancel()
        await settle()
        measures, behind = [await started(setup.list_topics()) for _ in range(2)]
        assert setup.limiter.queue_size(HEAP) == 2
        second.cancel()
        await settle()
        assert setup.limiter.queue_size(HEAP) == waiting
        setup.limiter.release(others)
        assert await measures == await behind == NAMES
