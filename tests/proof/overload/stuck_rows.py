"""A row of the proof about stuck clients: healthy clients list before, during and after.

Phases: the healthy clients alone; then simultaneous requests of the stuck peers, swallowed by the
kernel as far as possible; then the server's evictions, until none happens for a while; then as many
listings as before.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from loadgen.places.server_process import ServerProcess
from tests.proof.overload.mid_topics import MID, mid_expectation
from tests.proof.overload.recorded_limits import port_of
from tests.proof.peers.healthy import LOOK_SECONDS, Listing, healthy_clients, p99_seconds
from tests.proof.peers.kernel_sockets import open_peer_ports, swallowed_bytes
from tests.proof.peers.silent_peers import SilentPeer, silent_peers
from tests.proof.servers import server_address

GRACE_SECONDS = 3.0
"""Default of floodgateSlowPeerGraceMs."""
FIRST_ANSWER_SECONDS = GRACE_SECONDS + 0.5
QUIET_SECONDS = GRACE_SECONDS + 1.5
"""After this time without a close no further close is expected."""
EVICTING_SECONDS = 90.0
FULL_SECONDS = 1.0
"""After this time without progress the kernel's buffers are full."""
P99_SECONDS = 0.05
PIPELINED = 64
HEALTHY = 4
PERIOD_MS = 20
WARM_UP_LISTINGS = 100
LISTINGS_SECONDS = 60.0


@dataclass(frozen=True)
class Variant:
    """A variant: the stuck peers' requests, and the sharing of answers.

    Attributes:
        role: Server of all clients.
        buffers: floodgateResponseBuffers of both servers.
        stuck: Number of non-reading peers.
        own_namespaces: Whether each has a separate namespace, else all list the healthy clients'.
    """

    role: str
    buffers: str
    stuck: int
    own_namespaces: bool

    @property
    def title(self) -> str:
        where = "a namespace each" if self.own_namespaces else "one namespace"
        return f"{self.role}, {self.buffers} buffers, {self.stuck} stuck, {where}"

    @property
    def name(self) -> str:
        where = "each" if self.own_namespaces else "one"
        return f"{self.role}-{self.buffers}-{self.stuck}-{where}"

    @property
    def evicts(self) -> bool:
        """True if contended memory is pinned, so that peers must be evicted."""
        return self.own_namespaces or self.buffers == "private"

    def namespaces(self) -> list[str]:
        """Return the namespace of each stuck peer."""
        if self.own_namespaces:
            return [f"public/stuck-{number}" for number in range(self.stuck)]
        return [MID] * self.stuck


@dataclass(frozen=True)
class Row:
    """The observations of a variant; seconds since the stuck peers' requests, or of a listing.

    Attributes:
        not_right: Outcomes of healthy listings other than the right answer.
        first_answer_s: When the first healthy answer was complete; None if none was.
        longest_s: The longest healthy listing since then. Not judged: the first answer may arrive
            before memory is pinned, and the percentile begins after the last close, so only this
            figure shows the wait during evictions.
        slow: Healthy listings slower than a first answer's bound.
        closed: Stuck connections closed by the server.
        last_closed_s: Time of the last close; None if none.
        p99_without_s: 99th percentile without stuck clients.
        p99_at_once_s: Likewise, over the listings since the stuck peers' requests.
        p99_with_s: Likewise, once the kernel's buffers were full, or the last peer was closed.
        listings: Number of listings of the last percentile.
        listings_wanted: Its required number.
    """

    not_right: list[str]
    first_answer_s: float | None
    longest_s: float
    slow: int
    closed: int
    last_closed_s: float | None
    p99_without_s: float
    p99_at_once_s: float
    p99_with_s: float
    listings: int
    listings_wanted: int

    @property
    def p99_bound_s(self) -> float:
        """The largest allowed percentile with stuck clients."""
        return max(2 * self.p99_without_s, P99_SECONDS)

    def holds(self) -> bool:
        """Return whether all healthy listings are within the bounds."""
        first = self.first_answer_s
        return (
            not self.not_right
            and first is not None
            and first <= FIRST_ANSWER_SECONDS
            and self.listings == self.listings_wanted
            and self.p99_with_s <= self.p99_bound_s
        )

    def sentence(self) -> str:
        first = "never" if self.first_answer_s is None else f"after {self.first_answer_s:.3f} s"
        last = "" if self.last_closed_s is None else f", the last after {self.last_closed_s:.1f} s"
        return (
            f"{len(self.not_right)} not served, first answer {first}, {self.closed} peers "
            f"closed{last}, p99 {self.p99_with_s * 1000:.1f} ms with and "
            f"{self.p99_without_s * 1000:.1f} ms without them (of {self.listings:,}), at once "
            f"{self.p99_at_once_s * 1000:.0f} ms, longest {self.longest_s:.2f} s, "
            f"{self.slow} over {FIRST_ANSWER_SECONDS:g} s"
            + "".join(f"; {outcome}" for outcome in self.not_right[:1])
        )


