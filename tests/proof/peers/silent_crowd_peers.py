"""A crowd of silent peers: the time of each close, and peers that reconnect immediately."""

import select
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from tests.proof.peers.silent_peers import SilentPeer, silent_peers
from tests.proof.result import ProofError

POLL_SECONDS = 0.1
_CLOSED = select.EPOLLHUP | select.EPOLLERR | select.EPOLLRDHUP


class SilentCrowd:
    """Watches silent peers in a thread: polling reveals a reset without a read.

    Args:
        address: The server.
        peers: The initial peers.
        pipelined: Listings requested by each.
        comes_again: Whether a closed peer reconnects and requests again immediately.

    Attributes:
        closings: Monotonic clock of each.
    """

    def __init__(
        self,
        address: tuple[str, int],
        peers: Sequence[SilentPeer],
        pipelined: int,
        *,
        comes_again: bool,
    ) -> None:
        self.closings: list[float] = []
        self._address = address
        self._pipelined = pipelined
        self._comes_again = comes_again
        self._open = {peer.socket.fileno(): peer for peer in peers}
        self._poll = select.epoll()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def ask(self) -> None:
        """Send all requests, and watch the peers from now on."""
        for peer in self._open.values():
            self._begin(peer)
        self._thread.start()

    def end(self) -> None:
        self._ending.set()
        self._thread.join()
        for peer in self._open.values():
            peer.leave()
        self._poll.close()

    def _begin(self, peer: SilentPeer) -> None:
        self._poll.register(peer.socket.fileno(), _CLOSED)
        with suppress(OSError):  # possibly closed already, as polling reveals
            peer.ask(self._pipelined)

    def _watch(self) -> None:
        while not self._ending.is_set():
            for descriptor, _ in self._poll.poll(POLL_SECONDS):
                self._closed(self._open.pop(descriptor))

    def _closed(self, peer: SilentPeer) -> None:
        self.closings.append(time.monotonic())
        self._poll.unregister(peer.socket.fileno())
        peer.leave()
        while self._comes_again and not self._ending.is_set():
            with suppress(OSError, ProofError):
                again = SilentPeer(self._address, peer.namespace)
                self._open[again.socket.fileno()] = again
                self._begin(again)
                return


@contextmanager
def silent_crowd(
    address: tuple[str, int], namespaces: Sequence[str], pipelined: int, *, comes_again: bool
) -> Iterator[SilentCrowd]:
    """Connect a peer for each namespace for a block, handshake done and without requests."""
    with silent_peers(address, namespaces) as peers:
        crowd = SilentCrowd(address, peers, pipelined, comes_again=comes_again)
        yield crowd
        crowd.end()
