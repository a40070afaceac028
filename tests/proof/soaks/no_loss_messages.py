"""Generated histories of messages under a broker that dies: no receipted message is lost.

A history has four topics, one for each subscription type, with random steps of producers and
consumers: publishing (batches too), all kinds of acknowledgement, negative acknowledgements, seeks,
unloads, arriving and leaving clients. Meanwhile the broker is killed repeatedly, at named points
between write, receipt and cursor flush, or at any moment, or stopped with SIGTERM under load. At
the end of a history two brokers run without a kill, and all owed messages must arrive, in order
where promised; messages acknowledged before the clean stop between them must not.

Half of the histories have receipts behind the write, half behind fsync. A third goes through a
proxy.
"""

import secrets
import shutil
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import fields
from random import Random

from loadgen.places.server_process import ServerStartError
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import check_logs
from tests.proof.soaks.killed_broker import POINTS
from tests.proof.soaks.killed_history import ANY_MOMENT, WAYS, History, Totals
from tests.support.messages.truth import Wrong

LIVES, QUICK_LIVES = 10, 3
KILLS = 200
"""Minimum number of dead brokers, whatever the duration."""
MOST_START_SECONDS = 2.0
MOST_SHOWN = 5


def prove(options: ProofOptions) -> ProofResult:
    """Play histories for the soak's duration."""
    seed, result = secrets.randbelow(1 << 32), ProofResult()
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    random = Random(seed)
    totals = Totals(Counter(), Counter(), Counter(), [], Wrong())
    lives, ways = QUICK_LIVES if options.quick else LIVES, list[str]()
    started, enough = time.monotonic(), 0 if options.quick else KILLS
    while time.monotonic() - started < options.soak_seconds or totals.kills.total() < enough:
        number = totals.restarts["histories"]
        options.note(f"seed {seed}, history {number}, {totals.kills.total()} kills")
        if len(ways) < lives:
            ways += random.sample(WAYS, len(WAYS))
        try:
            with ExitStack() as stack:
                history = History(options.out, number, random, totals, stack)
                history.play([ways.pop(0) for _ in range(lives)])
        except ServerStartError as error:
            totals.wrong.refused.append(str(error))
            break
        totals.restarts["histories"] += 1
    _judge(result, totals, seed, time.monotonic() - started, is_whole=not options.quick)
    check_logs(options.out, result)
    return result


def _judge(
    result: ProofResult, totals: Totals, seed: int, seconds: float, *, is_whole: bool
) -> None:
    kills, starts = totals.kills.total(), sorted(totals.starts)
    result.figures.update(
        seed=seed,
        seconds=round(seconds, 1),
        kills=kills,
        seconds_a_kill=round(seconds / max(1, kills), 1),
        kills_at={point: totals.kills[point] for point in (*POINTS, ANY_MOMENT)},
        restarts=dict(totals.restarts),
        longest_start_seconds=round(starts[-1].own_seconds, 2),
        longest_start_with_others_seconds=round(max(one.seconds for one in starts), 2),
        steps=dict(sorted(totals.steps.items())),
        **{f"{one.name}_count": len(getattr(totals.wrong, one.name)) for one in fields(Wrong)},
    )
    enough = kills >= KILLS and all(map(totals.kills.__getitem__, POINTS))
    points = f"{sum(map(bool, totals.kills.values()))} of {len(POINTS) + 1} ways"
    sentence = f"{kills} kills in {seconds:.0f} s, {points}; seed {seed}"
    result.check("killed", enough if is_whole else kills > 0, sentence)
    median, most = starts[len(starts) // 2].own_seconds, starts[-1].own_seconds
    sentence = (
        f"{len(starts)} starts took {median:.2f} s, {most:.2f} at most, beside waits for a core"
    )
    result.check("started", most < MOST_START_SECONDS, sentence)
    steps = totals.steps
    behind = f"{steps['receipts']:,} receipts, {steps['redeliveries']:,} redeliveries"
    for one in fields(Wrong):
        found, name = getattr(totals.wrong, one.name), one.name.replace("_", " ")
        shown = f": {'; '.join(found[:MOST_SHOWN])}" if found else ""
        result.check(name, not found, f"{len(found)} {name}{shown} ({behind})")
