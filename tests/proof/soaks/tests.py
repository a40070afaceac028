"""Tests that ``make test`` leaves out: those with the marker ``proof``, and new examples.

``make test`` has the same examples of property tests each time.
"""

import secrets
import subprocess
import sys

from benchmarks.processes import ROOT
from tests.proof.result import ProofOptions, ProofResult

ROUNDS = 8
PATIENCE_SECONDS = 1800.0
NOTHING_COLLECTED = 5


def prove(options: ProofOptions) -> ProofResult:
    """Run the marked tests, and every property test with a few seeds."""
    result = ProofResult({"seeds": []})
    options.note("pytest -m proof")
    code, last = _pytest(options, "marked", "-m", "proof")
    said = f"pytest -m proof: {last}"
    result.check("marked tests", code in (0, NOTHING_COLLECTED), said)
    rounds = 1 if options.quick else ROUNDS
    for number in range(1, rounds + 1):
        seed = str(secrets.randbelow(1 << 32))
        options.note(f"seed {seed}, {number} of {rounds}")
        result.figures["seeds"].append(seed)
        words = ["-n", "2", "--dist", "loadfile", "-m", "hypothesis and not proof"]
        words += ["--hypothesis-profile", "searching", "--hypothesis-seed", seed]
        code, last = _pytest(options, seed, "--show-capture=no", *words)
        result.check(f"seed {seed}", code == 0, f"property tests with the seed {seed}: {last}")
    return result


def _pytest(options: ProofOptions, name: str, *words: str) -> tuple[int, str]:
    """Return the exit code and the last line."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    log = options.out / f"pytest-{name}.log"
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(
            command, cwd=ROOT, stdout=file, stderr=file, timeout=PATIENCE_SECONDS, check=False
        )
    lines = log.read_text(encoding="utf-8").strip().splitlines() or ["pytest said nothing"]
    return done.returncode, lines[-1].strip("= ")
