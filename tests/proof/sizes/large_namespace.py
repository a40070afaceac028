"""A namespace of a million topics: listed, filtered, listed by property, and watched.

Meanwhile another client's PING, and the event loop's lag, may take 100 ms at the most.
"""

import json
import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import sleep

import proto.PulsarApi_pb2 as pb
from benchmarks.controlled_process import ControlledProcess, controlled_process
from proto.topic_hash import topics_hash
from tests.proof.process_memory import resident_bytes
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import LOCAL
from tests.proof.sizes.large_listings import Answer, LargeClient
from tests.proof.sizes.large_topics import (
    EVERY,
    NAMESPACE,
    PATTERNS,
    TEAMS,
    keepers,
    kept_by_pattern,
    large_name,
    large_names,
    pattern_of,
    team_of,
    write_large_topics,
)
from tests.proof.sizes.watched_phases import Phase, Phases, judge, write_table

TOPICS, QUICK_TOPICS = 1_000_000, 50_000
WATCHERS, QUICK_WATCHERS = PATTERNS, 100
EVENTS, QUICK_EVENTS = 1_000, 50
EVENTS_FOR_ALL = 0.1
"""Share of the created topics kept by all 300 patterns for scattered topics."""
LIMIT_MB = 512
WATCH_BYTES = 512 * 1024 * 1024
IDLE_SECONDS = 2.0
SETUP_SECONDS = 3_600.0
ASKED_AT_ONCE = 100
"""Unanswered watches: a simultaneous thousand of requests takes 0.2 s."""
NAMES_COMPARED = 20
"""Watchers whose names are compared in full; the rest only by number and hash."""
_KEYS = {
    "brokerServicePort": "0",
    "metadataStoreUrl": "memory:local",
    "floodgateProfile": "floodgate",
    **LOCAL,
}
_RAISED = {
    "maxMessageSize": str(LIMIT_MB * 1024 * 1024),
    "maxTopicListInFlightHeapMemSizeMB": str(LIMIT_MB),
    "maxTopicListInFlightDirectMemSizeMB": str(LIMIT_MB),
}


@dataclass(frozen=True)
class Large:
    """The namespace, and the numbers of operations."""

    topics: Path
    names: Sequence[str]
    watchers: int
    events: int


def prove(options: ProofOptions) -> ProofResult:
    count = QUICK_TOPICS if options.quick else TOPICS
    options.note(f"making {count:,} topics")
    topics = options.out / "large.parquet"
    write_large_topics(topics, count)
    large = Large(
        topics,
        large_names(count),
        QUICK_WATCHERS if options.quick else WATCHERS,
        QUICK_EVENTS if options.quick else EVENTS,
    )
    result = ProofResult({"topics": count})
    if not options.quick:
        _prove_refusal(options, large, result)
    phases = [*_prove_listings(options, large, result), *_prove_watches(options, large, result)]
    judge(phases, result, quick=options.quick)
    write_table(options.out / "table.txt", phases)
    return result


@contextmanager
def _broker(
    options: ProofOptions, large: Large, name: str, **keys: str
) -> Iterator[tuple[ControlledProcess, Phases]]:
    """Run a broker with the imported namespace, and a client that pings it."""
    options.note(f"{name}: a broker imports")
    settings = json.dumps({**_KEYS, **keys})
    with ExitStack() as stack:

        def start(module: str, *arguments: str) -> ControlledProcess:
            log = options.out / f"{name}-{module}.log"
            return stack.enter_context(controlled_process(module, log, *arguments))

        server = start("benchmarks.watches.server", settings, str(large.topics))
        pinger = start("tests.proof.peers.pinging")
        server.ask("sample")
        pinger.ask("ping", url=server.ready["service_url"])
        yield server, Phases(server, pinger)


# -- listings -------------------------------------------------------------------------------------


def _prove_refusal(options: ProofOptions, large: Large, result: ProofResult) -> None:
    """Check that with the default limits a single listing is too large."""
    with _broker(options, large, "default-limits") as (server, _):
        client = LargeClient(server.ready["service_url"])
        answer = client.list(NAMESPACE)
        client.leave()
    error = answer.command.error
    estimate = sum(map(len, large.names)) + 32 * len(large.names)
    refused = error.error == pb.TooManyRequests and str(estimate) in error.message
    result.figures["refusal"] = error.message
    result.check(
        "default limits: refused",
        refused,
        f"default limits: a listing is refused: {error.message or 'it was not'}",
    )


def _prove_listings(options: ProofOptions, large: Large, result: ProofResult) -> list[Phase]:
    team = {"team": team_of(42)}
    of_team = [name for number, name in enumerate(large.names) if number % TEAMS == 42]
    kept = kept_by_pattern(large.names)
    both = [name for name in of_team if 144 in keepers(name)]
    keys = {**_RAISED, "pulsarResourcesExtendedClassName": "broker.property_index:PropertyIndex"}
    with _broker(options, large, "listings", **keys) as (server, phases):
        client = LargeClient(server.ready["service_url"])
        resident = [resident_bytes(server.pid)]
        for name, arguments, expected in (
            ("first listing", {}, large.names),
            ("repeated listing", {}, large.names),
            ("filtered listing, 1 % scattered", {"pattern": pattern_of(142)}, kept[142]),
            ("the same again", {"pattern": pattern_of(142)}, kept[142]),
            ("filtered listing, 1 % side by side", {"pattern": pattern_of(144)}, kept[144]),
            ("property listing, 0.1 %", {"properties": team}, of_team),
            ("property and pattern", {"properties": team, "pattern": pattern_of(144)}, both),
        ):
            options.note(name)
            with phases.phase(name) as phase:
                answer = client.list(NAMESPACE, **arguments)
                phase.seconds = answer.seconds
            _check_listing(name, answer, expected, result)
            resident.append(resident_bytes(server.pid))
        client.leave()
    result.figures["listings_resident_bytes"] = resident
    return phases.done


