"""The clients of a soak, in a separate process.

``python -m tests.proof.soaks.churn_clients CORPUS SECONDS CLIENTS SEED HOST:PORT...`` runs
sequential conversations of each client, with a random server and stage, and prints the counts of
outcomes as JSON.
"""

import asyncio
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path

from loadgen.engine.connecting import raise_open_file_limit
from server.loop import run
from tests.proof.servers import expectations
from tests.proof.soaks.conversation import Outcome, Plan, Stage, Truth, WrongAnswerError, converse

MAX_PROBLEMS = 10
RECONNECT_SECONDS = 0.05
_SET_BACK = frozenset((Outcome.UNREACHABLE, Outcome.DISCONNECTED, Outcome.REFUSED))
REQUEST_IDS = (1, 127, 128, 2**32, 2**64 - 2)


class Churn:
    """All clients; mutable state: the counts."""

    def __init__(self, truth: Truth, addresses: list[tuple[str, int]]) -> None:
        self._truth = truth
        self._addresses = addresses
        self.outcomes: Counter[str] = Counter()
        self.stages: Counter[str] = Counter()
        self.problems: list[str] = []

    async def client(self, chance: random.Random, until: float) -> None:
        """Converse until the time is over."""
        while time.perf_counter() < until:
            plan = Plan(
                chance.choice(self._addresses),
                chance.choice(self._truth.namespaces),
                chance.choice(list(Stage)),
                chance.choice(REQUEST_IDS),
            )
            self.stages[plan.stage] += 1
            await self._converse(plan, chance)

    async def _converse(self, plan: Plan, chance: random.Random) -> None:
        try:
            outcomes = await converse(plan, self._truth, chance)
        except WrongAnswerError as error:
            outcomes = [Outcome.WRONG]
            if len(self.problems) < MAX_PROBLEMS:
                self.problems.append(str(error))
        self.outcomes.update(outcomes)
        if _SET_BACK.intersection(outcomes):
            await asyncio.sleep(RECONNECT_SECONDS)


async def churn(corpus: Path, seconds: float, clients: int, rest: list[str]) -> dict[str, object]:
    seed, *servers = rest
    addresses = [(host, int(port)) for host, _, port in (s.rpartition(":") for s in servers)]
    all_clients = Churn(Truth(expectations(corpus)), addresses)
    until = time.perf_counter() + seconds
    chances = (random.Random(f"{seed} {number}") for number in range(clients))
    await asyncio.gather(*(all_clients.client(chance, until) for chance in chances))
    counts = {str(outcome): all_clients.outcomes[outcome] for outcome in Outcome}
    return {
        "outcomes": counts,
        "stages": dict(all_clients.stages),
        "problems": all_clients.problems,
    }


def main() -> None:
    corpus, seconds, clients, *rest = sys.argv[1:]
    raise_open_file_limit(2 * int(clients))
    found = run(churn(Path(corpus), float(seconds), int(clients), rest))
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
