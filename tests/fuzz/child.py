"""Process of a target, with atheris: ``python -m tests.fuzz.child TARGET ...``.

The target's imports are instrumented, so this module may not import Floodgate before.
"""

import gc
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
from tests.fuzz.rules import ERRORS, TURNS
from tests.fuzz.target import Target

WRITTEN_EACH_SECONDS = 1.0
COLLECTED_AFTER = 5_000
"""Inputs between garbage collections, which would look like a long turn within an input."""
HANG_SECONDS = 60
MEMORY_MB = 3_000


class Run:
    """Inputs of a target in this process, and the progress file."""

    def __init__(self, target: Target, inputs: int, out: Path) -> None:
        with atheris.instrument_imports(include=list(target.instrumented)):
            if not target.compares:
                sys.meta_path[0]._trace_dataflow = False  # type: ignore[attr-defined]
            self.loaded = target.loaded()
        self._judge = Judge(self.loaded, out)
        self._judge.renew()
        gc.collect()
        gc.freeze()
        gc.disable()
        self._inputs = inputs
        self._file = out / "figures.json"
        self._begun = self._written = time.perf_counter()
        self._cpu_begun = time.process_time()

    def one_input(self, data: bytes) -> None:
        """Run an input; periodically collect garbage and write the progress."""
        self._judge.take(data)
        count = self._judge.inputs
        if count % COLLECTED_AFTER == 0:
            gc.unfreeze()  # A starting server freezes the live objects.
            gc.collect()
        if count >= self._inputs or time.perf_counter() - self._written > WRITTEN_EACH_SECONDS:
            self._written = time.perf_counter()
            self._write()

    def _write(self) -> None:
        document = {
            "inputs": self._judge.inputs,
            "refused": self._judge.refused,
            "finds": self._judge.finds,
            "seconds": time.perf_counter() - self._begun,
            "cpu_seconds": time.process_time() - self._cpu_begun,
            "longest_turn_ms": TURNS.longest_millis,
            **self.loaded.figures,
        }
        self._file.write_text(json.dumps(document))


def main(
    name: str,
    inputs: Annotated[int, typer.Option()],
    corpus: Annotated[Path, typer.Option()] = Path("out/fuzz/corpus"),
    out: Annotated[Path, typer.Option()] = Path("out/fuzz/child"),
    seed: Annotated[int, typer.Option()] = 1,
) -> None:
    logging.getLogger().setLevel(logging.ERROR)
    for each in (corpus, out):
        each.mkdir(parents=True, exist_ok=True)
    run = Run(TARGETS[name], inputs, out)
    _begin(corpus, [*run.loaded.seeds(), *kept(name)])
    options = [
        f"-runs={inputs}",
        f"-max_len={TARGETS[name].most_bytes}",
        f"-timeout={HANG_SECONDS}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-artifact_prefix={out}/",
        f"-seed={seed}",
        str(corpus),
    ]
    own = {} if run.loaded.mutated is None else {"custom_mutator": run.loaded.mutated}
    atheris.Setup([sys.argv[0], *options], run.one_input, **own)
    with ERRORS.listening():
        atheris.Fuzz()


def _begin(corpus: Path, inputs: list[bytes]) -> None:
    """Put the initial inputs into libFuzzer's folder."""
    for number, data in enumerate(inputs):
        path = corpus / f"begin-{number}"
        if not path.exists():
            path.write_bytes(data)


if __name__ == "__main__":
    typer.run(main)
