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


async def test_the_bytes_stay_when_their_last_holder_leaves_during_the_question() -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        slow = await parts.holding()
        later = await parts.asking()
        await parts.leave(slow)
        during = parts.acquired() - LEAST_BYTES
        parts.broker.go_on.set()
        assert list((await answer_of(later)).topics) == NAMES
        assert parts.broker.asked == [None, HASH]
        assert is_one_list(during)


async def test_who_waits_for_memory_to_ask_with_is_no_holder_yet() -> None:
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


async def test_bytes_that_nobody_holds_are_given_back_before_the_changed_list_is_taken() -> None:
    # Capacity for one list
    async with questioned_proxy(broker_with(NAMES), ONE_LIST) as parts:
        slow = await parts.holding()
        parts.broker.change(NAMESPACE, OTHERS)
        later = await parts.asking()
        await parts.leave(slow)
        parts.broker.go_on.set()
        assert list((await answer_of(later)).topics) == OTHERS
        assert parts.broker.asked == [None, HASH]


async def test_a_client_that_leaves_during_the_question_takes_nothing_from_the_holders() -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        slow = await parts.holding()
        one_list = parts.acquired()
        later = await parts.asking()
        await parts.leave(later)
        assert parts.acquired() == one_list
        assert parts.acquired(HEAP) == 0
        assert list((await answer_behind_length(slow)).topics) == NAMES


@pytest.mark.parametrize("holder_first", [True, False])
async def test_when_holders_and_askers_leave_during_the_question_all_is_free_in_that_turn(
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


async def test_who_joins_during_the_question_keeps_the_bytes_too() -> None:
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


async def test_a_broker_that_disconnects_during_the_question_costs_an_error_and_no_bytes() -> None:
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


async def test_a_refused_question_costs_an_error_and_no_bytes() -> None:
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
async def test_when_answering_breaks_midway_the_others_get_an_error_and_nothing_leaks(
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
