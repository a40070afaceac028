"""Random odd exchanges, played to a real Pulsar named by the environment and to Floodgate."""

import os
import secrets
import sys
from dataclasses import dataclass

from tests.differential.__main__ import NOT_KEPT
from tests.differential.sides import ENVIRONMENT, NO_REAL_PULSAR, PROXY_ENVIRONMENT
from tests.proof.commands import run_logged
from tests.proof.result import ProofOptions, ProofResult

PATIENCE_SECONDS = 1_800.0
QUICK_SHARE = 20


@dataclass(frozen=True)
class Part:
    """A run: its exchange, number of seeds, and required environment variables."""

    title: str
    flags: tuple[str, ...]
    seeds: int
    count_of_each: int
    needs: tuple[str, ...] = ENVIRONMENT


PARTS = (
    Part("directly", (), 5, 610),
    Part("through the proxies", ("--proxy",), 2, 510, (*ENVIRONMENT, PROXY_ENVIRONMENT)),
    Part("admin", ("--rest",), 5, 720),
    Part("dialogues", ("--dialogues",), 2, 280),
)


def prove(options: ProofOptions) -> ProofResult:
    """Play each part with fresh seeds; skip without a real Pulsar."""
    result = ProofResult({"seeds": {}})
    for part in PARTS:
        missing = [name for name in part.needs if not os.environ.get(name)]
        if missing:
            result.check(part.title, True, f"{part.title}: not played. {NO_REAL_PULSAR}")
            continue
        _play(part, options, result)
    return result


def _play(part: Part, options: ProofOptions, result: ProofResult) -> None:
    seeds = [secrets.randbelow(1 << 32) for _ in range(1 if options.quick else part.seeds)]
    count = part.count_of_each // (QUICK_SHARE if options.quick else 1)
    options.note(f"{part.title}, seeds {' '.join(map(str, seeds))}")
    command = [sys.executable, "-m", "tests.differential", f"--count={count}", *part.flags]
    command += [f"--seed={seed}" for seed in seeds]
    log = options.out / f"{part.title.replace(' ', '-')}.log"
    code, lines = run_logged(command, log, PATIENCE_SECONDS)
    said = [line for line in lines if line.startswith(part.title)]
    not_kept = [line for line in lines if line.startswith(NOT_KEPT)]
    result.figures["seeds"][part.title] = {"played": seeds, "said": said}
    whole = len(said) == len(seeds) + 1
    # A few exchanges only show that the proof works; their share of agreement is chance.
    passed = whole and (options.quick or code == 0)
    told = [*said, *not_kept] if whole else [f"{part.title}: cut short"]
    result.check(part.title, passed, "; ".join(told))
