"""The process of one target: ``python -m tests.fuzz.child TARGET ...``, with atheris in it.

What the target imports is instrumented, so that this imports nothing of Floodgate before.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path
from typing import Annotated

import atheris
import typer

from tests.fuzz.judge import Judge
from tests.fuzz.kept import kept
from tests.fuzz.registry import TARGETS
from tests.fuzz.rules import TURNS

WRITTEN_EACH_SECONDS = 1.0
HANG_SECONDS = 60
MEMORY_MB = 3_000


def main(
    name: str,
    inputs: Annotated[int, typer.Option()],
    corpus: Annotated[Path, typer.Option()],
    out: Annotated[Path, typer.Option()],
    seed: Annotated[int, typer.Option()] = 1,
) -> None:
    """Fuzz one target for a number of inputs."""
    target = TARGETS[name]
    logging.getLogger().setLevel(logging.ERROR)
    with atheris.instrument_imports(include=list(target.instrumented)):
        if not target.compares:
            sys.meta_path[0]._trace_dataflow = False  # type: ignore[attr-defined]
        loaded = target.loaded()
    judge = Judge(loaded, out)
    judge.renew()
    begun, cpu = time.perf_counter(), time.process_time()
    written = begun

    def figures() -> None:
        document = {
            "inputs": judge.inputs,
            "refused": judge.refused,
            "finds": judge.finds,
            "seconds": time.perf_counter() - begun,
            "cpu_seconds": time.process_time() - cpu,
            "longest_turn_ms": TURNS.longest_millis,
            **loaded.figures,
        }
        (out / "figures.json").write_text(json.dumps(document))

    def one_input(data: bytes) -> None:
        nonlocal written
        judge.take(data)
        if judge.inputs >= inputs or time.perf_counter() - written > WRITTEN_EACH_SECONDS:
            written = time.perf_counter()
            figures()

    for each in (corpus, out):
        each.mkdir(parents=True, exist_ok=True)
    _begin(corpus, [*loaded.seeds(), *kept(name)])
    options = [
        f"-runs={inputs}",
        f"-max_len={target.most_bytes}",
        f"-timeout={HANG_SECONDS}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-artifact_prefix={out}/",
        f"-seed={seed}",
        str(corpus),
    ]
    own = {} if loaded.mutated is None else {"custom_mutator": loaded.mutated}
    atheris.Setup([sys.argv[0], *options], one_input, **own)
    atheris.Fuzz()


def _begin(corpus: Path, inputs: list[bytes]) -> None:
    """Put the inputs to begin with where libFuzzer looks for them."""
    for number, data in enumerate(inputs):
        path = corpus / f"begin-{number}"
        if not path.exists():
            path.write_bytes(data)


if __name__ == "__main__":
    typer.run(main)
