"""An answer in flight to slow clients is not fetched and held a second time."""

import pytest

import proto.PulsarApi_pb2 as pb
from tests.support.peers.frames import frame
from tests.support.peers.questioned_broker import QuestionedBroker, unchanged_frame, without_tail
from tests.support.peers.questioned_proxy import (
    DIRECT,
    HASH,
    HEAP,
    LEAST_BYTES,
    NAMES,
    NAMES_BYTES,
    NAMESPACE,
    ONE_LIST,
    OTHER_HASH,
    OTHERS,
    answer_behind_length,
    answer_of,
    broker_with,
    is_one_list,
    questioned_proxy,
)
from tests.support.peers.raw_peer import topics_command
from tests.support.peers.stand_in_broker import listing_body, listing_frame, topic_names
from tests.support.processes.cluster import until

Type = pb.BaseCommand


# -- still right -----------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", [None, "persistent://public/list/.*"])
async def test_a_later_request_reuses_the_bytes_of_an_answer_in_flight(pattern: str | None) -> None:
    fields = {} if pattern is None else {"topics_pattern": pattern}
    async with questioned_proxy(broker_with(NAMES)) as parts:
        slow = await parts.holding(**fields)
        parts.broker.go_on.set()
        later = await parts.asking(request_id=2**40, **fields)
        answer = await answer_of(later)
        assert parts.broker.asked == [None, HASH]
        assert (answer.request_id, list(answer.topics)) == (2**40, NAMES)
        assert (answer.topics_hash, answer.changed, answer.filtered) == (HASH, True, False)
        assert is_one_list(parts.acquired())
        assert (parts.acquired(HEAP), parts.reused, parts.live) == (0, 1, 1)
        assert list((await answer_behind_length(slow)).topics) == NAMES
        await until(lambda: not parts.acquired())
        assert parts.live == 0


async def test_checking_a_live_answer_with_the_broker_needs_only_the_least_permits() -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        await parts.holding()
        one_list = parts.acquired()
        await parts.asking()
        assert parts.acquired() == one_list + LEAST_BYTES
        assert parts.acquired(HEAP) == LEAST_BYTES


async def test_pending_bytes_with_permits_do_not_count_as_unpaid() -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        peers = [await parts.holding() for _ in range(3)]
        overhead_bytes = parts.proxy.totals.unpaid_bytes
        assert parts.proxy.totals.pending_bytes > len(peers) * NAMES_BYTES
        assert overhead_bytes == len(peers) * (96 + 8)


async def test_without_limits_all_pending_bytes_count_as_unpaid() -> None:
    no_limit = {"heap_max_bytes": 0, "direct_max_bytes": 0}
    async with questioned_proxy(broker_with(NAMES), no_limit) as parts:
        await parts.holding()
        await parts.holding()
        assert parts.broker.asked == [None, HASH]
        assert parts.proxy.totals.unpaid_bytes == parts.proxy.totals.pending_bytes > 2 * NAMES_BYTES


async def test_an_answered_client_no_longer_shares_permits() -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        slow = await parts.holding()
        parts.broker.go_on.set()
        await answer_of(await parts.asking())
        await answer_of(await parts.asking(topics_hash="00000000"))
        assert parts.reused == 2
        assert parts.sharers(HEAP) == []
        await until(lambda: parts.sharers(DIRECT) == [parts.cnx(slow)])


async def test_a_completely_sent_answer_is_not_reused() -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        parts.broker.go_on.set()
        await answer_of(await parts.asking())
        await until(lambda: not parts.acquired())
        await answer_of(await parts.asking())
        assert parts.broker.asked == [None, None]


async def test_repeated_listings_of_a_slow_client_share_the_same_bytes() -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        slow = await parts.holding()
        parts.broker.go_on.set()
        await slow.send(*(topics_command(number, NAMESPACE) for number in range(2, 12)))
        await until(lambda: parts.proxy.lookups.pending_requests == 0)
        await until(lambda: parts.reused > 0)
        assert is_one_list(parts.acquired())
        assert list((await answer_behind_length(slow)).topics) == NAMES
        for number in range(2, 12):
            answer = await answer_of(slow)
            assert (answer.request_id, answer.topics_hash) == (number, HASH)


async def test_shared_bytes_are_released_when_their_last_holder_disconnects() -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        first = await parts.holding()
        second = await parts.holding()
        await parts.leave(first)
        with_second = parts.acquired()
        await parts.leave(second)
        assert is_one_list(with_second)
        assert parts.acquired() == 0


# -- changed ---------------------------------------------------------------------------------------


