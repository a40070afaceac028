import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.virtual.links.pipe import KernelBuffers, Pipe
from loadgen.virtual.loop import VirtualLoop
from tests.support.discovery.scripted_broker import on_virtual_loop
from tests.unit.loadgen.virtual.links.links import joined

SIZES = st.integers(1, 300_000)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), SIZES),
        st.tuples(st.just("read"), SIZES),
        st.tuples(st.just("wait"), st.integers(1, 200)),
    ),
    max_size=40,
)


def loop() -> VirtualLoop:
    found = asyncio.get_running_loop()
    assert isinstance(found, VirtualLoop)
    return found


def check(pipe: Pipe, buffers: KernelBuffers) -> None:
    assert 0 <= pipe.read <= pipe.visible <= pipe.moved <= pipe.taken <= pipe.sent
    assert pipe.unacknowledged <= max(buffers.send_bytes, buffers.first_send_bytes)
    # The first lump that follows is a little larger than the freed packet.
    more = buffers.second_bytes - buffers.first_packet_bytes
    assert pipe.moved - pipe.read <= buffers.receive_bytes + more


@given(STEPS, st.sampled_from([0, 4_096, 65_536]), st.sampled_from([0, 4_096, 65_536]))
def test_no_byte_is_lost_and_no_buffer_overflows_in_any_order_of_events(
    steps: list[tuple[str, int]], so_sndbuf: int, so_rcvbuf: int
) -> None:
    buffers = KernelBuffers(so_sndbuf, so_rcvbuf)

    async def main() -> tuple[int, int, bytes]:
        pipe, sink = joined(loop(), buffers)
        sent = read = 0
        for step, size in steps:
            if step == "send":
                pipe.send([size.to_bytes(4, "big")], size)
                sent += size
            elif step == "read":
                read += sink.read(size)
            else:
                await asyncio.sleep(size / 1000)
            check(pipe, buffers)
        while read < sent:
            await asyncio.sleep(0.05)
            read += sink.read(1 << 30)
            check(pipe, buffers)
        return sent, pipe.read, b"".join(sink.pieces)

    sent, read, pieces = on_virtual_loop(main)
    assert read == sent
    assert pieces == b"".join(size.to_bytes(4, "big") for step, size in steps if step == "send")


def test_for_a_reader_that_never_reads_both_kernels_buffer_the_measured_bytes() -> None:
    # Measured on the loopback, after a small frame: 258,652 bytes
    async def main() -> tuple[int, int]:
        pipe, _ = joined(loop(), KernelBuffers(65_536, 65_536))
        pipe.send([b""], 1_000_000)
        await asyncio.sleep(1)
        return pipe.taken, pipe.unsent

    taken, unsent = on_virtual_loop(main)
    assert taken == pytest.approx(258_652, rel=0.001)
    assert unsent == 1_000_000 - taken


# Measured on the loopback, a small frame before the answer; reads are ten a second.
@pytest.mark.parametrize(
    ("size", "rate", "last_write"), [(1_020_000, 100_000, 8.21), (1_013_956, 30_000, 27.48)]
)
def test_the_last_bytes_for_a_slow_reader_are_written_at_the_time_measured_on_linux(
    size: int, rate: int, last_write: float
) -> None:
    async def main() -> float:
        pipe, sink = joined(loop(), KernelBuffers(65_536, 65_536))
        pipe.send([b""], 60)
        await asyncio.sleep(0.5)
        sink.read(60)
        pipe.send([b""], size)
        asked = loop().time()
        while pipe.unsent:
            taken = sink.read(rate // 10)
            await asyncio.sleep(0.001)
            sink.read(rate // 10 - taken)  # of the bytes available at the last read
            await asyncio.sleep(0.099)
        return loop().time() - asked

    assert on_virtual_loop(main) == pytest.approx(last_write, abs=0.15)


def test_a_full_window_reopens_after_a_whole_packet_is_read() -> None:
    # Measured on the loopback: bytes read before, bytes received, bytes in the sender's kernel
    measured = [
        (40_000, 34_362, 96_630),
        (162_022, 94_826, 142_239),
        (256_848, 94_826, 142_239),
        (351_674, 94_826, 142_239),
    ]

    async def main() -> list[tuple[int, int, int]]:
        pipe, sink = joined(loop(), KernelBuffers(65_536, 65_536))
        pipe.send([b""], 1_000_000)
        await asyncio.sleep(1)
        lumps, moved = [], pipe.moved
        while len(lumps) < len(measured):
            sink.read(min(10_000, pipe.moved - pipe.read))
            await asyncio.sleep(0.1)
            if pipe.moved > moved:
                lumps.append((pipe.read, pipe.moved - moved, pipe.unacknowledged))
                moved = pipe.moved
        return lumps

    lumps = on_virtual_loop(main)
    for lump, measured_lump in zip(lumps, measured, strict=True):
        assert lump == pytest.approx(measured_lump, abs=200)


def test_a_reader_that_empties_the_buffer_does_not_wait_for_a_late_acknowledgement() -> None:
    async def main() -> float:
        pipe, sink = joined(loop(), KernelBuffers(65_536, 65_536))
        pipe.send([b""], 10_000_000)
        while pipe.read < 10_000_000:
            sink.read(1 << 30)
            await asyncio.sleep(1e-5)
        return loop().time()

    assert on_virtual_loop(main) < 0.05


def test_the_end_of_a_pipe_arrives_after_all_sent_bytes() -> None:
    async def main() -> tuple[int, bool | None]:
        pipe, sink = joined(loop(), KernelBuffers(0, 0))
        pipe.send([b""], 100)
        pipe.end()
        await asyncio.sleep(1)
        return pipe.visible, sink.end

    assert on_virtual_loop(main) == (100, False)
