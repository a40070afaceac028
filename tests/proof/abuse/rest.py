"""Server measurements between rounds: memory, descriptors, the limiter's holdings."""

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.process_memory import resident_bytes
from loadgen.places.server_process import ServerProcess
from proxy.forwarding.forwarder import MAX_CONNECTIONS
from server.tasks.freed_memory import LOOK_SECONDS, LOOKS
from server.tasks.worker_processes import MAX_WORKERS
from tests.proof.result import ProofResult
from tests.proof.servers import samples

SETTLE_SECONDS = 20.0
POLL_SECONDS = 0.25
STEADY_LOOKS = 6
ALLOWED_GROWTH = 0.05


@dataclass(frozen=True)
class ServerRest:
    """A server at rest, with healthy clients at work.

    Attributes:
        resident_bytes: The least resident memory observed.
        heap_bytes: Bytes in use by the C library, as reported by the process.
        python_blocks: Memory blocks of Python.
        descriptors: Open files, including the healthy clients'.
        kinds: Kinds of descriptors, at the last sample.
        held: The limiter's holdings; the least of each.
    """

    resident_bytes: int
    heap_bytes: int
    python_blocks: int
    descriptors: int
    kinds: dict[str, int]
    held: dict[str, float]


Rest = dict[str, ServerRest]


def at_rest(servers: Sequence[ServerProcess], before: Rest | None = None) -> Rest:
    """Wait until nothing is held and freed memory is released, then return the least of samples.

    Wait for descriptors, too: HTTP keep-alive connections end after their timeout.
    """
    known = {
        int(url.rpartition(":")[2]): f"{each.module}{what}"
        for each in servers
        for url, what in ((each.service_url, ""), (each.web_url, ", HTTP"))
    }
    time.sleep(LOOKS * LOOK_SECONDS + 1)
    give_up = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < give_up and not all(_rests(each, before) for each in servers):
        time.sleep(POLL_SECONDS)
    return {each.module: _looked_at(each, known) for each in servers}


def _rests(server: ServerProcess, before: Rest | None) -> bool:
    more = before is not None and _descriptors(server.pid) != before[server.module].descriptors
    return not more and not any(_held(samples(server), server.module).values())


def _looked_at(server: ServerProcess, known: Mapping[int, str]) -> ServerRest:
    looks = []
    for _ in range(STEADY_LOOKS):
        time.sleep(POLL_SECONDS)
        found = samples(server)
        looks.append((resident_bytes(server.pid), _descriptors(server.pid), found))
    least = {name: min(look[2][name] for look in looks) for name in looks[0][2]}
    return ServerRest(
        resident_bytes=min(look[0] for look in looks),
        heap_bytes=round(least['floodgate_heap_bytes{state="in_use"}']),
        python_blocks=round(least["floodgate_python_blocks"]),
        descriptors=min(look[1] for look in looks),
        kinds=_kinds(server.pid, known),
        held=_held(least, server.module),
    )


def _descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def _kinds(pid: int, known: Mapping[int, str]) -> dict[str, int]:
    """Return the number of descriptors by kind; connections by their peer."""
    ports = {}
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        own, other = (int(end.rpartition(":")[2], 16) for end in fields[1:3])
        ports[fields[9]] = f"from {known.get(own)}" if other not in known else f"to {known[other]}"
    kinds: Counter[str] = Counter()
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(OSError):  # closed meanwhile
            kind, _, number = os.readlink(f"/proc/{pid}/fd/{name}").partition(":[")
            place = ports.get(number.rstrip("]"), "of this process")
            kinds[f"{kind}, {place}" if kind == "socket" else kind] += 1
    return dict(sorted(kinds.items()))


def _held(found: Mapping[str, float], role: str) -> dict[str, float]:
    own = f"pulsar_{role}_topic_list_"
    names = [f"{own}{kind}_{what}" for kind in ("heap", "direct") for what in _HELD]
    return {name: found[name] for name in (*names, "floodgate_outbound_pending_bytes")}


_HELD = ("memory_used_bytes", "queue_size")


# Python's blocks are only reported: garbage remains until the collector's next full pass.
_MEMORY = {"resident bytes": "resident_bytes", "heap bytes in use": "heap_bytes"}


_POOLED = "socket, to broker, HTTP"
"""These alternate during forwarded requests, so that no connection idles until its timeout."""
_INNER = "socket, of this process"
"""Among these is one for each process that matches slow patterns, kept for the next pattern."""


def judge_rest(rests: Sequence[Rest], result: ProofResult, *, quick: bool) -> None:
    result.figures["rests"] = [
        {name: asdict(each) for name, each in rest.items()} for rest in rests
    ]
    for module in rests[0]:
        for what, name in _MEMORY.items():
            values = [getattr(rest[module], name) for rest in rests]
            grown = values[-1] / values[1] - 1
            result.check(
                f"{what} of the {module}",
                quick or grown <= ALLOWED_GROWTH,
                f"{what} of the {module}: {', '.join(f'{each / 1e6:.2f}' for each in values)} "
                f"million before and after each round; {100 * grown:+.1f} % from the first round "
                "to the third",
            )
        pooled = [rest["proxy"].kinds.get(_POOLED, 0) for rest in rests]
        counts = [rest[module].descriptors for rest in rests]
        inner = [rest[module].kinds.get(_INNER, 0) for rest in rests]
        others = [count - sum(kept) for count, *kept in zip(counts, pooled, inner, strict=True)]
        result.check(
            f"descriptors of the {module}",
            len(set(others)) == 1
            and max(pooled) <= MAX_CONNECTIONS
            and max(inner) <= inner[0] + MAX_WORKERS,
            f"the {module} had {', '.join(map(str, counts))} descriptors; the proxy's HTTP "
            f"connections to the broker among them, kept for the next requests, were "
            f"{', '.join(map(str, pooled))}, and its inner sockets, with those of processes for "
            f"slow patterns, {', '.join(map(str, inner))}",
        )
        left = {name: value for rest in rests for name, value in rest[module].held.items() if value}
        result.check(
            f"the books of the {module}",
            not left,
            f"the {module}'s limiter holds {left or 'nothing'} after each round",
        )