def _check_listing(name: str, answer: Answer, expected: Sequence[str], result: ProofResult) -> None:
    problem = answer.problem(expected)
    result.check(
        f"{name}: right",
        problem is None,
        f"{name}: {len(expected):,} names, {answer.size_bytes:,} bytes in {answer.seconds:.3f} s"
        f"{f'; {problem}' if problem else ''}",
    )


# -- watches --------------------------------------------------------------------------------------


def _prove_watches(options: ProofOptions, large: Large, result: ProofResult) -> list[Phase]:
    keys = {**_RAISED, "floodgateTopicWatchMaxBytes": str(WATCH_BYTES)}
    with (
        _broker(options, large, "watches", **keys) as (server, phases),
        controlled_process("benchmarks.watches.client", options.out / "watchers.log") as watchers,
    ):
        with phases.phase("idle"):
            sleep(IDLE_SECONDS)
        _set_up(options, large, server, watchers, phases, result)
        created = _create(options, large, server, watchers, phases, result)
        options.note("checking what every watcher knows")
        _check_watchers(large, created, watchers, result)
    return phases.done


def _set_up(
    options: ProofOptions,
    large: Large,
    server: ControlledProcess,
    watchers: ControlledProcess,
    phases: Phases,
    result: ProofResult,
) -> None:
    options.note(f"{large.watchers:,} watchers")
    before, resident = server.ask("figures"), resident_bytes(server.pid)
    with phases.phase(f"{large.watchers:,} watchers are set up") as phase:
        watched = watchers.ask(
            "watch",
            SETUP_SECONDS,
            url=server.ready["service_url"],
            namespace=NAMESPACE,
            patterns=[pattern_of(index) for index in range(large.watchers)],
            connections=large.watchers,
            at_once=ASKED_AT_ONCE,
        )
        phase.seconds = watched["seconds"]
    after = server.ask("figures")
    cpu_seconds = after["cpu_seconds"] - before["cpu_seconds"]
    grown = resident_bytes(server.pid) - resident
    result.figures["watches"] = {
        "held_bytes": after["held_bytes"],
        "max_bytes": after["max_bytes"],
        "resident_growth_bytes": grown,
        "setup_cpu_seconds": cpu_seconds,
    }
    result.check(
        "watchers are set up",
        not watched["problems"] and after["sets"] == large.watchers,
        f"{after['watchers']:,} watchers of {after['sets']:,} sets after {phase.seconds:.0f} s, "
        f"{cpu_seconds:.0f} s of processor time; they hold {after['held_bytes'] / 1e6:.0f} MB of "
        f"floodgateTopicWatchMaxBytes={after['max_bytes']}, resident memory grew by "
        f"{grown / 1e6:.0f} MB" + "".join(f"; {one}" for one in watched["problems"]),
    )


def _create(
    options: ProofOptions,
    large: Large,
    server: ControlledProcess,
    watchers: ControlledProcess,
    phases: Phases,
    result: ProofResult,
) -> list[str]:
    for_all = round(EVENTS_FOR_ALL * large.events)
    numbers = [number * len(large.names) // large.events for number in range(large.events)]
    some = [large_name(number, len(large.names), "new") for number in numbers[for_all:]]
    everywhere = [large_name(number, len(large.names), EVERY) for number in numbers[:for_all]]
    for names, what in ((some, "few sets"), (everywhere, "many sets")):
        options.note(f"{len(names)} topics are created that {what} have")
        kept = [sum(index < large.watchers for index in keepers(name)) for name in names]
        with phases.phase(f"{len(names)} topics of {what} are created"):
            cpu = [
                server.ask("change", namespace=NAMESPACE, names=[name], came=True, updates=count)
                for name, count in zip(names, kept, strict=True)
            ]
            watchers.ask("expect", updates=sum(kept))
        cpu_ms = [1000 * one["cpu_seconds"] for one in cpu]
        result.figures[f"event_cpu_ms, {what}"] = cpu_ms
        result.check(
            f"topics of {what}",
            True,
            f"{len(names)} topics that {what} have ({statistics.fmean(kept):.0f} watchers): "
            f"{statistics.fmean(cpu_ms):.2f} ms of processor time each (median "
            f"{statistics.median(cpu_ms):.2f}, most {max(cpu_ms):.1f})",
        )
    return some + everywhere


def _check_watchers(
    large: Large, created: Sequence[str], watchers: ControlledProcess, result: ProofResult
) -> None:
    """Compare each watcher's topics with the expected: number, hash, and for some the names."""
    expected = kept_by_pattern([*large.names, *created])[: large.watchers]
    known = watchers.ask("verify")
    right = sum(
        found == [len(names), topics_hash(names)]
        for found, names in zip(known["watchers"], expected, strict=True)
    )
    step = max(1, large.watchers // NAMES_COMPARED)
    compared = range(0, large.watchers, step)
    same = sum(
        watchers.ask("names", watcher=index)["names"] == sorted(expected[index])
        for index in compared
    )
    result.check(
        "every watcher has the right set",
        not known["problems"] and right == large.watchers and same == len(compared),
        f"{right:,} of {large.watchers:,} watchers have the right number and hash after "
        f"{known['updates']:,} updates, of which each was checked; {same} of {len(compared)} were "
        "compared name by name and are right" + "".join(f"; {one}" for one in known["problems"]),
    )