def run_variant(server: ServerProcess, variant: Variant, listings: int) -> Row:
    """Run a row against a running server.

    Raises:
        ProofError: The healthy clients could not list as often as wanted.
    """
    address = server_address(server)
    expected = mid_expectation(MID)
    with healthy_clients(address, expected, HEALTHY, PERIOD_MS) as healthy:
        healthy.listings(WARM_UP_LISTINGS, 0.0, LISTINGS_SECONDS)
        alone = healthy.listings(listings, time.monotonic(), LISTINGS_SECONDS)
        with silent_peers(address, variant.namespaces()) as peers:
            started = time.monotonic()
            for peer in peers:
                peer.ask(PIPELINED)
            closings = []
            if variant.evicts:
                closings = _closings(server, peers, started)
            else:
                _await_full_buffers(server, peers)
            steady_from = max(time.monotonic(), started + FIRST_ANSWER_SECONDS)
            steady = healthy.listings(listings, steady_from, LISTINGS_SECONDS)
            closed = len(peers) - len(_still_open(server, peers))
    met = healthy.since(started)
    return _row(_Phases(started, alone, met, steady, listings), closed, closings)


@dataclass(frozen=True)
class _Phases:
    started: float
    alone: Sequence[Listing]
    met: Sequence[Listing]
    steady: Sequence[Listing]
    wanted: int


def _row(phases: _Phases, closed: int, closings: Sequence[float]) -> Row:
    right = [listing for listing in phases.met if listing.right]
    return Row(
        not_right=[listing.outcome for listing in phases.met if not listing.right],
        first_answer_s=min((one.answered - phases.started for one in right), default=None),
        longest_s=max((listing.seconds for listing in phases.met), default=0.0),
        slow=sum(listing.seconds > FIRST_ANSWER_SECONDS for listing in phases.met),
        closed=closed,
        last_closed_s=max(closings, default=None),
        p99_without_s=p99_seconds(phases.alone),
        p99_at_once_s=p99_seconds(phases.met[: phases.wanted]),
        p99_with_s=p99_seconds(phases.steady),
        listings=len(phases.steady),
        listings_wanted=phases.wanted,
    )


def _closings(server: ServerProcess, peers: Sequence[SilentPeer], started: float) -> list[float]:
    """Watch until no peer is closed for a while; return the time of each close, in seconds."""
    closings: list[float] = []
    open_before, last_change = len(peers), time.monotonic()
    while time.monotonic() - started < EVICTING_SECONDS:
        still_open, now = len(_still_open(server, peers)), time.monotonic()
        if still_open < open_before:
            closings += [now - started] * (open_before - still_open)
            open_before, last_change = still_open, now
        if not still_open or now - last_change > QUIET_SECONDS:
            break
        time.sleep(LOOK_SECONDS)
    return closings


def _await_full_buffers(server: ServerProcess, peers: Sequence[SilentPeer]) -> None:
    """Wait until the kernel swallows no more: the stuck peers' requests are no work any longer."""
    ports = {peer.port for peer in peers}
    held, last_change = -1, time.monotonic()
    while time.monotonic() - last_change < FULL_SECONDS:
        before, held = held, swallowed_bytes(port_of(server), ports)
        if held != before:
            last_change = time.monotonic()
        time.sleep(LOOK_SECONDS)


def _still_open(server: ServerProcess, peers: Sequence[SilentPeer]) -> set[int]:
    return open_peer_ports(port_of(server)).intersection(peer.port for peer in peers)
