"""Numbered messages of known content, and a client that publishes and reads them."""

import hashlib
from collections.abc import Iterable
from contextlib import suppress

import proto.PulsarApi_pb2 as pb
from limiter.clock import LoopClock, deadline
from tests.support.peers.message_peer import MessagePeer

Type = pb.BaseCommand
PERMITS = 1_000_000
WINDOW = 100
SMALL_BYTES, LARGE_BYTES, LARGE_EVERY = 1_800, 70_000, 25


def content(topic: str, number: int) -> bytes:
    """Return the payload of a message: most are small, some are larger than a few pages."""
    size = number * 7_919 % (SMALL_BYTES if number % LARGE_EVERY else LARGE_BYTES)
    name = b"%s %d " % (topic.encode(), number)
    return name + hashlib.shake_128(name).digest(size)


def number_of(payload: bytes) -> int:
    """Return a payload's number; -1 if absent."""
    with suppress(IndexError, ValueError):
        return int(payload.split(b" ", 2)[1])
    return -1


async def publish(url: str, topic: str, numbers: Iterable[int]) -> int:
    """Publish messages; return the number of receipts before another answer, or all.

    Raises:
        EOFError: The broker closed the connection.
    """
    peer = await MessagePeer.connect(url)
    try:
        await peer.lookup(topic)
        if (await peer.producer(topic)).type == Type.ERROR:
            return 0
        sent = receipted = 0
        for number in numbers:
            await peer.publish(number, content(topic, number))
            sent += 1
            if sent - receipted == WINDOW:
                if (await peer.receipt()).type != Type.SEND_RECEIPT:
                    return receipted
                receipted += 1
        while receipted < sent:
            if (await peer.receipt()).type != Type.SEND_RECEIPT:
                return receipted
            receipted += 1
        return receipted
    finally:
        peer.close()


async def read(
    url: str, topic: str, owed: int, quiet_seconds: float, owed_seconds: float
) -> list[bytes] | str:
    """Return the payloads of a topic from its beginning; the broker's sentence on a refusal.

    Args:
        url: The broker's.
        topic: Its name.
        owed: Number of expected messages.
        quiet_seconds: Timeout after the last message.
        owed_seconds: Timeout while expected messages are missing.
    """
    peer = await MessagePeer.connect(url)
    found: list[bytes] = []
    try:
        await peer.lookup(topic)
        made = await peer.subscribe(topic, "all-of-it")
        if made.type == Type.ERROR:
            return made.error.message
        await peer.flow(PERMITS)
        with suppress(TimeoutError):
            while True:
                seconds = owed_seconds if len(found) < owed else quiet_seconds
                async with deadline(LoopClock(), seconds):
                    found.append((await peer.message()).payload)
    except EOFError:
        return "the connection was closed"
    finally:
        peer.close()
    return found
