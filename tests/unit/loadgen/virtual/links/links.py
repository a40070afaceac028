"""A pipe between a test's sender and a scripted sink."""

from collections.abc import Sequence

from loadgen.virtual.links.pipe import KernelBuffers, Pipe
from loadgen.virtual.loop import VirtualLoop


class CountingSink:
    """Keeps sent bytes, and reads on command."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.pipe: Pipe
        self.arrivals = 0
        self.end: bool | None = None

    def sent(self, buffers: Sequence[bytes | memoryview]) -> None:
        self.pieces += map(bytes, buffers)

    def arriving(self) -> None:
        """No-op."""

    def arrived(self) -> None:
        self.arrivals += 1

    def ended(self, *, reset: bool) -> None:
        self.end = reset

    def read(self, size: int) -> int:
        """Read at most ``size`` bytes; return the number read."""
        taken = min(size, self.pipe.visible - self.pipe.read)
        if taken:
            self.pipe.was_read(self.pipe.read + taken)
        return taken


def joined(loop: VirtualLoop, buffers: KernelBuffers) -> tuple[Pipe, CountingSink]:
    """Return a pipe whose sender resumes when permitted, and the sink."""
    sink = CountingSink()
    pipe = Pipe(loop, buffers, None, lambda: pipe.go_on())
    pipe.sink, sink.pipe = sink, pipe
    return pipe, sink
