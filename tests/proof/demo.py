"""The demo as a user runs it, with its checks."""

import json

from tests.proof.commands import LOADGEN, run_logged
from tests.proof.result import ProofError, ProofOptions, ProofResult

QUICK = ("--topics", "50000", "--clients", "100", "--place", "processes")
PATIENCE_SECONDS = 900.0
GOAL_SECONDS = 180.0


def prove(options: ProofOptions) -> ProofResult:
    """Run the demo and copy its checks; the full demo must finish in 180 s."""
    out = options.out.resolve()
    arguments = QUICK if options.quick else ()
    options.note("python -m loadgen demo")
    words = [*LOADGEN, "demo", *arguments, "--out", str(out)]
    code, _ = run_logged(words, out / "demo.log", PATIENCE_SECONDS)
    summary = out / "summary.json"
    if not summary.is_file():
        raise ProofError(f"the demo ended with {code} and without {summary}")
    found = json.loads(summary.read_text())
    result = ProofResult({"exit_code": code, **found})
    for check in found["checks"]:
        result.check(check["name"], check["passed"], check["sentence"])
    seconds = found["duration_seconds"]
    result.check(
        "duration",
        options.quick or seconds <= GOAL_SECONDS,
        f"the demo took {seconds:.0f} s, allowed are {GOAL_SECONDS:.0f} s",
    )
    result.check("exit code", code == 0, f"it ended with exit code {code}")
    return result
