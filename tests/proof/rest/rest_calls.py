"""50,000 calls described by broker and proxy in /openapi.json, in each profile.

Most are allowed by the description and name existing objects; the rest are random, or not allowed.
A third goes through the proxy. One call at a time, so that the longest turn since the last belongs
to the call. Both profiles get the same calls.
"""

import json
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any

from benchmarks.controlled_process import controlled_process
from tests.proof.rest.caller import Caller, Seen
from tests.proof.rest.cases import Call, DescribedCalls, Kind
from tests.proof.rest.examples import KNOWN
from tests.proof.rest.recorded_failures import is_recorded
from tests.proof.result import ProofOptions, ProofResult

CALLS, QUICK_CALLS = 50_000, 2_000
COUNTS = {Kind.KNOWN: 16, Kind.OPEN: 5, Kind.REFUSED: 3}
LEAST_ALLOWED = 0.6
BOUND_MILLIS = 20.0
MOST_GROWTH_BYTES = 48 * 1024 * 1024
OPERATIONS_A_BLOCK = 24
BY_PROXY = 1 / 3
PROFILES = ("floodgate", "pulsar")


def prove(options: ProofOptions) -> ProofResult:
    options.out.mkdir(parents=True, exist_ok=True)
    result, least = ProofResult(), QUICK_CALLS if options.quick else CALLS
    with ExitStack() as stack:
        callers = {
            profile: Caller(
                stack.enter_context(
                    controlled_process(
                        "tests.proof.rest.timed_servers",
                        options.out / f"{profile}.log",
                        profile,
                        "few",
                    )
                )
            )
            for profile in PROFILES
        }
        began = time.perf_counter()
        for block in _blocks(callers[PROFILES[0]]):
            for profile, caller in callers.items():
                caller.call_all(block)
                _keep(options, profile, caller.seen)
            made = callers[PROFILES[0]].seen.calls
            rate = made * len(callers) / (time.perf_counter() - began)
            options.note(f"{made:,} calls in each profile, {rate:.0f} a second")
            if made >= least:
                break
        for caller in callers.values():
            caller.end()
    result.figures["calls a second, one after the other"] = round(rate)
    for profile, caller in callers.items():
        _keep(options, profile, caller.seen)
        _judge(profile, caller.seen, result, least)
    return result


def _blocks(caller: Caller) -> Iterator[list[tuple[int, Call]]]:
    """Yield calls of a few operations, shuffled, of the broker (0) or the proxy (1)."""
    parts = [DescribedCalls(caller.described(role), KNOWN) for role in (0, 1)]
    operations = [(role, label) for role in (0, 1) for label in parts[role].labels]
    chooser = random.Random(17)
    for number in count():
        chooser.shuffle(operations)
        for first in range(0, len(operations), OPERATIONS_A_BLOCK):
            block = [
                (role or int(chooser.random() < BY_PROXY), call)
                for role, label in operations[first : first + OPERATIONS_A_BLOCK]
                for call in parts[role].calls(label, number, COUNTS)
            ]
            chooser.shuffle(block)
            yield block


def _keep(options: ProofOptions, profile: str, seen: Seen) -> None:
    (options.out / f"{profile}.json").write_text(json.dumps(vars(seen), indent=1))


def _judge(profile: str, seen: Seen, result: ProofResult, least: int) -> None:
    made, worst = seen.calls, seen.turns[0]
    allowed = (made - seen.kinds[Kind.REFUSED.name]) / made
    done = sum(seen.done.values()) / made
    growth = seen.memory[-1] - seen.memory[len(seen.memory) // 4]
    odd = [one for one in seen.failed if profile != "pulsar" or not is_recorded(one)]
    figures: dict[str, Any] = {
        "calls": made,
        "operations": len(seen.operations),
        "allowed share": round(allowed, 3),
        "allowed and answered 2xx or 3xx, share": round(done, 3),
        "answers": {str(status): n for status, n in sorted(seen.statuses.items())},
        "worst turn, ms of processor time": round(worst[0], 2),
        "memory, MB: first, a quarter on, last": [
            round(seen.memory[index] / 1e6) for index in (0, len(seen.memory) // 4, -1)
        ],
        "recorded failures": len(seen.failed) - len(odd),
    }
    result.figures[profile] = figures

    def check(name: str, passed: bool, sentence: str) -> None:
        result.check(f"{profile}: {name}", passed, f"{profile}: {sentence}")

    check(
        "calls",
        made >= least and allowed >= LEAST_ALLOWED,
        f"{made:,} calls of {len(seen.operations)} operations, {allowed:.0%} of them allowed by "
        f"the description, {done:.0%} allowed and answered 2xx or 3xx",
    )
    check("no failures", not odd, f"{len(odd)} failures that are not recorded: {odd[:3]}")
    check(
        "described",
        not seen.undescribed,
        f"{len(seen.undescribed)} statuses are not described: {list(seen.undescribed)[:5]}",
    )
    check(
        "turns",
        worst[0] <= BOUND_MILLIS,
        f"the longest turn takes {worst[2]} ({worst[1][:100]}); allowed are {BOUND_MILLIS:g} ms "
        "of processor time",
    )
    check(
        "memory",
        growth <= MOST_GROWTH_BYTES,
        f"{growth / 1e6:.0f} MB more than after the first quarter",
    )
    check(
        "served",
        seen.received > 0 and not seen.refused,
        f"in the end {seen.received} messages were exchanged, directly and through the proxy; "
        f"examples that could not be made: {list(seen.refused)[:3]}",
    )
