"""The kernel's buffers of one connection, as Linux was measured to use them on the loopback.

Linux doubles SO_SNDBUF and SO_RCVBUF. A receiver frees its memory a packet at a time, and joins
what comes while it holds something to the last packet: so once a window was full, the next one
comes when everything was read, in one lump of almost three quarters of the buffer. A new connection
fills the buffer once, and its first packet (of a quarter) is freed by itself.

A sender takes whole segments (of half a window) until its buffer is full, so that the last of them
goes beyond it; its writer is woken when a third is free, and learns of what was received from a
delayed acknowledgement. Left alone, a send buffer grows to 4 MiB at once, and a receive buffer
stays at 128 KiB for who reads slowly.

6.18, SO_SNDBUF and SO_RCVBUF of 64 KiB, a small frame first: the byte counts of all lumps of a
first answer. Other sizes, and a connection's later answers: bytes in the kernel within 15 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

SEND_DEFAULT_BYTES = 4_060_000
RECEIVE_DEFAULT_BYTES = 131_072
WRITABLE_SHARE = 2 / 3
FIRST_PACKET_SHARE = 0.24985
FIRST_SHARE = 0.97397
SECOND_SHARE = 0.26216
WINDOW_SHARE = 0.72347
LARGEST_SEGMENT_BYTES = 65_483
SEGMENT_OVERHEAD_BYTES = 832
ACKNOWLEDGE_SECONDS = 0.041
LATENCY_SECONDS = 20e-6
"""From one kernel to the other."""


@dataclass(frozen=True, slots=True)
class KernelBuffers:
    """One direction of a link.

    Attributes:
        send_bytes: What the sender's kernel takes.
        receive_bytes: What the receiver's does, at first.
        first_packet_bytes: When so much of that was read, the first lump of more comes.
        second_bytes: How much that is.
        window_bytes: Each further lump, which comes when everything was read.
        writable_bytes: A writer is woken when no more than this is left.
        first_send_bytes: What the sender's kernel takes until a window was full and opened.
    """

    send_bytes: int
    receive_bytes: int
    first_packet_bytes: int
    second_bytes: int
    window_bytes: int
    writable_bytes: int
    first_send_bytes: int


def kernel_buffers(so_sndbuf: int, so_rcvbuf: int) -> KernelBuffers:
    """Return the buffers between a sender and a receiver; 0 leaves a size to the kernel."""
    send = 2 * so_sndbuf if so_sndbuf else SEND_DEFAULT_BYTES
    receive = 2 * so_rcvbuf if so_rcvbuf else RECEIVE_DEFAULT_BYTES
    first_packet, window = int(receive * FIRST_PACKET_SHARE), int(receive * WINDOW_SHARE)
    return KernelBuffers(
        _whole_segments(send, window // 2),
        int(receive * FIRST_SHARE),
        first_packet,
        int(receive * SECOND_SHARE),
        window,
        int(send * WRITABLE_SHARE),
        _whole_segments(send, first_packet),
    )


def _whole_segments(send_bytes: int, segment_bytes: int) -> int:
    """Return the bytes of as many segments as begin within a send buffer."""
    segment = max(1, min(segment_bytes, LARGEST_SEGMENT_BYTES))
    return ceil(send_bytes / (segment + SEGMENT_OVERHEAD_BYTES)) * segment
