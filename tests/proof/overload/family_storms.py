"""A storm of 10,000 sockets through the proxy, of each family: all reattach, all answers are
checked.

Families that tunnel have two sockets a client, so half as many clients. Broker and proxy have their
default limits and socket buffers. In a second part fewer clients attach to topics as well.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from pydantic import TypeAdapter

from benchmarks.imports.memory_import import write_topics
from loadgen.behaviours.discover import Family
from loadgen.behaviours.registry import AnyGroup
from loadgen.documents.model import Document, Topics
from loadgen.places.options import RunOptions
from loadgen.plan.clients import Phases
from tests.proof.loads import carried_out
from tests.proof.overload.recorded_limits import limits
from tests.proof.process_samples import ProcessSamples
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import (
    SOCKET_BUFFER_BYTES,
    ClusterSettings,
    check_logs,
    check_nothing_held,
    running_cluster,
    settled_figures,
)

TOPICS = 100_000
SOCKETS, QUICK_SOCKETS = 10_000, 400
LIMIT_MB = 50
TIMEOUT_MILLIS = 25_000
PATTERN = "order.*"
"""A twentieth of the names of each namespace. With the namespace it is shorter than 50 characters:
a broker does not apply longer patterns as shipped, and returns all names.
"""
TOPICS_EACH = 2
ONCE = "once"
"""Clients that list once, beside clients that discover as a library does."""
MEASURE_SECONDS = 240.0
HELD_MEASURE_SECONDS, HOLD_SECONDS = 30.0, 15.0
"""Both are waited for in full where a hold is set."""
_GROUP: TypeAdapter[AnyGroup] = TypeAdapter(AnyGroup)


def prove(options: ProofOptions) -> ProofResult:
    """Run the storm of each family."""
    result = ProofResult()
    corpus = options.out / "topics"
    write_topics(corpus, TOPICS, lambda _: None)
    sockets = QUICK_SOCKETS if options.quick else SOCKETS
    for family in (ONCE, *get_args(Family)):
        _storm(options, corpus, _group(family, sockets), result)
    for family in ("java-watch", "cpp"):
        attached = _group(family, sockets // 5, attach=TOPICS_EACH)
        _storm(options, corpus, attached, result)
    return result


def _group(family: str, sockets: int, attach: int = 0) -> AnyGroup:
    """Return a group with this total of sockets."""
    what: dict[str, Any] = {"do": "list"}
    if family != ONCE:
        what = {"do": "discover", "library": family, "pattern": PATTERN, "attach": attach}
    name = f"{family}-attached" if attach else family
    found = _GROUP.validate_python({"name": name, "count": 1, **what})
    return found.model_copy(update={"count": sockets // found.connections_each})


def _storm(options: ProofOptions, corpus: Path, group: AnyGroup, result: ProofResult) -> None:
    options.note(group.name)
    logs = options.out / group.name
    keys = {
        "floodgateProfile": "floodgate",
        "floodgateSocketSendBufferBytes": str(SOCKET_BUFFER_BYTES),
        **limits(LIMIT_MB, TIMEOUT_MILLIS),
    }
    settings = ClusterSettings(logs, keys, {"metadataStoreUrl": "memory:local"}, (corpus,))
    with running_cluster(settings) as servers:
        broker, proxy = servers
        document = Document(
            name=group.name,
            topics=Topics(corpus=str(corpus)),
            clients=(group,),
            phases=_phases(group),
        )
        samples = ProcessSamples({each.module: each.pid for each in servers}, "generator")
        run = RunOptions(
            name=group.name,
            out=options.out / "runs",
            service_url=proxy.service_url,
            admin_urls={each.module: each.web_url for each in (broker, proxy)},
            pids={each.module: each.pid for each in (broker, proxy)},
            on_progress=lambda _: samples.sample(),
        )
        figures = carried_out(document, run)
        samples.sample()
        held = {each.module: settled_figures(each) for each in servers}
    needs = {name: asdict(each) for name, each in samples.needs().items()}
    result.figures[group.name] = {**figures, "processes": needs}
    _judge(group, figures, result)
    check_nothing_held(held, result, f"{group.name}: ")
    check_logs(logs, result, f"{group.name}: ")


def _phases(group: AnyGroup) -> Phases:
    """Return the phases' durations: java-poll opens its second connection on reattaching."""
    if group.family == "java-poll":
        return Phases(measure=HELD_MEASURE_SECONDS, hold=HOLD_SECONDS)
    return Phases(measure=MEASURE_SECONDS)


def _judge(group: AnyGroup, figures: dict[str, Any], result: ProofResult) -> None:
    back, refused = figures["back"], sum(figures["refused"].values())
    took = figures["back_seconds"]
    result.check(
        f"{group.name}: all are back or refused by name",
        back + refused == group.count and back > 0,
        f"{group.name}: of {group.count} clients with {figures['connections']} connections {back}"
        f" were back (half within {took['p50']:.1f} s, all within {took['max']:.1f} s) and"
        f" {refused} refused: {figures['refused']}; others: {figures['lost']},"
        f" {figures['unfinished']} unfinished",
    )
    result.check(
        f"{group.name}: every answer is right",
        figures["wrong"] == 0,
        f"{group.name}: {figures['wrong']} wrong of {figures['answered']} answers",
    )
    wanted = group.count * group.connections_each
    result.check(
        f"{group.name}: all connections count",
        figures["connections"] == wanted or refused > 0,
        f"{group.name}: {figures['connections']} connections, {wanted} planned",
    )