async def test_a_changed_listing_is_fetched_and_both_versions_are_delivered() -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        slow = await parts.holding()
        parts.broker.change(NAMESPACE, OTHERS)
        later = await parts.holding()
        assert parts.broker.asked == [None, HASH]
        assert (parts.reused, parts.live) == (0, 1)
        assert is_one_list(parts.acquired() / 2)
        answer = await answer_behind_length(later)
        assert (list(answer.topics), answer.topics_hash) == (OTHERS, OTHER_HASH)
        assert list((await answer_behind_length(slow)).topics) == NAMES


async def test_the_newest_live_answer_is_reused() -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        slow = await parts.holding()
        parts.broker.change(NAMESPACE, OTHERS)
        newer = await parts.holding()
        await parts.holding()
        assert parts.broker.asked == [None, HASH, OTHER_HASH]
        assert parts.reused == 1
        await parts.leave(slow)
        assert parts.live == 1
        await parts.leave(newer)
        assert parts.live == 1


async def test_a_listing_that_became_small_is_fetched_only_once() -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        await parts.holding()
        one_list = parts.acquired()
        parts.broker.change(NAMESPACE, [])
        parts.broker.go_on.set()
        answer = await answer_of(await parts.asking())
        assert (list(answer.topics), answer.changed) == ([], True)
        assert parts.broker.asked == [None, HASH]
        await until(lambda: parts.acquired() == one_list)


async def test_a_waiter_for_memory_does_not_keep_the_older_answer() -> None:
    # Capacity for one list, held by an older list
    async with questioned_proxy(broker_with(NAMES), ONE_LIST) as parts:
        slow = await parts.holding()
        parts.broker.change(NAMESPACE, OTHERS)
        parts.broker.go_on.set()
        later = await parts.asking()
        await until(lambda: parts.proxy.limiter.queue_size(DIRECT) == 1)
        await parts.leave(slow)
        assert list((await answer_of(later)).topics) == OTHERS
        assert parts.broker.asked == [None, HASH, None]


# -- answers that cannot be right ------------------------------------------------------------------


def _unchanged_of_another_list(request: pb.CommandGetTopicsOfNamespace) -> bytes:
    return unchanged_frame(request.request_id, OTHER_HASH)


def _unchanged_with_names(request: pb.CommandGetTopicsOfNamespace) -> bytes:
    body = listing_body(OTHERS, request.topics_hash)
    return listing_frame(request.request_id, body[:-1] + b"\x00")


def _unchanged_in_another_order(request: pb.CommandGetTopicsOfNamespace) -> bytes:
    tail = b"\x28\x00\x22\x08" + request.topics_hash.encode()
    return listing_frame(request.request_id, tail)


def _without_hash(request: pb.CommandGetTopicsOfNamespace) -> bytes:
    return listing_frame(request.request_id, without_tail(OTHERS))


@pytest.mark.parametrize(
    "answers",
    [
        _unchanged_of_another_list,
        _unchanged_with_names,
        _unchanged_in_another_order,
        _without_hash,
    ],
)
async def test_an_inconclusive_answer_to_the_hash_is_followed_by_a_full_listing(answers) -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        await parts.holding()
        parts.broker.change(NAMESPACE, OTHERS)
        parts.broker.answers_hash = answers
        parts.broker.go_on.set()
        answer = await answer_of(await parts.asking())
        assert parts.broker.asked == [None, HASH, None]
        assert (list(answer.topics), answer.changed) == (OTHERS, True)


async def test_a_broker_that_ignores_the_hash_causes_no_second_copy() -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        await parts.holding()
        body = listing_body(NAMES)
        parts.broker.answers_hash = lambda request: listing_frame(request.request_id, body)
        later = await parts.holding()
        assert is_one_list(parts.acquired())
        assert list((await answer_behind_length(later)).topics) == NAMES


async def test_a_request_that_a_hash_would_make_too_large_has_no_hash() -> None:
    # A request that just fits the broker's frame limit
    names = topic_names(NAMESPACE, 50, 100)
    broker = QuestionedBroker({NAMESPACE: names}, max_message_bytes=3_000)
    pattern = {"topics_pattern": "x" * 2_000}
    rest_bytes = 3_000 - len(frame(topics_command(1, NAMESPACE, **pattern)))
    pattern = {"topics_pattern": "x" * (2_000 + rest_bytes)}
    unbounded = {"floodgateMaxInFlightResponseBytesPerConnection": "0"}
    async with questioned_proxy(broker, **unbounded) as parts:
        slow = await parts.peer()
        await slow.send(*[topics_command(number, NAMESPACE, **pattern) for number in range(20)])
        await until(lambda: parts.proxy.lookups.pending_requests == 20)
        parts.broker.go_on.set()
        await until(lambda: parts.proxy.lookups.pending_requests == 0)
        assert parts.live == 1
        answer = await answer_of(await parts.asking(**pattern))
        assert list(answer.topics) == names
        assert parts.broker.asked == [None, None]
