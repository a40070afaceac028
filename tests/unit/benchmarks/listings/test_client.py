"""The client of the listing rounds counts whole answers of the right length, and nothing else."""

from __future__ import annotations

import asyncio
import struct

import pytest

from benchmarks.listings.client import ListingClient, Load
from benchmarks.listings.corpus import NAME_BYTES, listing_answer, listing_names
from tests.support.peers.memory_transport import MemoryTransport

ANSWER = struct.pack(">I", 9) + b"an answer"
GREETING = struct.pack(">I", 2) + b"hi"


def connected(load: Load) -> ListingClient:
    client = ListingClient(load)
    client.connection_made(MemoryTransport(asyncio.Protocol(), reads_at_once=True))
    receive(client, GREETING)
    return client


def receive(client: ListingClient, data: bytes, chunk_bytes: int = 1_000) -> None:
    for start in range(0, len(data), chunk_bytes):
        chunk = data[start : start + chunk_bytes]
        client.get_buffer(-1)[: len(chunk)] = chunk
        client.buffer_updated(len(chunk))


@pytest.mark.parametrize("chunk_bytes", [1, 3, 5, 1000])
async def test_an_answer_counts_when_it_is_complete(chunk_bytes: int) -> None:
    # Given
    load = Load(len(ANSWER))
    client = connected(load)
    # When
    receive(client, ANSWER[:-1], chunk_bytes)
    before = load.answers
    receive(client, ANSWER[-1:] + b"")
    # Then
    assert (before, load.answers) == (0, 1)


async def test_an_answer_of_another_length_ends_the_measurement() -> None:
    # Given
    load = Load(len(ANSWER) + 1)
    # When
    receive(connected(load), ANSWER)
    # Then
    with pytest.raises(RuntimeError, match="not a listing's"):
        load.failed.result()


async def test_more_bytes_than_announced_end_the_measurement() -> None:
    load = Load(len(ANSWER))
    receive(connected(load), ANSWER + b"x")
    with pytest.raises(RuntimeError, match="more bytes"):
        load.failed.result()


async def test_a_lost_connection_ends_the_measurement() -> None:
    load = Load(len(ANSWER))
    connected(load).connection_lost(None)
    with pytest.raises(RuntimeError, match="closed a connection"):
        load.failed.result()


def test_the_corpus_has_names_of_a_hundred_bytes_and_an_answer_of_about_a_megabyte() -> None:
    assert {len(name) for name in listing_names(20)} == {NAME_BYTES}
    assert 1_020_000 < len(listing_answer()) < 1_021_000
