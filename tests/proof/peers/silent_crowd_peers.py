"""A crowd of silent peers: when the server closed each, and those who come again at once."""

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
    """Watches silent peers in a thread: a reset is told to who polls, though nothing is read.

    Args:
        address: The server.
        peers: Those there are at first.
        pipelined: Listings that each asks for at once.
        comes_again: Whether one that is closed connects and asks again at once.

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
        """Let all ask, and watch them from now on."""
        for peer in self._open.values():
            self._begin(peer)
        self._thread.start()

    def end(self) -> None:
        """Let all leave."""
        self._ending.set()
        self._thread.join()
        for peer in self._open.values():
            peer.leave()
        self._poll.close()

    def _begin(self, peer: SilentPeer) -> None:
        self._poll.register(peer.socket.fileno(), _CLOSED)
        with suppress(OSError):  # It may be closed already, which is seen when it is polled.
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
    """Have one greeted peer for each namespace named, for a block; they have asked nothing yet."""
    with silent_peers(address, namespaces) as peers:
        crowd = SilentCrowd(address, peers, pipelined, comes_again=comes_again)
        yield crowd
        crowd.end()
