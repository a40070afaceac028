"""The kernel's buffers of one connection, as Linux was measured to use them on the loopback.

Linux doubles SO_SNDBUF and SO_RCVBUF. Of a full receive buffer it tells the sender only when about
three quarters are free again, with a delayed acknowledgement; and it wakes a writer only when a
third of the send buffer is free. Left alone, a send buffer grows to 4 MiB at once, and a receive
buffer stays at 128 KiB for who reads slowly. (6.18, writers that fill what they may and readers of
fixed speed, SO_SNDBUF and SO_RCVBUF of 32 KiB to 256 KiB: bytes in the kernel within 3 %.)
"""

from __future__ import annotations

from dataclasses import dataclass

SEND_DEFAULT_BYTES = 4_060_000
RECEIVE_DEFAULT_BYTES = 131_072
WRITABLE_SHARE = 2 / 3
WINDOW_SHARE = 0.725
ACKNOWLEDGE_SECONDS = 0.041
LATENCY_SECONDS = 20e-6


@dataclass(frozen=True, slots=True)
class KernelBuffers:
    """One direction of a link.

    Attributes:
        send_bytes: What the sender's kernel takes.
        receive_bytes: What the receiver's does.
        window_bytes: So much must be free, once it was full, before more comes.
        writable_bytes: A writer is woken when no more than this is left.
        latency_seconds: From one kernel to the other.
        bytes_per_second: Of the link; 0: as fast as memory.
    """

    send_bytes: int
    receive_bytes: int
    window_bytes: int
    writable_bytes: int
    latency_seconds: float
    bytes_per_second: float


def kernel_buffers(
    so_sndbuf: int,
    so_rcvbuf: int,
    latency_seconds: float = LATENCY_SECONDS,
    bytes_per_second: float = 0.0,
) -> KernelBuffers:
    """Return the buffers between a sender and a receiver; 0 leaves a size to the kernel."""
    send = 2 * so_sndbuf if so_sndbuf else SEND_DEFAULT_BYTES
    receive = 2 * so_rcvbuf if so_rcvbuf else RECEIVE_DEFAULT_BYTES
    return KernelBuffers(
        send,
        receive,
        int(receive * WINDOW_SHARE),
        int(send * WRITABLE_SHARE),
        latency_seconds,
        bytes_per_second,
    )
