from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.virtual.links.kernel import KernelBuffers, kernel_buffers
from loadgen.virtual.loop import VirtualLoop
from tests.unit.loadgen.virtual.links.links import joined

if TYPE_CHECKING:
    from loadgen.virtual.links.pipe import Pipe

SIZES = st.integers(1, 300_000)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), SIZES),
        st.tuples(st.just("read"), SIZES),
        st.tuples(st.just("wait"), st.integers(1, 200)),
    ),
    max_size=40,
)


def run(main):
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def loop() -> VirtualLoop:
    found = asyncio.get_running_loop()
    assert isinstance(found, VirtualLoop)
    return found


def check(pipe: Pipe, buffers: KernelBuffers) -> None:
    assert 0 <= pipe.read <= pipe.visible <= pipe.moved <= pipe.taken <= pipe.sent
    assert pipe.unacknowledged <= buffers.send_bytes
    assert pipe.moved - pipe.read <= buffers.receive_bytes


@given(STEPS, st.sampled_from([0, 4_096, 65_536]), st.sampled_from([0, 4_096, 65_536]))
def test_no_byte_is_lost_and_no_buffer_overfull_whatever_comes_when(
    steps: list[tuple[str, int]], so_sndbuf: int, so_rcvbuf: int
) -> None:
    # Given
    buffers = kernel_buffers(so_sndbuf, so_rcvbuf)

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

    # When
    sent, read, pieces = run(main())
    # Then
    assert read == sent
    assert pieces == b"".join(size.to_bytes(4, "big") for step, size in steps if step == "send")


def test_a_reader_that_reads_nothing_leaves_what_both_kernels_take() -> None:
    # Given: measured on the loopback: 269,813 bytes
    async def main() -> tuple[int, int]:
        pipe, _ = joined(loop(), kernel_buffers(65_536, 65_536))
        pipe.send([b""], 1_000_000)
        await asyncio.sleep(1)
        return pipe.taken, pipe.unsent

    # When
    taken, unsent = run(main())
    # Then
    assert taken == pytest.approx(269_813, rel=0.03)
    assert unsent == 1_000_000 - taken


def test_a_slow_reader_lets_more_come_in_lumps_as_linux_was_measured_to() -> None:
    # Given: 1 MB, read in pieces of 10 kB ten times a second; the last write was at 7.94 s
    async def main() -> tuple[float, float]:
        pipe, sink = joined(loop(), kernel_buffers(65_536, 65_536))
        pipe.send([b""], 1_000_000)
        gone = 0.0
        while pipe.read < 1_000_000:
            await asyncio.sleep(0.1)
            sink.read(10_000)
            if not gone and not pipe.unsent:
                gone = loop().time()
        return gone, loop().time()

    # When
    gone, read = run(main())
    # Then
    assert gone == pytest.approx(7.94, abs=0.25)
    assert read == pytest.approx(10, abs=0.15)


def test_a_reader_that_empties_the_buffer_does_not_wait_for_a_late_acknowledgement() -> None:
    # Given
    async def main() -> float:
        pipe, sink = joined(loop(), kernel_buffers(65_536, 65_536))
        pipe.send([b""], 10_000_000)
        while pipe.read < 10_000_000:
            sink.read(1 << 30)
            await asyncio.sleep(1e-5)
        return loop().time()

    # When / Then
    assert run(main()) < 0.05


@given(st.integers(1, 5_000_000), st.floats(1e3, 1e9))
def test_a_link_of_limited_speed_takes_its_time(size: int, speed: float) -> None:
    # Given
    async def main() -> float:
        pipe, _ = joined(loop(), KernelBuffers(10**9, 10**9, 10**9, 10**9, 0.5, speed))
        pipe.send([b""], size)
        while pipe.visible < size:
            await asyncio.sleep(size / speed / 1000 + 0.001)
        return loop().time()

    # When / Then
    assert run(main()) == pytest.approx(0.5 + size / speed, rel=0.01, abs=0.01)


def test_an_end_comes_behind_what_was_sent() -> None:
    # Given
    async def main() -> tuple[int, bool | None]:
        pipe, sink = joined(loop(), kernel_buffers(0, 0))
        pipe.send([b""], 100)
        pipe.end()
        await asyncio.sleep(1)
        return pipe.visible, sink.end

    # When / Then
    assert run(main()) == (100, False)
