"""The recorded overload under profile ``pulsar``: a silent client blocks all clients.

Broker first, as recorded on a real broker; then the same through the proxy, whose limiter the
silent client fills.

Source: facts recorded on Apache Pulsar 4.2.4, overload, point 3.
"""

import time
from dataclasses import asdict, dataclass

from loadgen.places.server_process import ServerProcess
from tests.proof.overload.mid_topics import (
    COMMAND_BYTES,
    FRAME_BYTES,
    HEAP_BYTES,
    MID,
    check_recorded_sizes,
    mid_expectation,
    write_mid_topics,
)
from tests.proof.overload.recorded_limits import (
    TIMEOUT_MILLIS,
    cluster,
    held,
    limiter_report,
    limits,
    port_of,
    server_of,
)
from tests.proof.peers.healthy import HealthyClients, Listing, healthy_clients, wait_until
from tests.proof.peers.kernel_sockets import open_peer_ports, swallowed_bytes
from tests.proof.peers.silent_peers import SilentPeer, silent_peers
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import check_logs, check_nothing_held, server_address, settled_figures

LISTINGS = 64
LOOK_AFTER_SECONDS = 1.0
STUCK_SECONDS = 15.0
QUICK_STUCK_SECONDS = 9.0
HEALTHY = 2
"""The number that fits simultaneously in the recording's heap."""
PERIOD_MS = 100
REFUSALS = {
    "broker": "TooManyRequests: Cannot acquire permits for direct memory",
    "proxy": "TooManyRequests: Failed due to direct memory limit exceeded",
}
EARLY_REFUSAL = "TooManyRequests: Failed due to heap memory limit exceeded"
EARLY_SECONDS = 2 * TIMEOUT_MILLIS / 1000
"""Until then requests of the stuck client may still wait, two of its requests with all the heap."""
REFUSED_AFTER_SECONDS = (2.9, 5.5)
"""Recorded were 3 to 5 s; timers are late on a busy machine."""
BACK_SECONDS = 0.5
PATIENCE_SECONDS = 60.0
PAUSING = "pulsarChannelPauseReceivingRequestsIfUnwritable"
RECORDED = {"direct_bytes": 2 * COMMAND_BYTES, "heap_bytes": 2 * HEAP_BYTES, "direct_queue": 2}


@dataclass(frozen=True)
class Case:
    """A run: the clients' server, and whether reading is paused."""

    role: str
    pausing: bool

    @property
    def title(self) -> str:
        return f"{self.role}, pausing {'on' if self.pausing else 'off'}"


@dataclass(frozen=True)
class Overload:
    """The observations of a run.

    Attributes:
        at_one_second: Acquired bytes and queues, a second after the requests.
        swallowed: Whole answers in the kernel's buffers then.
        refused: Healthy clients' listings refused direct memory, as recorded.
        refused_early: Listings refused heap, held by requests of the stuck client.
        others: Remaining outcomes of healthy listings during the block.
        refused_after: Shortest and longest wait for a refusal, seconds.
        still_open: Whether the stuck connection was open at the end.
        back_after: Seconds from the stuck client's close until all was released.
    """

    at_one_second: dict[str, int]
    swallowed: int
    refused: int
    refused_early: int
    others: list[str]
    refused_after: tuple[float, float]
    still_open: bool
    back_after: float


def prove(options: ProofOptions) -> ProofResult:
    check_recorded_sizes()
    topics = options.out / "mid.parquet"
    write_mid_topics(topics, [MID])
    result = ProofResult()
    for case in (Case("broker", False), Case("broker", True), Case("proxy", False)):
        options.note(case.title)
        logs = options.out / case.title.replace(", ", "-").replace(" ", "-")
        keys = {"floodgateProfile": "pulsar", **limits()}
        pausing = {PAUSING: str(case.pausing).lower()}
        with cluster(logs, keys, [topics], **pausing) as servers:
            server = server_of(case.role, servers)
            seconds = QUICK_STUCK_SECONDS if options.quick else STUCK_SECONDS
            found = _overload(server, seconds, REFUSALS[case.role])
            nothing = {one.module: settled_figures(one) for one in servers}
        result.figures[case.title] = asdict(found)
        _judge(case, found, result)
        check_nothing_held(nothing, result, f"{case.title}: ")
        check_logs(logs, result, f"{case.title}: ")
    return result


