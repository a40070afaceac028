"""50,000 calls of what broker and proxy describe in /openapi.json, in each profile.

Most are such as the description allows and name what exists; the others are about anything, or
not allowed. A third goes by way of the proxy. One call at a time: the longest turn since the last
is its own.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import requests

from benchmarks.controlled_process import controlled_process
from tests.proof.result import ProofResult
from tests.proof.rest.cases import Call, DescribedCalls, Kind
from tests.proof.rest.examples import KNOWN, TOPIC, make_examples, takes_away

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.controlled_process import ControlledProcess
    from tests.proof.result import ProofOptions

CALLS, QUICK_CALLS = 50_000, 2_000
COUNTS = {Kind.KNOWN: 16, Kind.OPEN: 5, Kind.REFUSED: 3}
LEAST_ALLOWED = 0.6
BOUND_MILLIS = 20.0
MOST_GROWTH = 64 * 1024 * 1024
OPERATIONS_A_BLOCK = 24
MESSAGES = 20
PROFILES = ("floodgate", "pulsar")
RECORDED_500 = re.compile(r"^$")
_PATIENCE_SECONDS = 60.0


def prove(options: ProofOptions) -> ProofResult:
    """Make the calls in both profiles at once, and judge each."""
    options.out.mkdir(parents=True, exist_ok=True)
    calls = QUICK_CALLS if options.quick else CALLS
    result = ProofResult()
    with ProcessPoolExecutor(len(PROFILES)) as pool:
        runs = [pool.submit(make_calls, profile, calls, options.out) for profile in PROFILES]
        for profile, run in zip(PROFILES, runs, strict=True):
            _judge(profile, run.result(), result, calls)
    return result


@dataclass
class Seen:
    """What was seen in one profile."""

    kinds: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    by_operation: dict[str, Counter[str]] = field(default_factory=dict)
    failed: list[dict[str, Any]] = field(default_factory=list)
    not_described: Counter[str] = field(default_factory=Counter)
    turns: list[tuple[float, str]] = field(default_factory=list)
    refused_examples: Counter[str] = field(default_factory=Counter)
    operations: int = 0
    seconds: float = 0.0
    memory: list[int] = field(default_factory=list)
    received: int = 0


def make_calls(profile: str, calls: int, out: Path) -> Seen:
    """Make so many calls of the servers of a profile."""
    with controlled_process(
        "tests.proof.rest.timed_servers", out / f"{profile}.log", profile
    ) as servers:
        caller = Caller(servers)
        caller.make(calls)
    (out / f"{profile}.json").write_text(json.dumps(vars(caller.seen), indent=1))
    return caller.seen


class Caller:
    """The calls of one pair of servers; the mutable state is what was seen."""

    def __init__(self, servers: ControlledProcess) -> None:
        self._servers = servers
        self._session = requests.Session()
        self._session.trust_env = False
        self._broker, self._proxy = servers.ready["broker"], servers.ready["proxy"]
        self.seen = Seen()

    def make(self, calls: int) -> None:
        """Make so many, then ask for what must still be served."""
        described = DescribedCalls(self._described(self._broker), KNOWN)
        of_proxy = DescribedCalls(self._described(self._proxy), KNOWN)
        self.seen.operations = len(described.labels)
        began, chooser, made = time.perf_counter(), random.Random(17), 0
        for number in count():
            for block in _blocks(described, of_proxy, number, chooser):
                self._anew()
                for url, answers, call in self._placed(block, chooser):
                    self._call(url, answers, call)
                    made += 1
                self.seen.memory.append(self._servers.ask("memory")["bytes"])
                if made >= calls:
                    self.seen.seconds = time.perf_counter() - began
                    self._anew()
                    self.seen.received = self._servers.ask(
                        "exchange", topic=f"{TOPIC}-after", subscription="billing", messages=10
                    )["received"]
                    return

    def _described(self, url: str) -> dict[str, Any]:
        found: dict[str, Any] = self._session.get(f"{url}/openapi.json").json()
        return found

    def _anew(self) -> None:
        for url in (self._broker, self._proxy):
            self._session.delete(f"{url}/admin/v2/floodgate/faults")
        self.seen.refused_examples.update(make_examples(self._session, self._broker, anew=True))
        self._servers.ask("fill", topic=TOPIC, messages=MESSAGES)
        self._servers.ask("turn")

    def _placed(
        self, block: list[tuple[DescribedCalls, bool, str, Call]], chooser: random.Random
    ) -> Iterator[tuple[str, frozenset[str], Call]]:
        for described, own, label, call in block:
            by_proxy = own or chooser.random() < 1 / 3
            yield self._proxy if by_proxy else self._broker, described.answers[label], call

    def _call(self, url: str, answers: frozenset[str], call: Call) -> None:
        label, seen = call.case.operation.label, self.seen
        try:
            answer = call.case.call(
                base_url=url,
                session=self._session,
                allow_redirects=False,
                timeout=_PATIENCE_SECONDS,
            )
            status, text = answer.status_code, answer.text
        except requests.RequestException as error:
            status, text = 0, repr(error)
        millis = self._servers.ask("turn")["millis"]
        seen.turns = sorted([*seen.turns, (millis, label)], reverse=True)[:20]
        seen.kinds[call.kind.name] += 1
        seen.statuses[str(status)] += 1
        seen.by_operation.setdefault(label, Counter())[str(status)] += 1
        if call.kind.allowed and 200 <= status < 400:
            seen.done[call.kind.name] += 1
        if (
            status == 0
            or (status >= 500 and status != 501)
            or (status == 501 and "501" not in answers)
        ):
            how = call.case.as_curl_command()[:1000]
            seen.failed.append(
                {
                    "label": label,
                    "status": status,
                    "kind": call.kind.name,
                    "text": text[:300],
                    "curl": how,
                }
            )
        if not {str(status), f"{status // 100}XX"} & answers:
            seen.not_described[f"{label} {status}"] += 1
        if 200 <= status < 300 and takes_away(label):
            make_examples(self._session, self._broker)
            self._servers.ask("turn")


def _blocks(
    described: DescribedCalls, of_proxy: DescribedCalls, number: int, chooser: random.Random
) -> Iterator[list[tuple[DescribedCalls, bool, str, Call]]]:
    """Yield the calls of a few operations, shuffled, until all had their turn."""
    operations = [(described, False, label) for label in described.labels]
    operations += [(of_proxy, True, label) for label in of_proxy.labels]
    chooser.shuffle(operations)
    for first in range(0, len(operations), OPERATIONS_A_BLOCK):
        block = [
            (of, own, label, call)
            for of, own, label in operations[first : first + OPERATIONS_A_BLOCK]
            for call in of.calls(label, number, COUNTS)
        ]
        chooser.shuffle(block)
        yield block


def _judge(profile: str, seen: Seen, result: ProofResult, calls: int) -> None:
    made = sum(seen.kinds.values())
    allowed = made - seen.kinds[Kind.REFUSED.name]
    done = sum(seen.done.values())
    result.figures[profile] = {
        "calls": made,
        "operations": seen.operations,
        "allowed_share": allowed / made,
        "answered_2xx_or_3xx_share": done / made,
        "statuses": seen.statuses,
        "calls_a_second": made / seen.seconds,
        "worst_turns_ms": seen.turns[:5],
        "memory_bytes": [seen.memory[0], seen.memory[len(seen.memory) // 2], seen.memory[-1]],
    }
    result.check(
        f"{profile}: calls",
        made >= calls and allowed / made >= LEAST_ALLOWED,
        f"{profile}: {made:,} calls of {seen.operations} operations, {allowed / made:.0%} of them "
        f"allowed by the description, {done / made:.0%} answered 2xx or 3xx, {made / seen.seconds:.0f} a second",
    )
    odd = [one for one in seen.failed if not _is_recorded(profile, one)]
    result.check(
        f"{profile}: no failures",
        not odd,
        f"{profile}: {len(seen.failed)} answers of 500, {len(odd)} of them "
        f"not as recorded: {odd[:5]}",
    )
    worst = seen.turns[0]
    result.check(
        f"{profile}: turns",
        worst[0] <= BOUND_MILLIS,
        f"{profile}: the longest turn takes {worst[0]:.1f} ms of processor time ({worst[1]}); "
        f"allowed are {BOUND_MILLIS:g} ms",
    )


def _is_recorded(profile: str, failed: dict[str, Any]) -> bool:
    return profile == "pulsar" and bool(RECORDED_500.search(failed["text"]))
