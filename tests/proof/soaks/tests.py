"""Tests that ``make test`` leaves out: those with the marker ``proof``, and new examples.

``make test`` has the same examples of property tests each time.
"""

import secrets
from collections.abc import Sequence

from tests.proof.commands import run_pytest
from tests.proof.result import ProofOptions, ProofResult

ROUNDS = 8
PATIENCE_SECONDS = 1800.0
NOTHING_COLLECTED = 5


def prove(options: ProofOptions) -> ProofResult:
    """Run the marked tests, and every property test with a few seeds."""
    result = ProofResult({"seeds": []})
    options.note("pytest -m proof")
    code, last = _pytest(options, "marked", ["-m", "proof"])
    said = f"pytest -m proof: {last}"
    result.check("marked tests", code in (0, NOTHING_COLLECTED), said)
    rounds = 1 if options.quick else ROUNDS
    for number in range(1, rounds + 1):
        seed = str(secrets.randbelow(1 << 32))
        options.note(f"seed {seed}, {number} of {rounds}")
        result.figures["seeds"].append(seed)
        words = ["--show-capture=no", "-n", "2", "--dist", "loadfile"]
        words += ["-m", "hypothesis and not proof"]
        words += ["--hypothesis-profile", "searching", "--hypothesis-seed", seed]
        code, last = _pytest(options, seed, words)
        result.check(f"seed {seed}", code == 0, f"property tests with the seed {seed}: {last}")
    return result


def _pytest(options: ProofOptions, name: str, words: Sequence[str]) -> tuple[int, str]:
    return run_pytest(words, options.out / f"pytest-{name}.log", PATIENCE_SECONDS)
