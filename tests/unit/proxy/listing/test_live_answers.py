"""Answers in flight: holders, caching, and confirmation."""

import pytest

from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit, SharedOwner
from proto.topics_response import TopicsAnswer, read_topics_head
from proxy.listing.live_answers import SMALLEST_LIVE_BYTES, LiveAnswer, LiveAnswers
from tests.support.peers.questioned_broker import unchanged_frame, without_tail
from tests.support.peers.stand_in_broker import listing_body, listing_frame, topic_names

HEAP, DIRECT = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY
NAMESPACE = "public/list"
NAMES = topic_names(NAMESPACE, 50, 100)
HASH = "0123abcd"


def answer_of(frame: bytes) -> TopicsAnswer:
    found = read_topics_head(frame[4:52])
    assert found is not None
    return TopicsAnswer(len(frame) - 4, [memoryview(frame[4:])], found[1])


def listed(names: list[str], hash_text: str = HASH) -> TopicsAnswer:
    return answer_of(listing_frame(1, listing_body(names, hash_text)))


class Budget:
    """A limiter, the answers charged to the limiter, and joined clients."""

    def __init__(self, *, remembers: bool = True) -> None:
        limit = MemoryLimit(100_000, 10, 5.0)
        self.limiter = AsyncDualMemoryLimiter(limit, limit)
        self.live = LiveAnswers(self.limiter, remembers=remembers)

    async def sent(self, answer: TopicsAnswer, *clients: str, key: str = "key") -> LiveAnswer:
        """Send an answer to clients, like a flight that has released the heap."""
        owner: SharedOwner = self.limiter.share(NAMESPACE)
        for client in clients:
            owner.join(client)
        if clients:
            await self.limiter.acquire(DIRECT, answer.command_bytes, None, owner)
        owner.done_with(HEAP)
        return self.live.to_send(key, answer, owner, None)

    def accounts(self, limit_type: LimitType) -> int:
        return len(list(self.limiter.semaphore(limit_type).accounts()))


async def test_an_answer_is_found_until_its_last_client_leaves() -> None:
    budget = Budget()
    live = await budget.sent(listed(NAMES), "first", "second")
    live.leave("first")
    found = budget.live.newest("key")
    live.leave("second")
    assert found is live
    assert (budget.live.newest("key"), len(budget.live)) == (None, 0)
    assert budget.limiter.acquired_permits(DIRECT) == 0


async def test_a_client_that_joins_later_keeps_the_answer_without_a_further_charge() -> None:
    budget = Budget()
    live = await budget.sent(listed(NAMES), "first")
    live.join("second")
    live.leave("first")
    assert budget.live.newest("key") is live
    assert budget.limiter.acquired_permits(DIRECT) == live.answer.command_bytes


async def test_a_client_that_joins_later_has_an_account_for_direct_memory_only() -> None:
    budget = Budget()
    live = await budget.sent(listed(NAMES), "first")
    live.join("second")
    assert (budget.accounts(HEAP), budget.accounts(DIRECT)) == (0, 2)


async def test_an_answer_whose_holders_were_cancelled_is_not_found() -> None:
    budget = Budget()
    live = await budget.sent(listed(NAMES), "first")
    budget.limiter.cancel_owner("first")
    assert budget.live.newest("key") is None
    live.leave("first")
    assert len(budget.live) == 0


async def test_dropping_an_older_answer_keeps_the_newest_answer() -> None:
    budget = Budget()
    older = await budget.sent(listed(NAMES), "first")
    newer = await budget.sent(listed(NAMES[1:]), "second")
    older.leave("first")
    assert budget.live.newest("key") is newer


async def test_an_answer_to_a_request_with_another_key_is_not_found() -> None:
    budget = Budget()
    await budget.sent(listed(NAMES), "first")
    assert budget.live.newest("other") is None


async def test_an_answer_without_remaining_clients_is_not_remembered() -> None:
    budget = Budget()
    await budget.sent(listed(NAMES))
    assert len(budget.live) == 0


@pytest.mark.parametrize(
    ("size_bytes", "remembered"), [(SMALLEST_LIVE_BYTES - 1, 0), (SMALLEST_LIVE_BYTES, 1)]
)
async def test_an_answer_below_the_minimum_size_is_not_remembered(size_bytes, remembered) -> None:
    tag_and_length_bytes = 2
    lacking_bytes = size_bytes - listed(NAMES[:39]).command_bytes - tag_and_length_bytes
    answer = listed([*NAMES[:39], "x" * lacking_bytes])
    assert answer.command_bytes == size_bytes
    budget = Budget()
    await budget.sent(answer, "first")
    assert len(budget.live) == remembered


@pytest.mark.parametrize("hash_text", ["", "0123ABCD", "0123abcde"])
async def test_an_answer_without_a_valid_hash_is_not_remembered(hash_text: str) -> None:
    budget = Budget()
    live = await budget.sent(listed(NAMES, hash_text), "first")
    assert (live.topics_hash, len(budget.live)) == (None, 0)


async def test_an_answer_marked_as_unchanged_is_not_remembered() -> None:
    budget, body = Budget(), listing_body(NAMES, HASH)
    live = await budget.sent(answer_of(listing_frame(1, body[:-1] + b"\x00")), "first")
    assert (live.topics_hash, len(budget.live)) == (None, 0)


async def test_no_answer_is_found_while_remembering_is_off() -> None:
    budget = Budget(remembers=False)
    await budget.sent(listed(NAMES), "first")
    assert budget.live.newest("key") is None


async def test_only_unchanged_with_the_same_hash_and_no_names_confirms_an_answer() -> None:
    live = await Budget().sent(listed(NAMES), "first")
    unchanged = listing_body(NAMES, HASH)[:-1] + b"\x00"
    others = [
        answer_of(unchanged_frame(1, "0123abce")),
        answer_of(listing_frame(1, unchanged)),
        answer_of(listing_frame(1, without_tail(NAMES))),
    ]
    assert live.or_another(answer_of(unchanged_frame(1, HASH)), None) is live.answer
    assert [live.or_another(other, None) for other in others] == [None] * 3


@pytest.mark.parametrize("names", [NAMES, NAMES[1:], []])
async def test_a_different_list_is_sent_unless_the_client_already_has_its_hash(
    names: list[str],
) -> None:
    live, other = await Budget().sent(listed(NAMES), "first"), listed(names, "89abcdef")
    assert live.or_another(other, None) is other
    assert live.or_another(other, HASH) is other
    assert live.or_another(other, "89abcdef") is None


async def test_the_bytes_of_an_answer_in_flight_are_reused_for_an_equal_answer() -> None:
    budget = Budget()
    live = await budget.sent(listed(NAMES), "first")
    again = await budget.sent(listed(NAMES), "second")
    assert again is live
    assert budget.live.reused_total == 1


async def test_an_answer_equals_only_an_answer_of_the_same_hash_and_length() -> None:
    live = await Budget().sent(listed(NAMES), "first")
    unchanged = listing_body(NAMES, HASH)[:-1] + b"\x00"
    others = [
        listed(NAMES, "0123abce"),
        listed([*NAMES, "longer"]),
        answer_of(listing_frame(1, unchanged)),
        answer_of(listing_frame(1, without_tail(NAMES))),
    ]
    assert live.equals(listed(NAMES))
    assert [live.equals(other) for other in others] == [False] * 4
