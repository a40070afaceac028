"""Messages become entries: single, batched or chunked; entries hold the bytes from then on."""

import random
import tracemalloc
from typing import Any

import pytest

from client.exceptions import MessageTooBig
from client.messages.enums import CompressionType
from tests.support.peers.scripted_broker import ScriptedBroker

SIZE, COUNT = 10_000, 60


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batching_enabled": True},
        {"batching_enabled": True, "compression_type": CompressionType.LZ4},
        {"compression_type": CompressionType.LZ4},
        {"compression_type": CompressionType.LZ4, "chunking_enabled": True},
    ],
)
async def test_memory_held_stays_within_the_memory_counted(options: dict[str, Any]) -> None:
    broker = ScriptedBroker()
    producer = await broker.producer(**options)
    broker.cnx.takes_no_more()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(COUNT):
            producer.send_nowait(random.Random(number).randbytes(SIZE))
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert held < broker.memory.current_usage + COUNT * 2_000


async def test_a_chunked_message_is_held_in_memory_once() -> None:
    broker = ScriptedBroker(max_message_size=10_000)
    producer = await broker.producer(chunking_enabled=True)
    broker.cnx.takes_no_more()
    tracemalloc.start()
    try:
        producer.send_nowait(random.Random(0).randbytes(COUNT * SIZE))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < broker.memory.current_usage + COUNT * 2_000


async def test_a_message_above_the_size_limit_is_refused_with_a_hint_at_chunks() -> None:
    broker = ScriptedBroker(max_message_size=10)
    producer = await broker.producer()
    with pytest.raises(MessageTooBig, match=r"11 bytes .* limit of 10: send less, or allow chunks"):
        await producer.send(bytes(11))


async def test_bytes_sent_total_counts_bytes_before_compression() -> None:
    broker = ScriptedBroker(max_message_size=200)
    kinds: tuple[dict[str, Any], ...] = ({}, {"batching_enabled": True}, {"chunking_enabled": True})
    for options in kinds:
        producer = await broker.producer(compression_type=CompressionType.ZLib, **options)
        producer.send_nowait(bytes(1_000))
        producer.send_nowait(bytes(500))
        broker.clock.advance(0.01)
        broker.answers()
        assert producer.statistics().bytes_sent_total == 1_500
