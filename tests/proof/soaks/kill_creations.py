"""kill -9 of the broker during creations: every acknowledged topic is there afterwards.

Topics are created over REST, on eight connections, in a SQLite file and in a PostgreSQL database.
The database itself keeps running: its crash safety is not part of this proof.
"""

import time
from dataclasses import replace
from functools import partial

from loadgen.places.server_process import ServerLaunch
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import ClusterSettings
from tests.support.processes.postgresql import running_postgresql
from tests.support.stores.killed_creations import clear, create_and_kill, kill_points

TOPICS, QUICK_TOPICS = 10_000, 1_000
KILLS = 5
DATABASE = "topics.sqlite"


def prove(options: ProofOptions) -> ProofResult:
    """Create 10,000 topics in each store, with five kills."""
    result = ProofResult()
    clear(options.out, DATABASE)
    database = (options.out / DATABASE).resolve()
    _prove_store(options, result, "SQLite", f"sqlite:///{database}")
    with running_postgresql() as server:
        _prove_store(options, result, "PostgreSQL", server.emptied())
    return result


def _prove_store(options: ProofOptions, result: ProofResult, store: str, url: str) -> None:
    options.note(f"creations in {store}, with kills")
    count = QUICK_TOPICS if options.quick else TOPICS
    settings = ClusterSettings(options.out, {}, {"metadataStoreUrl": url})
    launch = partial(_launch, settings, store.lower())
    started = time.perf_counter()
    found = create_and_kill(launch, count, kill_points(count, KILLS))
    seconds = time.perf_counter() - started
    result.figures[store.lower()] = {
        "topics": count,
        "seconds": seconds,
        "kills": found.kills,
        "committed_but_unanswered": found.unanswered,
        "start_seconds": found.restart_seconds,
    }
    result.check(
        f"{store} keeps what it acknowledged",
        not (found.lost or found.unknown) and len(found.acknowledged) == count,
        f"{store}: {len(found.acknowledged):,} of {count:,} creations acknowledged in "
        f"{seconds:.0f} s with {found.kills} kills; {len(found.lost)} of them lost, "
        f"{len(found.unknown)} topics nobody asked for",
    )
    result.check(
        f"{store} was killed in the middle",
        found.kills == KILLS,
        f"{store}: the broker was killed {found.kills} times, wanted are {KILLS}",
    )


def _launch(settings: ClusterSettings, store: str, start: int) -> ServerLaunch:
    launch = settings.broker_launch()
    return replace(launch, log=launch.log.with_name(f"broker-{store}-{start + 1}.log"))
