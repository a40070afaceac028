"""The answer to a watch: content, payment, and waits."""

import asyncio

import pytest

from broker.listing import rules
from limiter.errors import PermitTooLargeError
from proto import topics_response
from server.connection.request_errors import RequestError
from tests.support.clocks.settle import started
from tests.support.watches.watching import Client, Watching, commands, short

BOTH = pytest.mark.parametrize("as_shipped", [False, True], ids=["floodgate", "pulsar"])
FIRST_DELAYS = [0.1, 0.2]


@BOTH
async def test_a_watch_answer_is_sent_after_two_permit_timeouts(as_shipped: bool) -> None:
    watching = Watching("a", "b", as_shipped=as_shipped)
    client, blocker = Client(watching.connection()), await watching.full()
    answering = await started(watching.watcher(client.served).answer(7, None))
    for delay in FIRST_DELAYS:
        await watching.passes(25.0)
        await watching.passes(delay)
        assert client.takes() == 0
    watching.give_back(blocker)
    await answering
    assert client.takes() == 1
    assert (client.answers, client.known) == ([7], ["a", "b"])
    assert (watching.totals.retries, watching.held_bytes) == (2, 0)


@BOTH
async def test_the_retry_delay_restarts_once_memory_was_granted(as_shipped: bool) -> None:
    # A watcher whose third request succeeded
    watching = Watching("a", as_shipped=as_shipped)
    client, blocker = Client(watching.connection()), await watching.full()
    watcher = watching.watcher(client.served)
    answering = await started(watcher.answer(1, None))
    for delay in FIRST_DELAYS:
        await watching.passes(25.0)
        await watching.passes(delay)
    watching.give_back(blocker)
    await answering
    assert watcher.sender.backoff.next() == FIRST_DELAYS[0]


@BOTH
async def test_updates_wait_for_the_answer_of_their_watch(as_shipped: bool) -> None:
    watching = Watching("a", as_shipped=as_shipped)
    client, blocker = Client(watching.connection()), await watching.full()
    answering = await started(watching.watcher(client.served).answer(1, None))
    watching.change(added=["b"])
    watching.change(removed=["a"])
    watching.give_back(blocker)
    await answering
    await client.takes_all()
    # As shipped separately, otherwise both together
    assert client.told == ([(["b"], []), ([], ["a"])] if as_shipped else [(["b"], ["a"])])


@BOTH
async def test_a_watch_with_a_matching_hash_is_answered_without_names(as_shipped: bool) -> None:
    watching = Watching("a", "b", as_shipped=as_shipped)
    served = watching.connection()
    watcher = watching.watcher(served)
    await watcher.answer(1, watching.watched.names.hash)
    await watcher.answer(2, "00000000")
    first, second = commands(bytes(served.peer.received))
    assert list(first.watchTopicListSuccess.topic) == []
    assert first.watchTopicListSuccess.topics_hash == watching.watched.names.hash
    assert short(second.watchTopicListSuccess.topic) == ["a", "b"]


async def test_simultaneous_answers_of_the_same_set_share_and_charge_its_bytes_once() -> None:
    # Neither reads
    watching = Watching(*[f"{number:04d}" for number in range(100)])
    one, other = [watching.connection(reads=False) for _ in range(2)]
    await watching.watcher(one).answer(1, None)
    held = watching.held_bytes
    await watching.watcher(other).answer(1, None)
    assert (held > 2_000, watching.held_bytes) == (True, held)
    one.takes()
    assert watching.held_bytes == held
    other.takes()
    assert watching.held_bytes == 0
    assert len(watching.watched.encoded._known) == 0


async def test_an_answer_of_a_newer_version_is_charged_separately() -> None:
    watching = Watching("a")
    one, other = [watching.connection(reads=False) for _ in range(2)]
    await watching.watcher(one).answer(1, None)
    held = watching.held_bytes
    watching.watched.names = watching.watched.names.with_name(b"persistent://t/n/b")
    await watching.watcher(other).answer(1, None)
    assert watching.held_bytes > 2 * held
    client = Client(other)
    client.takes()
    assert client.known == ["a", "b"]


@pytest.mark.parametrize("private_buffers", [False, True])
async def test_a_private_answer_is_written_as_a_single_buffer(private_buffers: bool) -> None:
    watching = Watching("a", "b", private_buffers=private_buffers)
    served, pieces = watching.connection(), list[int]()
    original = served.cnx.enqueue

    def enqueue(buffers: list[bytes], *rest: object) -> None:
        pieces.append(len(buffers))
        original(buffers, *rest)  # type: ignore[arg-type]

    served.cnx.enqueue = enqueue  # type: ignore[method-assign,assignment]
    await watching.watcher(served).answer(1, None)
    assert (pieces == [1]) is private_buffers
    client = Client(served)
    client.takes()
    assert client.known == ["a", "b"]


async def test_a_large_private_answer_is_copied_in_several_pieces(monkeypatch) -> None:
    for one in (rules, topics_response):
        monkeypatch.setattr(one, "COPY_BYTES", 1_000)
    monkeypatch.setattr("broker.watches.sets.encoded_names.NAMES_A_PART", 10)
    texts = [f"{number:05d}" for number in range(1_000)]
    watching = Watching(*texts, private_buffers=True, direct_bytes=10**6)
    served, pieces = watching.connection(), list[int]()
    original = served.cnx.enqueue

    def enqueue(buffers: list[bytes], *rest: object) -> None:
        pieces.extend(map(len, buffers))
        original(buffers, *rest)  # type: ignore[arg-type]

    served.cnx.enqueue = enqueue  # type: ignore[method-assign,assignment]
    await watching.watcher(served).answer(1, None)
    assert len(pieces) > 5
    client = Client(served)
    client.takes()
    assert client.known == texts
    assert watching.held_bytes == 0


@BOTH
async def test_an_answer_above_the_memory_limit_is_an_error(as_shipped: bool) -> None:
    watching = Watching("a" * 200, as_shipped=as_shipped, direct_bytes=100)
    with pytest.raises(PermitTooLargeError):
        await watching.watcher(watching.connection()).answer(1, None)
    assert watching.held_bytes == 0


async def test_an_answer_above_the_frame_limit_is_refused() -> None:
    watching = Watching("a" * 200, max_frame_bytes=247)
    with pytest.raises(RequestError, match="raise maxMessageSize"):
        await watching.watcher(watching.connection()).answer(1, None)
    assert watching.held_bytes == 0
    watching = Watching("a" * 200, max_frame_bytes=248)
    served = watching.connection()
    await watching.watcher(served).answer(1, None)
    assert len(served.peer.received) == 248


async def test_an_answer_is_not_encoded_before_its_permit_is_granted() -> None:
    watching = Watching("a")
    client, blocker = Client(watching.connection(reads=False)), await watching.full()
    answering = await started(watching.watcher(client.served).answer(1, None))
    made = len(watching.watched.encoded._known)
    watching.give_back(blocker)
    await answering
    assert made == 0
    assert len(watching.watched.encoded._known) == 1


@BOTH
async def test_a_large_set_is_encoded_in_steps(as_shipped: bool) -> None:
    texts = [f"{number:05d}" for number in range(5_000)]
    watching = Watching(*texts, as_shipped=as_shipped, direct_bytes=10**6)
    client, turns = Client(watching.connection()), 0
    answering = asyncio.ensure_future(watching.watcher(client.served).answer(1, None))
    while not answering.done():
        turns += 1
        await asyncio.sleep(0)
    client.takes()
    assert turns >= 5
    assert client.known == texts