def _overload(server: ServerProcess, stuck_seconds: float, refusal: str) -> Overload:
    address = server_address(server)
    with silent_peers(address, [MID]) as (peer,):
        started = time.monotonic()
        peer.ask(LISTINGS)
        time.sleep(max(0.0, started + LOOK_AFTER_SECONDS - time.monotonic()))
        at_one_second = held(limiter_report(server))
        swallowed = swallowed_bytes(address[1], {peer.port}) // FRAME_BYTES
        with healthy_clients(address, mid_expectation(MID), HEALTHY, PERIOD_MS) as healthy:
            time.sleep(max(0.0, started + stuck_seconds - time.monotonic()))
            still_open = peer.port in open_peer_ports(port_of(server))
            met, back_after = _leave(peer, server, healthy, started)
    refusals = [listing.seconds for listing in met if listing.outcome == refusal]
    return Overload(
        at_one_second=at_one_second,
        swallowed=swallowed,
        refused=len(refusals),
        refused_early=sum(_early(listing, started) for listing in met),
        others=[
            listing.outcome
            for listing in met
            if listing.outcome != refusal and not _early(listing, started)
        ],
        refused_after=(min(refusals, default=0.0), max(refusals, default=0.0)),
        still_open=still_open,
        back_after=back_after,
    )


def _early(listing: Listing, started: float) -> bool:
    """Return whether a listing was refused heap while the stuck client's requests still waited."""
    return listing.outcome == EARLY_REFUSAL and listing.started < started + EARLY_SECONDS


def _leave(
    peer: SilentPeer, server: ServerProcess, healthy: HealthyClients, started: float
) -> tuple[list[Listing], float]:
    """Close the stuck client; return the earlier outcomes of healthy clients, and the time of
    release.
    """
    met = healthy.since(started)
    left = time.monotonic()
    peer.leave()
    # The healthy clients are idle between two listings, and hold no memory then.
    at_rest = wait_until(
        lambda: not any(held(limiter_report(server)).values()),
        PATIENCE_SECONDS,
        "a limiter at rest",
    )
    wait_until(
        lambda: bool(_right_after(left, healthy)),
        PATIENCE_SECONDS,
        "an answer after the stuck client",
    )
    return met, max(at_rest, *_right_after(left, healthy)[:1]) - left


def _right_after(moment: float, healthy: HealthyClients) -> list[float]:
    """Return when right answers arrived after a moment."""
    return [one.answered for one in healthy.since(0.0) if one.right and one.answered > moment]


def _judge(case: Case, found: Overload, result: ProofResult) -> None:
    title = case.title
    _judge_books(title, found, result)
    low, high = found.refused_after
    result.check(
        f"{title}: everybody else is refused",
        found.refused > 0
        and not found.others
        and low >= REFUSED_AFTER_SECONDS[0]
        and high <= REFUSED_AFTER_SECONDS[1],
        f"{title}: {found.refused} healthy listings were refused with {REFUSALS[case.role]!r} "
        f"after {low:.1f} to {high:.1f} s, {found.refused_early} were refused heap at first, "
        f"{len(found.others)} met something else"
        + "".join(f": {outcome}" for outcome in found.others[:1]),
    )
    result.check(
        f"{title}: the stuck client stays",
        found.still_open,
        f"{title}: the stuck connection was {'open' if found.still_open else 'closed'} in the end",
    )
    result.check(
        f"{title}: everything is back",
        found.back_after <= BACK_SECONDS,
        f"{title}: {found.back_after:.2f} s after the stuck client had left everything was back "
        "and a healthy client had its answer",
    )


def _judge_books(title: str, found: Overload, result: ProofResult) -> None:
    expected = {**RECORDED, "heap_queue": LISTINGS - 2 - 2 - found.swallowed}
    result.check(
        f"{title}: as recorded at 1 s",
        found.at_one_second == expected,
        f"{title}: at 1 s {_words(found.at_one_second)}; expected {_words(expected)}, as the "
        f"kernel swallowed {found.swallowed} answers",
    )


def _words(figures: dict[str, int]) -> str:
    order = ("direct_bytes", "heap_bytes", "direct_queue", "heap_queue")
    return ", ".join(f"{name.replace('_', ' ')} {figures[name]:,}" for name in order)
