"""Costs of all operations with more and more names, in one namespace and in many.

Broker and proxy are separate processes. Each binary command about topics, each kind of REST call,
watches, imports, starts and patterns run directly and through the proxy, in both profiles, with all
metadata stores. Reported are time, memory and the longest turn of the loop, by the processor time
of its thread; judged are errors, and turns of more than 20 ms. Passes of Python's collector are
reported separately.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.controlled_process import ControlledProcess, controlled_process
from tests.proof.growth.commands import BinaryCommands
from tests.proof.growth.corpus import NAMES_PER_NAMESPACE, Corpus
from tests.proof.growth.measuring import BOUND_MILLIS, Row, Stage
from tests.proof.growth.patterns import MOST_CHARACTERS, Patterns
from tests.proof.growth.rest_calls import Ends, Rest
from tests.proof.growth.table import growth_table
from tests.proof.growth.watches import Watches
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.proof.servers import LOCAL, OWN_ERROR
from tests.support.processes.postgresql import PostgresqlServer, running_postgresql

NAMES, QUICK_NAMES = (10_000, 100_000, 1_000_000), (1_000, 10_000)
STORES = ("memory", "sqlite", "postgresql")
PROFILES = ("floodgate", "pulsar")
PLACES = (
    ("memory", "floodgate"),
    ("memory", "pulsar"),
    ("sqlite", "floodgate"),
    ("postgresql", "pulsar"),
)
"""Default stores and profiles: all six take half as long again."""
WAYS = ("direct", "proxy")
START_SECONDS = 3_600.0
_LIMIT_BYTES = 400
"""Memory for listings, and the largest message, by name: above every list."""
_WATCH_BYTES, _LEAST_WATCHED = 400, 10_000
"""Memory for watches by name, and the fewest names for it: all names, and some large subsets."""
_MOST_LIMIT_MB, _LEAST_LIMIT_MB = 2_000, 100
_MIB = 1024 * 1024


def prove(options: ProofOptions) -> ProofResult:
    """Measure all operations with each number of names."""
    result = ProofResult()
    by_corpus: dict[Corpus, list[Row]] = {}
    with ExitStack() as stack:
        places = _places(options)
        shared = any(store == "postgresql" for store, _ in places)
        database = stack.enter_context(running_postgresql()) if shared else None
        for names in options.names or (QUICK_NAMES if options.quick else NAMES):
            for namespaces in (1, names // NAMES_PER_NAMESPACE):
                corpus = Corpus(names, namespaces)
                by_corpus[corpus] = _measured(options, corpus, places, database)
                _judge(corpus, by_corpus[corpus], result)
    _check_logs(options.out, result)
    result.figures["rows"] = [
        {"names": corpus.names, "namespaces": corpus.namespaces, **asdict(row)}
        for corpus, rows in by_corpus.items()
        for row in rows
    ]
    for title, many in (("One namespace", False), ("Ten names a namespace", True)):
        rows = {
            corpus.names: found
            for corpus, found in by_corpus.items()
            if (corpus.namespaces > 1) is many
        }
        result.table += growth_table(title, rows)
    (options.out / "table.txt").write_text(result.table, encoding="utf-8")
    return result


def _places(options: ProofOptions) -> Sequence[tuple[str, str]]:
    """Return the stores and profiles to measure.

    Raises:
        ProofError: The store or profile is unknown.
    """
    if not (options.stores or options.profiles):
        return PLACES
    stores, profiles = options.stores or STORES, options.profiles or PROFILES
    unknown = {*stores, *profiles}.difference(STORES, PROFILES)
    if unknown:
        raise ProofError(f"{', '.join(sorted(unknown))}: none of {', '.join(STORES + PROFILES)}")
    return list(product(stores, profiles))


def _measured(
    options: ProofOptions,
    corpus: Corpus,
    places: Sequence[tuple[str, str]],
    database: PostgresqlServer | None,
) -> list[Row]:
    options.note(f"writing {corpus.title}")
    topics, rows = options.out / "topics.parquet", list[Row]()
    corpus.write(topics)
    for store, profile in places:
        url = _url(options.out, store, database)
        with _stage(options, corpus, store, profile, url, topics) as stage:
            _measure_all(stage, topics)
        rows += stage.rows
    topics.unlink()
    return rows


def _url(out: Path, store: str, database: PostgresqlServer | None) -> str:
    if store == "memory":
        return "memory:local"
    if database is not None and store == "postgresql":
        return database.emptied()
    for path in out.glob("growth.sqlite*"):
        path.unlink()
    return f"sqlite:///{out.resolve()}/growth.sqlite"


def _measure_all(stage: Stage, topics: Path) -> None:
    for way in WAYS:
        BinaryCommands(stage, way).measure_all()
        Rest(stage, way).measure_all()
        Watches(stage, way).measure_all()
        if stage.corpus.namespaces == 1:
            Patterns(stage, way).measure_all()
    Ends(stage, topics).measure_all()


# -- processes ------------------------------------------------------------------------------------


@contextmanager
def _stage(
    options: ProofOptions, corpus: Corpus, store: str, profile: str, url: str, topics: Path
) -> Iterator[Stage]:
    """Run a broker with an imported corpus, restarted if the store is persistent, and a proxy."""
    both = _keys(corpus, profile)
    keys = {
        **both,
        "brokerServicePort": "0",
        "metadataStoreUrl": url,
        "floodgateImportDirectory": str(options.out),
        "floodgateFaultsEnabled": "true",
        "floodgateTopicWatchMaxBytes": str(_WATCH_BYTES * max(corpus.names, _LEAST_WATCHED)),
        "subscriptionPatternMaxLength": str(MOST_CHARACTERS),
        "pulsarResourcesExtendedClassName": "broker.property_index:PropertyIndex",
        "forceDeleteNamespaceAllowed": "true",
    }
    starts, place = list[Row](), f"{corpus.namespaces}-of-{corpus.names}-{store}-{profile}"
    with ExitStack() as stack:

        def start(role: str, what: str, settings: dict[str, str], imports: Sequence[Path]) -> Any:
            options.note(f"{corpus.title}, {store}, {profile}: {what}")
            log = options.out / f"{place}-{what.replace(' ', '-')}.log"
            server = stack.enter_context(
                controlled_process("tests.proof.growth.timed_server", log, role)
            )
            before, began = server.ask("take"), time.perf_counter()
            asked = {"settings": settings, "imports": list(map(str, imports))}
            urls = server.ask("start", START_SECONDS, **asked)
            seconds = time.perf_counter() - began
            if role == "broker":
                starts.extend(_start_rows(what, f"{store}, {profile}", seconds, before, server))
            return server, urls

        broker, direct = start("broker", "first start", keys, [topics])
        if store != "memory":
            stack.close()
            broker, direct = start("broker", "start again", keys, [topics])
        proxied = {
            **both,
            "servicePort": "0",
            "brokerServiceURL": direct["service_url"],
            "brokerWebServiceURL": direct["web_url"],
        }
        proxy, by_proxy = start("proxy", "proxy", proxied, [])
        urls = {"direct": direct, "proxy": by_proxy}
        yield Stage(corpus, store, profile, broker, proxy, urls, options.note, starts)


def _start_rows(
    what: str, place: str, seconds: float, before: dict[str, Any], server: ControlledProcess
) -> Iterator[Row]:
    after = server.ask("take")
    grown = after["peak_bytes"] - before["resident_bytes"]
    turn = (after["millis"], after["collector_millis"], after["explained"])
    yield Row(what, place, seconds, grown, *turn)
    yield Row(f"{what}: held then", place, 0.0, after["resident_bytes"], 0.0, 0.0, "")


def _keys(corpus: Corpus, profile: str) -> dict[str, str]:
    wanted = _LIMIT_BYTES * corpus.each // _MIB
    limit = max(_LEAST_LIMIT_MB, min(_MOST_LIMIT_MB, wanted))
    return {
        "floodgateProfile": profile,
        "maxMessageSize": str(limit * _MIB),
        "maxTopicListInFlightHeapMemSizeMB": str(2 * limit),
        "maxTopicListInFlightDirectMemSizeMB": str(2 * limit),
        **LOCAL,
    }


# -- judging --------------------------------------------------------------------------------------


def _judge(corpus: Corpus, rows: Sequence[Row], result: ProofResult) -> None:
    for kind, some in (
        ("", [row for row in rows if not _is_of_pattern(row)]),
        (" by patterns", [row for row in rows if _is_of_pattern(row)]),
    ):
        if not some:
            continue
        failed = [f"{row.what} ({row.place}): {row.error}" for row in some if row.error]
        what = f"{len(some)} things{kind} were done, none failed"
        if failed:
            what = f"{len(failed)} of {len(some)} things{kind} failed: {'; '.join(failed[:3])}"
        result.check(f"{corpus.title}{kind}: no error", not failed, f"{corpus.title}: {what}")
        # A broker serves no client until it has started.
        worst = max((row for row in some if "start" not in row.what), key=lambda row: row.millis)
        result.check(
            f"{corpus.title}{kind}: no long turn",
            worst.millis <= BOUND_MILLIS,
            f"{corpus.title}: the longest turn{kind} took {worst.millis:.1f} ms of processor time "
            f"without the collector's passes; allowed are {BOUND_MILLIS:g} ms ({worst.what}; "
            f"{worst.place}; {worst.explained})",
        )


def _is_of_pattern(row: Row) -> bool:
    return row.what.endswith((": listing", ": watch"))


def _check_logs(out: Path, result: ProofResult) -> None:
    found = [
        path.name
        for path in sorted(out.glob("*.log"))
        if any(word in path.read_bytes() for word in (OWN_ERROR, b"Traceback"))
    ]
    what = f"errors in {', '.join(found)}" if found else "no internal error in the logs"
    result.check("no internal error", not found, what)
