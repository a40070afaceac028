"""Fuzzing as a proof: a twentieth of the inputs of ``make fuzz``."""

import secrets

from tests.fuzz.campaign import NoAtherisError, amounts, fuzzed
from tests.fuzz.registry import TARGETS
from tests.proof.result import ProofError, ProofOptions, ProofResult

SHARE, QUICK_SHARE = 0.05, 0.002


def prove(options: ProofOptions) -> ProofResult:
    """Fuzz every target, guided by coverage, with a new seed.

    Raises:
        ProofError: atheris is not installed.
    """
    seed = secrets.randbelow(1 << 31)
    result = ProofResult({"seed": seed, "targets": {}})
    for name, inputs in amounts(None, None, QUICK_SHARE if options.quick else SHARE).items():
        title = TARGETS[name].title
        try:
            outcome = fuzzed(
                name, inputs, options.out, seed, lambda said, t=title: options.note(f"{t}: {said}")
            )
        except NoAtherisError as error:
            raise ProofError(str(error)) from None
        result.figures["targets"][name] = vars(outcome)
        result.check(
            name,
            outcome.found_nothing,
            f"{title}: {outcome.inputs:,} inputs, {outcome.reached_lines:,} of "
            f"{outcome.lines:,} lines, "
            f"longest turn {outcome.longest_turn_ms:.1f} ms, "
            f"{len(outcome.finds) + len(outcome.slow)} finds",
        )
    return result
