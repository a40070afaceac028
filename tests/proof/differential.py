"""Random odd exchanges, played to a real Pulsar that the environment names and to Floodgate."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from dataclasses import dataclass

from benchmarks.processes import ROOT
from tests.differential.sides import ENVIRONMENT, NO_REAL_PULSAR, PROXY_ENVIRONMENT
from tests.proof.result import ProofOptions, ProofResult

PATIENCE_SECONDS = 1_800.0
QUICK_SHARE = 20


@dataclass(frozen=True)
class Part:
    """One run: what it plays, how many, and what the environment must name."""

    title: str
    flags: tuple[str, ...]
    count: int
    needs: tuple[str, ...] = ENVIRONMENT


PARTS = (
    Part("directly", (), 3_000),
    Part("through the proxy", ("--proxy",), 1_000, (*ENVIRONMENT, PROXY_ENVIRONMENT)),
    Part("admin", ("--rest",), 3_000),
)


def prove(options: ProofOptions) -> ProofResult:
    """Play each part with a fresh seed; without a real Pulsar say so."""
    result = ProofResult({"seeds": {}})
    for part in PARTS:
        missing = [name for name in part.needs if not os.environ.get(name)]
        if missing:
            result.check(part.title, True, f"{part.title}: not played. {NO_REAL_PULSAR}")
            continue
        _play(part, options, result)
    return result


def _play(part: Part, options: ProofOptions, result: ProofResult) -> None:
    seed = secrets.randbelow(1 << 32)
    result.figures["seeds"][part.title] = seed
    count = part.count // QUICK_SHARE if options.quick else part.count
    options.note(f"{part.title}, seed {seed}")
    command = [sys.executable, "-m", "tests.differential", f"--seed={seed}", f"--count={count}"]
    path = options.out / f"{part.title.replace(' ', '-')}.log"
    with path.open("w", encoding="utf-8") as log:
        done = subprocess.run(
            [*command, *part.flags],
            cwd=ROOT,
            stdout=log,
            stderr=log,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    lines = path.read_text(encoding="utf-8").splitlines()
    summary = lines[1] if len(lines) > 1 else "nothing was said"
    # A few exchanges show that it works; what share of them agrees is chance.
    passed = len(lines) > 1 if options.quick else done.returncode == 0
    result.check(part.title, passed, f"{part.title}, seed {seed}: {summary}")
