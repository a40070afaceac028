"""Official clients of several languages under load, each a separate process.

Common protocol: ``COMMAND FOLDER WAY=URL ...`` reports its start, publishes, consumes and lists
until a line on its standard input, and then reports its calls.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT
from tests.official.clients import ClientMissingError, go_client, java_client
from tests.proof.restarts.servers import Fleet
from tests.proof.result import ProofError

PYTHON = (sys.executable, "-m", "tests.proof.restarts.load")
Loads = dict[str, subprocess.Popen[str]]


def _java() -> tuple[str, ...]:
    *start, _ = java_client().command
    return (*start, "Load")


def _go() -> tuple[str, ...]:
    return (str(Path(go_client().command[0]).with_name("loading")),)


COMMANDS: Mapping[str, Callable[[], tuple[str, ...]]] = {
    "python": lambda: PYTHON,
    "java": _java,
    "go": _go,
}


@contextmanager
def running_loads(out: Path, fleet: Fleet, languages: Sequence[str]) -> Iterator[Loads]:
    """Run clients directly and through the proxies for a block.

    Raises:
        ProofError: A language's client is not available, or did not start.
    """
    loads: Loads = {}
    with ExitStack() as stack:
        for language in languages:
            try:
                command = COMMANDS[language]()
            except ClientMissingError as error:
                raise ProofError(str(error)) from None
            ways = [
                f"{language}-direct={fleet.url('broker')}",
                f"{language}-proxied={fleet.url('proxy')}",
            ]
            log = stack.enter_context((out / f"load-{language}.err").open("wb"))
            process = subprocess.Popen(
                [*command, str(out.resolve()), *ways],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=ROOT,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            loads[language] = process
        for language in loads:
            _line(language, loads[language])
        yield loads


def finished_loads(loads: Loads) -> dict[str, Any]:
    """End the producing, and return the results, of all together and of each language."""
    for process in loads.values():
        assert process.stdin is not None
        process.stdin.write("stop\n")
        process.stdin.flush()
    found = {language: _line(language, process) for language, process in loads.items()}
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


def _line(language: str, process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise ProofError(f"the process of {language} clients ended; see load-{language}.err")
    return json.loads(line)
