"""REST requests about topics of 10,000 partitions: none holds the loop for long.

The collector's passes are reported separately: they scan all objects of the broker.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

import requests

from benchmarks.controlled_process import controlled_process
from tests.proof.result import ProofOptions, ProofResult

PARTITIONS, QUICK_PARTITIONS = 10_000, 1_000
BOUND_MILLIS = 20.0
PROFILES = ("floodgate", "pulsar")
_NAMESPACE = "namespaces/public/default"
_SUBSCRIPTION = "/subscription/billing"
_CALLS = (
    ("GET", "/subscriptions"),
    ("PUT", _SUBSCRIPTION, "earliest"),
    ("GET", f"{_SUBSCRIPTION}/properties"),
    ("PUT", f"{_SUBSCRIPTION}/properties", {"a": "b"}),
    ("GET", f"{_SUBSCRIPTION}/replicatedSubscriptionStatus"),
    ("POST", f"{_SUBSCRIPTION}/skip_all"),
    ("POST", f"{_SUBSCRIPTION}/resetcursor/5"),
    ("POST", f"{_SUBSCRIPTION}/expireMessages/5"),
    ("POST", "/all_subscription/expireMessages/5"),
    ("GET", "/partitioned-stats"),
    ("GET", "/partitioned-internalStats"),
    ("GET", "/internal-info"),
    ("PUT", "/compaction"),
    ("POST", "/trim"),
    ("DELETE", "/truncate"),
    ("POST", "/createMissedPartitions"),
    ("PUT", "/properties", {"x": "y"}),
    ("DELETE", "/properties?key=x"),
    ("POST", "/replicatorDispatchRate", {"ratePeriodInSecond": 1}),
    ("DELETE", _SUBSCRIPTION),
    ("POST", "/terminate/partitions"),
    ("PUT", "/unload"),
    ("GET", "/subscriptions"),
)
"""Requests about the topic: the method, the rest of the path, and the body."""
_OF_NAMESPACE = (
    ("POST", "/maxConsumersPerTopic", 4),
    ("POST", "/0x00000000_0x40000000/unsubscribe/billing"),
    ("POST", "/clearBacklog"),
    ("GET", "/topics"),
    ("PUT", "/0x00000000_0x40000000/unload"),
    ("PUT", "/unload"),
)


class _Held(NamedTuple):
    millis: float
    profile: str
    call: str
    explained: str


def prove(options: ProofOptions) -> ProofResult:
    options.out.mkdir(parents=True, exist_ok=True)
    count = QUICK_PARTITIONS if options.quick else PARTITIONS
    found: list[_Held] = []
    passes: list[tuple[float, str]] = []
    for profile in PROFILES:
        log = options.out / f"{profile}.log"
        with (
            controlled_process("tests.proof.rest.timed_servers", log, profile, "many") as servers,
            requests.Session() as session,
        ):
            url = f"{servers.ready['broker']}/admin/v2/"
            servers.ask("turn")
            for method, path, body in _calls(count):
                answer = session.request(
                    method,
                    url + path,
                    data=None if body is None else json.dumps(body),
                    headers={} if body is None else {"Content-Type": "application/json"},
                )
                call = f"{method} {path}: {answer.status_code}"
                options.note(f"{profile}: {call}")
                turn = servers.ask("turn")
                found.append(_Held(turn["own_millis"], profile, call, turn["own_explained"]))
                passes.append((turn["collector_millis"], f"{profile}: {call}"))
    worst = max(found)
    result = ProofResult()
    result.figures = {
        "partitions": count,
        "requests": len(found),
        "worst": [str(one) for one in sorted(found, reverse=True)[:5]],
        "longest turns of the collector, ms": sorted(passes, reverse=True)[:5],
    }
    result.check(
        "no request holds the loop",
        worst.millis <= BOUND_MILLIS,
        f"of {len(found)} requests about {count:,} partitions the worst, {worst.profile}'s "
        f"{worst.call}, held it for {worst.millis:.1f} ms of processor time without the "
        f"collector's passes, of which the longest took {max(passes)[0]:.0f} ms; allowed are "
        f"{BOUND_MILLIS:g} ms ({worst.explained})",
    )
    return result


def _calls(count: int) -> Iterator[tuple[str, str, object]]:
    for domain in ("persistent", "non-persistent"):
        topic = f"{domain}/public/default/invoices"
        yield "PUT", f"{topic}/partitions", count
        for start, calls in ((topic, _CALLS), (_NAMESPACE, _OF_NAMESPACE)):
            for method, path, *body in calls:
                yield method, start + path, body[0] if body else None
        yield "DELETE", f"{topic}/partitions?force=true", None
