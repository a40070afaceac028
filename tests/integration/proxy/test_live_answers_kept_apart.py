"""Sharing of answers, and answers to clients with a list of their own."""

import pytest

import proto.PulsarApi_pb2 as pb
from proto.topic_hash import topics_hash
from tests.support.peers.questioned_broker import without_tail
from tests.support.peers.questioned_proxy import (
    DIRECT,
    HASH,
    NAMES,
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
from tests.support.peers.stand_in_broker import listing_body, topic_names
from tests.support.processes.cluster import until

Type = pb.BaseCommand


# -- clients with a hash ---------------------------------------------------------------------------


@pytest.mark.parametrize("own", [HASH, OTHER_HASH, "00000000", ""])
async def test_a_request_with_a_hash_is_answered_according_to_its_hash(own: str) -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        await parts.holding()
        parts.broker.change(NAMESPACE, OTHERS)
        parts.broker.go_on.set()
        answer = await answer_of(await parts.asking(topics_hash=own))
        assert parts.broker.asked == [None, own]
        expected = ([], False) if own == OTHER_HASH else (OTHERS, True)
        assert (list(answer.topics), answer.changed) == expected
        assert answer.topics_hash == OTHER_HASH


async def test_clients_with_different_hashes_share_a_copy_of_the_newest_listing() -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        peers = [await parts.holding(topics_hash=own) for own in ("00000000", "11111111", "")]
        assert is_one_list(parts.acquired())
        assert parts.reused == 2
        for peer in peers:
            assert list((await answer_behind_length(peer)).topics) == NAMES


async def test_a_client_with_a_hash_gets_the_live_answer_if_memory_is_exhausted() -> None:
    # Capacity for one list
    async with questioned_proxy(broker_with(NAMES), ONE_LIST) as parts:
        await parts.holding()
        parts.broker.go_on.set()
        answer = await answer_of(await parts.asking(topics_hash="00000000"))
        assert parts.broker.asked == [None, "00000000", HASH]
        assert (list(answer.topics), answer.changed) == (NAMES, True)
        assert is_one_list(parts.acquired())


async def test_a_client_whose_hash_is_current_again_is_answered_unchanged() -> None:
    # No capacity for a second list, and then the client's list returns
    async with questioned_proxy(broker_with(NAMES), ONE_LIST) as parts:
        await parts.holding()
        back = topic_names(NAMESPACE, 3)
        parts.broker.change(NAMESPACE, back)
        parts.broker.bodies_next = [listing_body(OTHERS), listing_body(back)]
        parts.broker.go_on.set()
        answer = await answer_of(await parts.asking(topics_hash=topics_hash(back)))
        assert parts.broker.asked == [None, topics_hash(back), HASH, topics_hash(back)]
        assert (list(answer.topics), answer.changed) == ([], False)


async def test_a_client_with_the_hash_of_the_live_answer_is_answered_unchanged() -> None:
    # A list beyond capacity comes, and then the client's is right again
    async with questioned_proxy(broker_with(NAMES), ONE_LIST) as parts:
        slow = await parts.holding()
        parts.broker.bodies_next = [listing_body(OTHERS)]
        parts.broker.go_on.set()
        asking = await parts.asking(topics_hash=HASH)
        await until(lambda: parts.proxy.limiter.queue_size(DIRECT) == 1)
        await parts.leave(slow)
        answer = await answer_of(asking)
        assert parts.broker.asked == [None, HASH, HASH]
        assert (list(answer.topics), answer.changed) == ([], False)


# -- forgotten answers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keys",
    [
        {"floodgateProfile": "pulsar"},
        {"floodgateProfile": "pulsar", "floodgateResponseBuffers": "shared"},
        {"floodgateProfile": "pulsar", "floodgateSizeEstimate": "exact"},
        {
            "floodgateProfile": "pulsar",
            "floodgateSizeEstimate": "exact",
            "floodgateResponseBuffers": "shared",
        },
        {"floodgateResponseBuffers": "private"},
    ],
    ids=str,
)
async def test_profile_pulsar_and_private_buffers_share_no_answers(keys: dict[str, str]) -> None:
    async with questioned_proxy(broker_with(NAMES), **keys) as parts:
        await parts.holding()
        await parts.holding()
        assert parts.broker.asked == [None, None]
        assert is_one_list(parts.acquired() / 2)
        assert (parts.live, parts.reused) == (0, 0)


@pytest.mark.parametrize(
    ("names", "remembered"),
    [([], 0), (topic_names(NAMESPACE, 4, 1_000), 0), (topic_names(NAMESPACE, 5, 1_000), 1)],
    ids=["empty", "small", "large"],
)
async def test_only_a_large_answer_is_kept_for_reuse(names: list[str], remembered: int) -> None:
    # A peer with more to read than its buffers hold
    async with questioned_proxy(broker_with(NAMES)) as parts:
        slow = await parts.holding()
        parts.broker.go_on.set()
        parts.broker.change("public/few", names)
        await slow.send(topics_command(2, "public/few"))
        await until(lambda: len(parts.broker.asked) == 2)
        await until(lambda: parts.proxy.lookups.pending_requests == 0)
        assert parts.live == 1 + remembered


async def test_an_answer_without_a_hash_is_not_kept_for_reuse() -> None:
    broker = broker_with(NAMES)
    broker._bodies[NAMESPACE] = without_tail(NAMES)
    async with questioned_proxy(broker) as parts:
        await parts.holding()
        await parts.holding()
        assert parts.broker.asked == [None, None]
        assert parts.live == 0


@pytest.mark.parametrize("other", [{"topics_pattern": ".*"}, {"mode": 1}], ids=str)
async def test_another_pattern_or_mode_does_not_reuse_an_answer(other: dict[str, object]) -> None:
    async with questioned_proxy(broker_with(NAMES)) as parts:
        await parts.holding()
        await parts.asking(**other)
        assert parts.broker.asked == [None, None]
