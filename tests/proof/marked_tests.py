"""Tests with the marker ``proof``, excluded from make test."""

import subprocess
import sys

from benchmarks.processes import ROOT
from tests.proof.result import ProofOptions, ProofResult

PATIENCE_SECONDS = 1800.0
NOTHING_COLLECTED = 5


def prove(options: ProofOptions) -> ProofResult:
    options.note("pytest -m proof")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "proof", "-p", "no:cacheprovider"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    (options.out / "pytest.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    last = (done.stdout.strip().splitlines() or ["pytest said nothing"])[-1]
    result = ProofResult({"exit_code": done.returncode})
    passed = done.returncode in (0, NOTHING_COLLECTED)
    result.check("marked tests", passed, f"pytest -m proof: {last.strip('= ')}")
    return result
