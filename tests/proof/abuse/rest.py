"""What servers hold between rounds: memory, descriptors, the limiter's books."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.proof.process_memory import resident_bytes
from tests.proof.servers import samples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadgen.servers.processes import ServerProcess
    from tests.proof.result import ProofResult

SETTLE_SECONDS = 20.0
LOOK_SECONDS = 0.25
STEADY_LOOKS = 8
ALLOWED_GROWTH = 0.05


@dataclass(frozen=True)
class ServerRest:
    """One server at rest; healthy clients are at work meanwhile.

    Attributes:
        resident_bytes: The least that was resident while it was looked at.
        descriptors: Open files, of which the healthy have a part.
        kinds: What these descriptors are, at the last look.
        held: What the limiter holds; the least seen of each.
    """

    resident_bytes: int
    descriptors: int
    kinds: dict[str, int]
    held: dict[str, float]


Rest = dict[str, ServerRest]


def at_rest(servers: Sequence[ServerProcess], before: Rest | None = None) -> Rest:
    """Wait until nothing is held, then look for two seconds and take the least of each.

    Descriptors are waited for, too, until they are as before: what HTTP keeps open has its time.
    """
    known = {
        int(url.rpartition(":")[2]): f"{each.module}{what}"
        for each in servers
        for url, what in ((each.service_url, ""), (each.web_url, ", HTTP"))
    }
    return {
        each.module: _of_one(each, None if before is None else before[each.module], known)
        for each in servers
    }


def _of_one(
    server: ServerProcess, before: ServerRest | None, known: Mapping[int, str]
) -> ServerRest:
    give_up = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < give_up:
        more = before is not None and _descriptors(server.pid) != before.descriptors
        if not more and not any(_held(server).values()):
            break
        time.sleep(LOOK_SECONDS)
    looks = []
    for _ in range(STEADY_LOOKS):
        time.sleep(LOOK_SECONDS)
        looks.append((resident_bytes(server.pid), _descriptors(server.pid), _held(server)))
    held = {name: min(look[2][name] for look in looks) for name in looks[0][2]}
    return ServerRest(
        min(look[0] for look in looks),
        min(look[1] for look in looks),
        _kinds(server.pid, known),
        held,
    )


def _descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def _kinds(pid: int, known: Mapping[int, str]) -> dict[str, int]:
    """Return how many descriptors of each kind there are; connections by what they lead to."""
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


def _held(server: ServerProcess) -> dict[str, float]:
    found = samples(server)
    own = f"pulsar_{server.module}_topic_list_"
    names = [f"{own}{kind}_{what}" for kind in ("heap", "direct") for what in _HELD]
    return {name: found[name] for name in (*names, "floodgate_outbound_pending_bytes")}


_HELD = ("memory_used_bytes", "queue_size")


def judge_rest(rests: Sequence[Rest], result: ProofResult, *, quick: bool) -> None:
    """Add the checks of memory, descriptors and books."""
    result.figures["rests"] = [
        {name: asdict(each) for name, each in rest.items()} for rest in rests
    ]
    before, first, *_, last = rests
    for module in before:
        grown = last[module].resident_bytes / first[module].resident_bytes - 1
        curve = ", ".join(f"{rest[module].resident_bytes / 1e6:.0f}" for rest in rests)
        result.check(
            f"memory of the {module}",
            quick or grown <= ALLOWED_GROWTH,
            f"the {module} had {curve} MB before and after each round: {100 * grown:+.1f} % from "
            "the first to the third",
        )
        counts = [rest[module].descriptors for rest in rests]
        result.check(
            f"descriptors of the {module}",
            len(set(counts)) == 1,
            f"the {module} had {', '.join(map(str, counts))} descriptors",
        )
        left = {name: value for rest in rests for name, value in rest[module].held.items() if value}
        result.check(
            f"the books of the {module}",
            not left,
            f"the {module}'s limiter holds {left or 'nothing'} after each round",
        )
