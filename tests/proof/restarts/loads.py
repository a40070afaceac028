"""Official clients of several languages under load, each a separate process.

Common protocol: ``COMMAND FOLDER WAY=URL ...`` reports its start, publishes, consumes and lists
until a line on its standard input, and then reports its calls.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.proof.programs import Program, official_command, running_programs
from tests.proof.restarts.servers import Fleet


@contextmanager
def running_loads(
    out: Path, fleet: Fleet, languages: Sequence[str]
) -> Iterator[dict[str, Program]]:
    """Run clients directly and through the proxies for a block.

    Raises:
        ProofError: A language's client is not available, or did not start.
    """
    commands = {
        language: (
            *official_command(language, "tests.proof.restarts.load", "Load", "loading"),
            str(out.resolve()),
            f"{language}-direct={fleet.url('broker')}",
            f"{language}-proxied={fleet.url('proxy')}",
        )
        for language in languages
    }
    with running_programs(commands, out) as loads:
        for load in loads.values():
            load.line()
        yield loads


def finished_loads(loads: dict[str, Program]) -> dict[str, Any]:
    """End the producing, and return the results, of all together and of each language."""
    for load in loads.values():
        load.say("stop")
    found = {language: load.line() for language, load in loads.items()}
    longest: dict[str, float] = {}
    calls: Counter[str] = Counter()
    for language, one in found.items():
        calls.update(one["calls"])
        longest.update({f"{language}, {kind}": s for kind, s in one["longest_seconds"].items()})
    return {
        "calls": calls,
        "longest_seconds": longest,
        "failures": [f"{name}: {said}" for name, one in found.items() for said in one["failures"]],
        "receipted": sum(one["receipted"] for one in found.values()),
        "repeated": sum(one["repeated"] for one in found.values()),
        "missing": {way: lost for one in found.values() for way, lost in one["missing"].items()},
        "tried_again": {
            name: one["tried_again"] for name, one in found.items() if "tried_again" in one
        },
        "calls_by_language": {name: sum(one["calls"].values()) for name, one in found.items()},
    }
