"""A client leaving during the broker's check of an answer releases its own share only."""

import pytest

import proto.PulsarApi_pb2 as pb
from proto.topics_response import TopicsAnswer, TopicsResponse
from tests.support.clocks.settle import settle
from tests.support.peers.questioned_broker import QuestionedBroker
from tests.support.peers.questioned_proxy import (
    DIRECT,
    HASH,
    HEAP,
    LEAST_BYTES,
    NAMES,
    NAMES_BYTES,
    NAMESPACE,
    ONE_LIST,
    OTHERS,
    answer_behind_length,
    answer_of,
    broker_with,
    is_one_list,
    questioned_proxy,
)
from tests.support.peers.raw_peer import topics_command
from tests.support.processes.cluster import until

Type = pb.BaseCommand


# -- leaving during the check ----------------------------------------------------------------------


async def test_a_live_answer_is_kept_when_its_last_holder_disconnects_during_the_check() -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        slow = await parts.holding()
        later = await parts.asking()
        await parts.leave(slow)
        during = parts.acquired() - LEAST_BYTES
        parts.broker.go_on.set()
        assert list((await answer_of(later)).topics) == NAMES
        assert parts.broker.asked == [None, HASH]
        assert is_one_list(during)


async def test_a_waiter_for_the_permits_of_the_check_does_not_hold_the_live_answer() -> None:
    # No room for the question beside the answer
    async with questioned_proxy(broker_with(NAMES), ONE_LIST) as parts:
        slow = await parts.holding()
        limiter = parts.proxy.limiter
        others = await limiter.acquire(DIRECT, limiter.available_permits(DIRECT))
        later = await parts.peer()
        await later.send(topics_command(1, NAMESPACE))
        await until(lambda: limiter.queue_size(DIRECT) == 1)
        await parts.leave(slow)
        parts.broker.go_on.set()
        assert list((await answer_of(later)).topics) == NAMES
        assert parts.broker.asked == [None, None]
        limiter.release(others)


async def test_an_unheld_answer_is_released_before_the_changed_listing_is_charged() -> None:
    # Capacity for one list
    async with questioned_proxy(broker_with(NAMES), ONE_LIST) as parts:
        slow = await parts.holding()
        parts.broker.change(NAMESPACE, OTHERS)
        later = await parts.asking()
        await parts.leave(slow)
        parts.broker.go_on.set()
        assert list((await answer_of(later)).topics) == OTHERS
        assert parts.broker.asked == [None, HASH]


async def test_a_disconnect_during_the_check_releases_only_its_own_permits() -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        slow = await parts.holding()
        one_list = parts.acquired()
        later = await parts.asking()
        await parts.leave(later)
        assert parts.acquired() == one_list
        assert parts.acquired(HEAP) == 0
        assert list((await answer_behind_length(slow)).topics) == NAMES


@pytest.mark.parametrize("holder_first", [True, False])
async def test_all_permits_are_released_immediately_when_every_client_disconnects(
    holder_first: bool,
) -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        slow = await parts.holding()
        askers = [await parts.asking(), await parts.peer()]
        await askers[1].send(topics_command(1, NAMESPACE))
        await until(lambda: parts.proxy.lookups.pending_requests == 2)
        for peer in [slow, *askers] if holder_first else [*askers, slow]:
            before = parts.acquired()
            await parts.leave(peer)
        assert before >= NAMES_BYTES
        assert (parts.acquired(), parts.acquired(HEAP)) == (0, 0)
        await settle()
        assert parts.live == 0


async def test_a_request_that_joins_the_check_keeps_the_live_answer() -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        slow = await parts.holding()
        first, second = await parts.asking(), await parts.peer()
        await second.send(topics_command(2, NAMESPACE))
        await until(lambda: parts.proxy.lookups.pending_requests == 2)
        await parts.leave(slow)
        await parts.leave(first)
        parts.broker.go_on.set()
        assert list((await answer_of(second)).topics) == NAMES
        assert parts.broker.asked == [None, HASH]


async def test_a_lost_broker_during_the_check_is_an_error_and_leaks_no_permits() -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        slow = await parts.holding()
        one_list = parts.acquired()
        later = await parts.asking()
        parts.broker.hang_up_now()
        error = (await later.command()).error
        assert error.error == pb.ServiceNotReady
        assert parts.acquired() == one_list
        assert list((await answer_behind_length(slow)).topics) == NAMES
        await until(lambda: not parts.acquired())


async def test_a_refused_check_is_an_error_and_leaks_no_permits() -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        await parts.holding()
        one_list = parts.acquired()
        parts.broker.refuse[NAMESPACE] = (pb.TooManyRequests, "not now")
        parts.broker.answers_hash = super(QuestionedBroker, parts.broker).answer
        parts.broker.go_on.set()
        error = (await (await parts.asking()).command()).error
        assert (error.error, error.message) == (pb.TooManyRequests, "not now")
        assert parts.acquired() == one_list


# -- errors of ours --------------------------------------------------------------------------------


@pytest.mark.parametrize("reused", [False, True])
@pytest.mark.parametrize("broken", [0, 1, 2])
async def test_an_exception_while_answering_fails_the_remaining_clients_and_leaks_nothing(
    reused: bool, broken: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    addressed_to = TopicsAnswer.addressed_to

    def breaks(answer: TopicsAnswer, request_id: int) -> TopicsResponse:
        if request_id == 100 + broken:
            raise RuntimeError("broken")
        return addressed_to(answer, request_id)

    async with questioned_proxy(broker_with(NAMES), breaks=True) as parts:
        if reused:
            await parts.holding()
        peers = [await parts.peer() for _ in range(3)]
        for number, peer in enumerate(peers):
            await peer.send(topics_command(100 + number, NAMESPACE))
        await until(lambda: parts.proxy.lookups.pending_requests == 3)
        monkeypatch.setattr(TopicsAnswer, "addressed_to", breaks)
        parts.broker.go_on.set()
        answers = [await peer.command() for peer in peers]
        served, failed = answers[:broken], [answer.error for answer in answers[broken:]]
        assert all(list(one.getTopicsOfNamespaceResponse.topics) == NAMES for one in served)
        assert [error.request_id for error in failed] == [*range(100 + broken, 103)]
        assert parts.proxy.lookups.pending_requests == 0
        await until(lambda: bool(parts.acquired()) is reused)
        assert parts.live == reused
    assert "RuntimeError: broken" in caplog.text
