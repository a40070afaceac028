"""Property tests with new examples; ``make test`` has the same examples each time."""

import secrets
import subprocess
import sys

from benchmarks.processes import ROOT
from tests.proof.result import ProofOptions, ProofResult

ROUNDS = 8
PATIENCE_SECONDS = 900.0


def prove(options: ProofOptions) -> ProofResult:
    """Run every property test with a few seeds; a failing seed is a figure."""
    result = ProofResult({"seeds": []})
    rounds = 1 if options.quick else ROUNDS
    found = []
    for number in range(1, rounds + 1):
        seed = secrets.randbelow(1 << 32)
        options.note(f"seed {seed}, {number} of {rounds}")
        result.figures["seeds"].append(seed)
        if not _holds(seed, options):
            found.append(seed)
    result.check(
        "random examples",
        not found,
        f"property tests hold, seeds: {rounds}"
        if not found
        else f"property tests fail with the seeds {found}: see pytest-SEED.log",
    )
    return result


def _holds(seed: int, options: ProofOptions) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile"]
    command += ["-m", "hypothesis and not proof", "-p", "no:cacheprovider", "--show-capture=no"]
    command += ["--hypothesis-profile", "searching", "--hypothesis-seed", str(seed)]
    with (options.out / f"pytest-{seed}.log").open("w", encoding="utf-8") as log:
        done = subprocess.run(
            command, cwd=ROOT, stdout=log, stderr=log, timeout=PATIENCE_SECONDS, check=False
        )
    return done.returncode == 0
