"""The common state of the parts of `hosts`: stage, sizes, runs by name, and result so far."""

import json
from pathlib import Path
from typing import Any

from loadgen.results.results import Results
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.proof.spark.stage import WORKERS, Ended, Stage, Submitted

CLIENTS, TASKS = 3_000, 12
QUICK_CLIENTS, QUICK_TASKS = 120, 3


class Play:
    """A stage with its played runs. Mutable state: the checks and figures so far."""

    def __init__(self, stage: Stage, options: ProofOptions, result: ProofResult) -> None:
        self.stage, self.options, self.result = stage, options, result
        self.out = options.out.resolve()
        self.clients = QUICK_CLIENTS if options.quick else CLIENTS
        self.tasks = QUICK_TASKS if options.quick else TASKS
        self.corpus = self.out / "topics"

    def written(self, name: str, text: str) -> Path:
        path = self.out / name
        path.write_text(text, encoding="utf-8")
        return path

    def words(self, name: str, document: Path, tasks: int) -> list[str]:
        words = ["run", str(document), *self.stage.target(), "--tasks", str(tasks)]
        return [*words, "--out", str(self.out / "runs"), "--name", name]

    def run(self, name: str, document: Path, *more: str) -> Submitted:
        """Start a run on the cluster, once that is free."""
        self.stage.await_workers(len(WORKERS))
        words = [*self.words(name, document, self.tasks), "--place", "spark", *more]
        return self.stage.submit(name, *words)

    def manifest(self, name: str) -> dict[str, Any]:
        """Return a run's figures.

        Raises:
            ProofError: The run does not exist.
        """
        file = self.out / "runs" / name / "run.json"
        if not file.exists():
            raise ProofError(f"no {file}: {(self.out / f'{name}.txt').read_text()[-600:]}")
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return found

    def rows(self, directory: Path) -> dict[str, Any]:
        """Return the numbers of answered requests and their tasks, and the last answer's time."""
        text = """SELECT count(*) AS requests, count(DISTINCT task) AS tasks, max(done) AS seconds
          FROM requests WHERE outcome = 'answered'"""
        with Results.open(directory) as results:
            return results.sql(text)[0]


def require(ended: Ended, *codes: int) -> None:
    """Check a command's exit code.

    Raises:
        ProofError: The code is not among the expected.
    """
    if ended.code not in (codes or (0,)):
        raise ProofError(f"loadgen ended with {ended.code}: {ended.said[-800:]}")
