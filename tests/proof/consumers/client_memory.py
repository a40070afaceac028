"""A thousand consumers on 10 GB, and ten producers before a stopped server, under 64 MiB.

The scenario ``client-memory`` as a user runs it, with a broker of its own whose log has the 10 GB;
they are gone afterwards. Beside it stands what upstream's queues take at the same size.
"""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.processes import ROOT
from tests.proof.result import ProofError, ProofOptions, ProofResult

FULL = (
    *("--backlog-topics", "100", "--consumers-per-topic", "10", "--backlog", "10GB"),
    *("--memory-limit", "64MiB", "--work-seconds", "1", "--drain-seconds", "60"),
    *("--producers", "10", "--producer-messages", "32", "--stopped-seconds", "5"),
)
PATIENCE_SECONDS = 900.0
GOAL_SECONDS = 10.0
"""Within it every consumer has a message."""


def prove(options: ProofOptions) -> ProofResult:
    """Run the scenario, and copy its checks."""
    out = options.out.resolve()
    run = out / "client-memory"
    arguments = () if options.quick else FULL
    given = ("--scenario", "client-memory", "--executor", "process", "--name", run.name)
    options.note("python -m loadgen run --scenario client-memory")
    code, said = _loadgen("run", *given, "--out", str(out), *arguments)
    (out / "client-memory.log").write_text(said, encoding="utf-8")
    if not (run / "summary.json").is_file():
        raise ProofError(f"the scenario ended with {code} and without a summary: {said[-500:]}")
    found = json.loads((run / "summary.json").read_text())
    result = ProofResult({"exit_code": code, **found["client_memory"]})
    for check in found["client_memory"]["checks"]:
        result.check(check["name"], check["passed"], check["sentence"])
    ours = found["client_memory"]["parts"]["bytes"]
    slowest = ours["first_message_slowest_seconds"]
    result.check(
        "every consumer gets a message",
        not ours["without_message"] and slowest <= GOAL_SECONDS,
        f"{ours['without_message']} consumers got no message, the others one within "
        f"{slowest:.2f} s, allowed are {GOAL_SECONDS:g} s",
    )
    result.check("exit code", code == 0, f"it ended with exit code {code}")
    return result


def _loadgen(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "loadgen", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr
