"""``python -m tests.fuzz.lines TARGET FOLDER``: the lines of a target's files that inputs reach.

With ``--keep`` the fewest inputs that reach them become the kept corpus: those that are quick.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Annotated, Any

import typer

from tests.fuzz.judge import ROOT, Judge
from tests.fuzz.kept import keep, kept
from tests.fuzz.registry import TARGETS
from tests.fuzz.rules import ERRORS

Line = tuple[str, int]
ROUNDS = 6
MOST_KEPT = 120
MOST_SECONDS = 0.1
"""With each line looked at; one that takes longer is nothing for every run of the tests."""
MOST_INPUTS = 4_000


def main(
    name: str,
    folder: Path,
    keeps: Annotated[bool, typer.Option("--keep")] = False,
) -> None:
    """Print how many lines inputs of a folder, and the kept ones, reach; as JSON."""
    logging.getLogger().setLevel(logging.ERROR)
    target = TARGETS[name]
    files = {str(path) for pattern in target.measured for path in ROOT.glob(pattern)}
    loaded = target.loaded()
    found = [path.read_bytes() for path in sorted(folder.glob("*")) if path.is_file()]
    inputs = list(dict.fromkeys([*kept(name), *loaded.seeds(), *sorted(found, key=len)]))
    with ERRORS.listening():
        reached = dict(_each(Judge(loaded), files, inputs[:MOST_INPUTS]))
    lines: set[Line] = set().union(*(of for of, _ in reached.values()))
    if keeps:
        keep(name, _chosen(reached))
    possible = {line for path in files for line in _lines(path)}
    typer.echo(
        json.dumps(
            {"reached": len(lines & possible), "lines": len(possible), "inputs": len(inputs)}
        )
    )


def _each(
    judge: Judge, files: set[str], inputs: list[bytes]
) -> Iterator[tuple[bytes, tuple[frozenset[Line], float]]]:
    """Yield each input with the lines it reaches, and how long it takes."""
    known: dict[Line, Line] = {}
    reached: set[Line] = set()

    def called(frame: FrameType, _: str, __: object) -> Any:
        name = frame.f_code.co_filename
        if name not in files:
            return None

        def line(frame: FrameType, event: str, _: object) -> Any:
            if event == "line":
                at = (name, frame.f_lineno)
                reached.add(known.setdefault(at, at))
            return line

        return line

    threading.settrace(called)
    for data in inputs:
        reached = set()
        begun = time.thread_time()
        sys.settrace(called)
        try:
            judge.take(data)
        finally:
            sys.settrace(None)
        yield data, (frozenset(reached), time.thread_time() - begun)


def _chosen(reached: dict[bytes, tuple[frozenset[Line], float]]) -> list[bytes]:
    """Return inputs that reach every line together, and then others that do, a few times."""
    left = {data: lines for data, (lines, seconds) in reached.items() if seconds < MOST_SECONDS}
    chosen: list[bytes] = []
    for _ in range(ROUNDS):
        for data in _fewest(left):
            del left[data]
            if len(chosen) < MOST_KEPT:
                chosen.append(data)
    return chosen


def _fewest(left: dict[bytes, frozenset[Line]]) -> list[bytes]:
    """Return the fewest inputs for all lines: those first that add most for their size."""
    missing: set[Line] = set().union(*left.values())
    waiting, chosen = dict(left), []
    while missing:
        best = max(waiting, key=lambda one: len(waiting[one] & missing) / (40 + len(one)))
        missing -= waiting.pop(best)
        chosen.append(best)
    return chosen


def _lines(path: str) -> Iterator[Line]:
    """Yield the lines of a file that can be reached when a function of it is called."""
    code = compile(Path(path).read_text(encoding="utf-8"), path, "exec")
    waiting = [one for one in code.co_consts if hasattr(one, "co_code")]
    while waiting:
        one: CodeType = waiting.pop()
        waiting += [inner for inner in one.co_consts if hasattr(inner, "co_code")]
        is_class = not one.co_flags & 0x02
        if not is_class:
            numbers = {number for _, _, number in one.co_lines() if number}
            yield from ((path, number) for number in numbers - {one.co_firstlineno})


if __name__ == "__main__":
    sys.exit(typer.run(main))
