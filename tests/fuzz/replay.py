"""Replays a find without instrumentation: ``python -m tests.fuzz.replay TARGET FILE``.

A file is an input (``.bin``), or all inputs since the target was renewed (``.history.json``), which
are reduced to the fewest that break the rule.
"""

from __future__ import annotations

import base64
import json
import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from tests.fuzz.judge import Judge, signature
from tests.fuzz.registry import TARGETS
from tests.fuzz.rules import ERRORS, TURNS

ROUNDS = 3


def main(
    name: str,
    file: Annotated[Path, typer.Argument(exists=True)] = Path("find.bin"),
    as_json: Annotated[bool, typer.Option("--json", help="Say the longest turn alone.")] = False,
) -> None:
    """Replay a find; exit code 1 if a rule still breaks."""
    logging.getLogger().setLevel(logging.ERROR)
    judge = Judge(TARGETS[name].loaded())
    with ERRORS.listening():
        if as_json:
            millis = longest_turn(judge, file.read_bytes())
            typer.echo(json.dumps({"longest_turn_ms": millis}))
        else:
            _replay(judge, file)


def _replay(judge: Judge, file: Path) -> None:
    if file.suffix == ".json":
        inputs = [base64.b64decode(one) for one in json.loads(file.read_text())]
        inputs = fewest(judge, inputs)
        file.with_suffix(".fewest.json").write_text(
            json.dumps([base64.b64encode(one).decode() for one in inputs])
        )
        for one in inputs:
            typer.echo(repr(one))
    else:
        inputs = [file.read_bytes()]
    error = outcome(judge, inputs)
    if error is not None:
        raise error
    typer.echo(f"nothing; longest turn {longest_turn(judge, inputs[-1]):.1f} ms")


def outcome(judge: Judge, inputs: list[bytes]) -> BaseException | None:
    """Return the outcome of the last input, on a renewed target."""
    judge.renew()
    try:
        for one in inputs:
            judge.take(one)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - looked for
        return error
    return None


def fewest(judge: Judge, inputs: list[bytes]) -> list[bytes]:
    """Return the fewest inputs that break the same rule at the same place."""
    first = outcome(judge, inputs)
    if first is None:
        return inputs
    wanted, size = signature(first), max(1, len(inputs) // 2)
    while True:
        at = 0
        while at < len(inputs):
            fewer = inputs[:at] + inputs[at + size :]
            error = outcome(judge, fewer) if fewer else None
            if error is not None and signature(error) == wanted:
                inputs = fewer
            else:
                at += size
        if size == 1:
            return inputs
        size //= 2


def longest_turn(judge: Judge, data: bytes) -> float:
    """Return the longest turn of an input, best of several rounds, in milliseconds."""
    best = float("inf")
    for _ in range(ROUNDS):
        with TURNS.exactly():
            judge.take(data)
        best = min(best, TURNS.of_this_input)
    return best


if __name__ == "__main__":
    sys.exit(typer.run(main))
