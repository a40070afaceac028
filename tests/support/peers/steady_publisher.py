"""A client that publishes numbered messages through broker failures, and keeps receipts.

Resends messages without receipt, as official clients do: at least once, and in order.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import proto.PulsarApi_pb2 as pb
from limiter.clock import LoopClock, deadline
from tests.support.peers.message_peer import MessagePeer

WINDOW = 20
RETRY_SECONDS = 0.05
Type = pb.BaseCommand


class LostConnectionError(Exception):
    """The connection, or a producer on it, has ended: reconnect."""


def payload(number: int) -> bytes:
    return b"message %08d" % number


class SteadyPublisher:
    """A topic's publisher through a proxy.

    Args:
        proxy_url: The proxy's, or the only broker's.
        topic: Name.
        content: A message's payload by its number.

    Attributes:
        receipted: Number of messages with a receipt, without gaps.
        positions: Each message's position in its last receipt.
        connections: Number of reconnects.
    """

    def __init__(
        self, proxy_url: str, topic: str, content: Callable[[int], bytes] = payload
    ) -> None:
        self._proxy_url = proxy_url
        self._topic = topic
        self._content = content
        self.receipted = 0
        self.positions: dict[int, tuple[int, int]] = {}
        self.connections = 0
        self._stopping = False

    def stop(self) -> None:
        self._stopping = True

    async def run(self, pause_seconds: float) -> None:
        """Publish until stopped.

        Args:
            pause_seconds: Between two windows.
        """
        end = 0
        while not (self._stopping and self.receipted >= end):
            try:
                async for sent in self._published(pause_seconds):
                    end = max(end, sent)
                    if self._stopping and self.receipted >= end:
                        return
            except (LostConnectionError, OSError, EOFError, AssertionError):
                await asyncio.sleep(RETRY_SECONDS)

    async def _published(self, pause_seconds: float) -> AsyncIterator[int]:
        peer = await connected(self._proxy_url, self._topic)
        self.connections += 1
        try:
            made = await peer.producer(self._topic, name="steady")
            if made.type == Type.ERROR:
                raise LostConnectionError(made.error.message)
            while True:
                first = self.receipted
                for number in range(first, first + WINDOW):
                    await peer.publish(number, self._content(number))
                yield first + WINDOW
                for _ in range(WINDOW):
                    self._take(await peer.receipt())
                yield first + WINDOW
                await self._between_windows(pause_seconds)
        finally:
            peer.close()

    async def _between_windows(self, pause_seconds: float) -> None:
        await asyncio.sleep(pause_seconds)

    def _take(self, answer: pb.BaseCommand) -> None:
        if answer.type != Type.SEND_RECEIPT:
            raise LostConnectionError(Type.Type.Name(answer.type))
        number, found = answer.send_receipt.sequence_id, answer.send_receipt.message_id
        if number != self.receipted:
            raise RuntimeError(f"receipt {number} came in the place of {self.receipted}")
        self.positions[number] = (found.ledgerId, found.entryId)
        self.receipted += 1


async def connected(proxy_url: str, topic: str) -> MessagePeer:
    """Look a topic up through a proxy and connect to its broker.

    Raises:
        LostConnectionError: No broker serves the topic now.
    """
    asking = await MessagePeer.connect(proxy_url)
    try:
        found = await asking.lookup(topic)
    finally:
        asking.close()
    if found.response != pb.CommandLookupTopicResponse.Connect:
        raise LostConnectionError(found.message)
    return await MessagePeer.connect(proxy_url, found.brokerServiceUrl.removeprefix("pulsar://"))


async def stored_numbers(proxy_url: str, topic: str, last: int, seconds: float) -> list[int]:
    """Return a topic's message numbers in order, up to ``last``.

    Fewer after a timeout.
    """
    found: list[int] = []
    with suppress(TimeoutError):
        async with deadline(LoopClock(), seconds):
            while last not in found:
                with suppress(LostConnectionError, OSError, EOFError, AssertionError):
                    await _read(proxy_url, topic, last, found)
                await asyncio.sleep(RETRY_SECONDS)
    return found


async def _read(proxy_url: str, topic: str, last: int, found: list[int]) -> None:
    found.clear()
    peer = await connected(proxy_url, topic)
    try:
        made = await peer.subscribe(topic, f"reader-{id(peer)}")
        if made.type != Type.SUCCESS:
            raise LostConnectionError(made.error.message)
        await peer.flow(1_000_000)
        while last not in found[-1:]:
            found.append(int((await peer.message()).payload.split()[1]))
    finally:
        peer.close()
