"""Every shipped scenario runs by its name alone and meets its expectations.

Expectations of profile ``floodgate`` that profile ``pulsar`` cannot meet are run against it as
well, and must be missed there: an expectation that always holds is worthless.
"""

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from loadgen.documents.reading import read_document, shipped
from loadgen.errors import ExitCode
from tests.proof.result import ProofError, ProofOptions, ProofResult

# Of ten thousand sockets: shown by separate proofs.
FULL_SIZE = "-full"
MISSED_AS_SHIPPED = (
    "abusive-client",
    "hold-and-wait",
    "mixed-tenants",
    "oversize-frame",
    "oversize-namespace",
    "produce-beside-silent",
    "slow-readers",
    "stuck",
)
QUICK = ("stuck", "watch-churn")
LONGEST_SECONDS = 600.0
RUN_SECONDS = 180.0
TABLE = f"{'scenario':<24}{'profile':<12}{'exit':>5}{'seconds':>9}  missed"


@dataclass(frozen=True)
class Row:
    """A run of a scenario.

    Attributes:
        missed: Failed expectations, with the actual values.
        said: The last line on standard error.
    """

    scenario: str
    profile: str
    exit_code: int
    seconds: float
    missed: list[str]
    said: str

    def line(self) -> str:
        """Return the table's row."""
        missed = "; ".join(self.missed) or "-"
        figures = f"{self.exit_code:>5}{self.seconds:>9.0f}"
        return f"{self.scenario:<24}{self.profile:<12}{figures}  {missed}"


def prove(options: ProofOptions) -> ProofResult:
    """Run scenarios in sequence, each with new servers."""
    names = [name for name in shipped() if not name.endswith(FULL_SIZE)]
    if options.quick:
        names = [name for name in names if name in QUICK]
    result, rows = ProofResult(), []
    for name in names:
        options.note(name)
        profile = read_document(name).servers.profile
        rows.append(row := _run(name, profile, options.out))
        passed = row.exit_code == ExitCode.PASSED
        result.check(name, passed, f"{name} by its name alone: {_sentence(row)}")
    own_seconds = sum(row.seconds for row in rows)
    for name in (each for each in names if each in MISSED_AS_SHIPPED):
        options.note(f"{name}, profile pulsar")
        rows.append(row := _run(name, "pulsar", options.out))
        missed = row.exit_code == ExitCode.THRESHOLDS
        result.check(f"{name} (pulsar)", missed, f"{name} in profile pulsar: {_sentence(row)}")
    result.figures.update(rows=[asdict(row) for row in rows], seconds=own_seconds)
    result.check(
        "time",
        own_seconds < LONGEST_SECONDS,
        f"{len(names)} scenarios took {own_seconds:.0f} s, of at most {LONGEST_SECONDS:.0f} s",
    )
    lines = [TABLE, *(row.line() for row in rows)]
    (options.out / "table.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return result


def _run(name: str, profile: str, out: Path) -> Row:
    run = f"{name}-{profile}"
    command = [sys.executable, "-m", "loadgen", "run", name, "--set", f"servers.profile={profile}"]
    command += ["--out", str(out), "--name", run, "--json"]
    begun = time.monotonic()
    ended = _ended(name, command)
    if ended.returncode == ExitCode.GENERATOR_LIMITED:
        # The run reports a machine too busy for the load: retry once.
        ended = _ended(name, command)
    summary = json.loads(ended.stdout) if ended.stdout else {"expectations": []}
    missed = [
        f"{each['expectation']} ({each['found']})"
        for each in summary["expectations"]
        if not each["holds"]
    ]
    said = (ended.stderr.strip().splitlines() or [""])[-1]
    return Row(name, profile, ended.returncode, time.monotonic() - begun, missed, said)


def _ended(name: str, command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=RUN_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ProofError(f"{name} did not end within {RUN_SECONDS:.0f} s") from None


def _sentence(row: Row) -> str:
    found = f"exit code {row.exit_code} after {row.seconds:.0f} s"
    if row.missed:
        return f"{found}; missed {'; '.join(row.missed)}"
    return found if row.exit_code == ExitCode.PASSED else f"{found}; {row.said}"
