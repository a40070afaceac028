"""Messages that pass through a topic: published, consumed and acknowledged at full speed."""

import asyncio

import proto.PulsarApi_pb2 as pb
from benchmarks.messages.client import RECEIVER_QUEUE, Drain
from benchmarks.messages.wire import RawPeer, Sends, connected
from limiter.clock import LoopClock, deadline

WINDOW_BYTES = 2 * 1024 * 1024
"""Maximum bytes of SENDs without a receipt."""
SILENT_SECONDS = 20.0
"""Time without a receipt after which the broker is considered full."""
Type = pb.BaseCommand


async def pass_through(address: tuple[str, int], topic: str, entries: int, size_bytes: int) -> bool:
    """Publish entries, and consume and acknowledge all; false if the broker takes no more."""
    producer, consumer = await connected(*address), await connected(*address)
    try:
        await producer.produce(topic)
        await consumer.consume(topic)
        drain = Drain(consumer, entries, 1)
        consumer.flow(RECEIVER_QUEUE)
        if await published(producer, entries, size_bytes) < entries:
            return False
        async with deadline(LoopClock(), SILENT_SECONDS + entries / 1_000):
            await drain.done.wait()
        # Answered behind the last acknowledgement.
        asked = pb.CommandLookupTopic(topic=topic, request_id=9)
        await consumer.ask(Type(type=Type.LOOKUP, lookupTopic=asked))
    except (TimeoutError, RuntimeError):
        return False
    finally:
        producer.transport.close()
        consumer.transport.close()
    return True


async def published(peer: RawPeer, entries: int, size_bytes: int) -> int:
    """Send at the speed of receipts; return their number when no more follow."""
    sends, sent = Sends(size_bytes, 1), 0
    window = max(4, WINDOW_BYTES // size_bytes)
    more = asyncio.Event()
    peer.on_receipts = more.set
    try:
        while peer.receipts < entries:
            room = min(window - (sent - peer.receipts), entries - sent)
            if room:
                peer.transport.write(b"".join(sends.frame(sent + one) for one in range(room)))
                sent += room
            more.clear()
            async with deadline(LoopClock(), SILENT_SECONDS):
                await more.wait()
    except TimeoutError:
        pass
    return peer.receipts
