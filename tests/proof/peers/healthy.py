"""The healthy clients as the proof sees them: a child process and its listings' outcomes."""

import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO

from benchmarks.processes import ROOT
from loadgen.plan.clients import Namespace
from tests.proof.peers.healthy_clients import ASKED, RIGHT
from tests.proof.result import ProofError

LOOK_SECONDS = 0.02
END_SECONDS = 10.0


@dataclass(frozen=True)
class Listing:
    """A healthy client's listing.

    Attributes:
        started: Monotonic clock of the request, or its due time; see healthy_clients.
        seconds: Until its answer was complete.
        outcome: ``right``, or the failure.
    """

    started: float
    seconds: float
    outcome: str

    @property
    def right(self) -> bool:
        return self.outcome == RIGHT

    @property
    def answered(self) -> float:
        """Monotonic clock when the answer was complete."""
        return self.started + self.seconds


class HealthyClients:
    """The listings of healthy clients so far; filled by a thread."""

    def __init__(self, output: IO[bytes]) -> None:
        self._listings: list[Listing] = []
        self._thread = threading.Thread(target=self._read, args=(output,), daemon=True)
        self._thread.start()

    def since(self, moment: float) -> list[Listing]:
        """Return the listings started since a moment, in the order of their answers."""
        return [listing for listing in list(self._listings) if listing.started >= moment]

    def listings(self, number: int, moment: float, seconds: float) -> list[Listing]:
        """Return so many listings started since a moment; fewer at the timeout."""
        with suppress(ProofError):
            wait_until(lambda: len(self.since(moment)) >= number, seconds, f"{number} listings")
        return self.since(moment)[:number]

    def _read(self, output: IO[bytes]) -> None:
        for line in output:
            started, seconds, outcome = line.decode().rstrip("\n").split(" ", 2)
            self._listings.append(Listing(float(started), float(seconds), outcome))


@contextmanager
def healthy_clients(
    address: tuple[str, int],
    expected: Namespace,
    clients: int,
    period_ms: int,
    pace: str = ASKED,
) -> Iterator[HealthyClients]:
    """List a namespace by clients on a schedule, for a block."""
    what = [expected.name, str(expected.topics), str(expected.hash)]
    what += [str(clients), str(period_ms), pace]
    server = "{}:{}".format(*address)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.proof.peers.healthy_clients", server, *what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield HealthyClients(process.stdout)
    finally:
        process.stdin.close()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> float:
    """Poll a condition, and return the monotonic clock at success.

    Raises:
        ProofError: The condition stayed false until the timeout.
    """
    give_up = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > give_up:
            raise ProofError(f"{what} did not come in {seconds:g} s")
        time.sleep(LOOK_SECONDS)
    return time.monotonic()


def p99_seconds(listings: Sequence[Listing]) -> float:
    """Return the 99th percentile of the seconds of listings, by nearest rank; of none, infinity."""
    ordered = sorted(listing.seconds for listing in listings) or [math.inf]
    return ordered[math.ceil(0.99 * len(ordered)) - 1]
