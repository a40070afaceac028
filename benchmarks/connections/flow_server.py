"""A server that consists only of the servers' client connection, without broker or proxy.

``python -m benchmarks.connections.flow_server ANSWER_FILE [CERTIFICATE_FILE]`` prints
``READY flow HOST PORT`` and serves until it is terminated. It decodes frames, answers each but the
first with an entry of 64 KiB blocks (like a listing), and pauses reading while a connection is
unwritable. With a certificate it encrypts above the plain transport, like proto.transport.tls.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.listings.bare_server import GREETING, serve, server_context
from limiter.clock import LoopClock
from limiter.flow.flow_control import FlowControl, FlowRules
from limiter.flow.totals import FlowTotals
from proto.transport.connection import Connection
from proto.transport.process_flow import ProcessFlow
from proto.transport.tls import TlsLayer
from server.loop import run

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    from proto.frames import Frame

BLOCK_BYTES = 65_536
RULES = FlowRules(pause_if_unwritable=True)


class Parts:
    """Objects that all connections of the server share.

    Args:
        answer: The bytes that answer each request.
        tls: The TLS context; None for connections without TLS.
    """

    def __init__(self, answer: bytes, tls: ssl.SSLContext | None) -> None:
        self.clock = LoopClock()
        totals = FlowTotals(self.clock)
        self.process = ProcessFlow(totals.outbound, totals, parks_frames=True)
        self.blocks: Sequence[bytes] = blocks_of(answer)
        self.answer_bytes = len(answer)
        self._tls = tls

    def tls_layer(self) -> TlsLayer | None:
        """Return the TLS layer for a new connection; None without TLS."""
        return None if self._tls is None else TlsLayer(self._tls, server_side=True)


def blocks_of(answer: bytes) -> list[bytes]:
    """Cut an answer into blocks of the size that listings have."""
    starts = range(0, len(answer), BLOCK_BYTES)
    return [answer[start : start + BLOCK_BYTES] for start in starts]


class FlowServer(Connection):
    """A connection that answers the first frame with CONNECTED, and later ones with the answer."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(process=parts.process, tls=parts.tls_layer())
        self._parts = parts
        self._flow = FlowControl(RULES, self.gate, parts.clock)
        self._greeted = False

    def frame_received(self, frame: Frame) -> None:
        """Parse the command in the frame, as every server must, and answer it."""
        frame.command()
        if self._greeted:
            self.enqueue([*self._parts.blocks], self._parts.answer_bytes)
        else:
            self._greeted = True
            self.enqueue([GREETING], len(GREETING))

    def writability_changed(self, *, writable: bool) -> None:
        """Pause or resume reading when the connection becomes unwritable or writable."""
        self._flow.writability_changed(writable=writable)


async def serve_flow(answer: bytes, tls: ssl.SSLContext | None = None) -> None:
    """Serve clients on a free loopback port until the process ends."""
    parts = Parts(answer, tls)
    await serve("flow", lambda: FlowServer(parts))


if __name__ == "__main__":
    run(serve_flow(Path(sys.argv[1]).read_bytes(), *map(server_context, sys.argv[2:])))
