"""Line coverage of a target's inputs: ``python -m tests.fuzz.lines TARGET FOLDER``.

With ``--keep`` the smallest set of fast inputs with full coverage becomes the kept corpus.
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
"""Limit with line tracing; slower inputs would delay every test run."""
MOST_INPUTS = 4_000


def main(
    name: str,
    folder: Path,
    keeps: Annotated[bool, typer.Option("--keep")] = False,
) -> None:
    """Print, as JSON, the line counts that a folder's inputs and the kept inputs reach."""
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
    """Yield each input with its reached lines and its seconds."""
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
    """Return a small set of inputs with full coverage, then further such sets."""
    left = {data: lines for data, (lines, seconds) in reached.items() if seconds < MOST_SECONDS}
    chosen: list[bytes] = []
    for _ in range(ROUNDS):
        for data in _fewest(left):
            del left[data]
            if len(chosen) < MOST_KEPT:
                chosen.append(data)
    return chosen


def _fewest(left: dict[bytes, frozenset[Line]]) -> list[bytes]:
    """Return a small set with full coverage: greedy by new lines per byte."""
    missing: set[Line] = set().union(*left.values())
    waiting, chosen = dict(left), []
    while missing:
        best = max(waiting, key=lambda one: len(waiting[one] & missing) / (40 + len(one)))
        missing -= waiting.pop(best)
        chosen.append(best)
    return chosen


def _lines(path: str) -> Iterator[Line]:
    """Yield the lines of a file within functions."""
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
