"""However frames come and connections end, the counted bytes are the decoders'."""

import asyncio
import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from limiter.flow.causes import PauseCause
from server.limits.clients import ClientLimits
from server.limits.connections import Limit, Refusals
from server.limits.unfinished_frames import COUNTED_BYTES, UnfinishedFrames
from tests.unit.server.connection.test_served_connection import PING, Served

MAX_BYTES, PEERS = 150_000, 4
LARGEST = 300_000
SIZES = st.one_of(st.integers(100, 2_000), st.integers(60_000, LARGEST))
CHUNKS = st.one_of(st.integers(1, 2_000), st.integers(40_000, 256 * 1024))
STEPS = st.lists(
    st.tuples(st.integers(0, PEERS - 1), st.sampled_from("fffffffffffpre"), CHUNKS),
    min_size=10,
    max_size=60,
)


def stream(sizes: list[int]) -> bytes:
    """Return PINGs with payloads, frames of the given sizes."""
    return b"".join(
        struct.pack(">I", size) + PING[4:] + bytes(size - len(PING) + 4) for size in sizes
    )


class Sender:
    """A peer that sends its frames again and again, cut anywhere."""

    def __init__(self, limits: ClientLimits, sizes: list[int]) -> None:
        self.served = Served(limits=limits, pauses=False)
        self.served.cnx.decoder.max_message_bytes = LARGEST
        self._stream = stream(sizes)
        self._at = 0

    @property
    def open(self) -> bool:
        return not self.served.cnx.sender.closing and not self.served.cnx.closed

    @property
    def kept(self) -> int:
        """Bytes of a frame kept by the decoder, if large enough to count."""
        kept = self.served.cnx.decoder.unfinished_bytes
        return kept if kept > COUNTED_BYTES else 0

    def sends(self, size_bytes: int) -> None:
        data = self._stream[self._at : self._at + size_bytes]
        self._at = (self._at + len(data)) % len(self._stream)
        self.served.peer.peer_sends(data)

    def step(self, kind: str, size_bytes: int) -> None:
        """Send, be paused, be read again, or leave."""
        cnx = self.served.cnx
        if not self.open:
            return
        if kind == "f":
            self.sends(size_bytes)
        elif kind == "p":
            cnx.gate.close_for(PauseCause.PENDING_PUBLISHES)
        elif kind == "r":
            cnx.gate.open_for(PauseCause.PENDING_PUBLISHES)
        else:
            self.served.peer.breaks()


async def run(
    frames: list[list[int]], steps: list[tuple[int, str, int]], max_bytes: int
) -> tuple[int, int]:
    """Carry out the steps; return how many were closed, and how many were counted as closed."""
    refusals = Refusals()
    limits = ClientLimits(refusals=refusals, unfinished=UnfinishedFrames(max_bytes, refusals))
    senders = [Sender(limits, sizes) for sizes in frames]
    left = 0
    for number, kind, size_bytes in steps:
        left += kind == "e" and senders[number].open
        senders[number].step(kind, size_bytes)
        await asyncio.sleep(0)
        counted = sum(each.kept for each in senders)
        assert limits.unfinished.kept_bytes == counted
        keepers = sum(each.kept > 0 for each in senders)
        assert not max_bytes or counted <= max_bytes or keepers == 1
    closed = sum(not each.open for each in senders) - left
    for each in senders:
        each.served.peer.breaks()
    assert limits.unfinished.kept_bytes == 0
    return closed, refusals.counts[Limit.UNFINISHED_FRAMES]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(SIZES, min_size=1, max_size=3), min_size=PEERS, max_size=PEERS),
    STEPS,
    st.sampled_from([0, MAX_BYTES]),
)
def test_counted_unfinished_bytes_equal_the_decoders_and_stay_bounded(
    frames, steps, max_bytes
) -> None:
    closed, counted = asyncio.run(run(frames, steps, max_bytes))
    assert closed == counted
    assert max_bytes or not closed
