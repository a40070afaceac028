"""``loadgen advise``: finds topic-list limits for an operator's topics and clients."""

from __future__ import annotations

import re
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from client.discovery.families import FAMILIES
from loadgen.commands.options import (
    AsJson,
    BrokerConf,
    Confirmed,
    ProxyConf,
    Settings,
    complete_target,
    own_files,
    parsed,
    wanted,
)
from loadgen.commands.shown import console, print_sentences, say, table_of
from loadgen.documents.model import Profile  # noqa: TC001 (evaluated by Typer)
from loadgen.documents.reading import parse_document
from loadgen.documents.server_keys import known_keys
from loadgen.documents.service_times import KEY as SERVICE_TIMES_KEY
from loadgen.documents.service_times import SERVICE_TIMES
from loadgen.errors import ExitCode, LoadgenError, UsageError, writing
from loadgen.jvm_options import parse_jvm_options
from loadgen.loopback import require_own_cluster
from loadgen.places.options import RunOptions
from loadgen.places.server_process import termination_interrupts
from loadgen.plan.fields import Bytes, Duration, Share
from loadgen.results.expectations import parse_expectation
from loadgen.studies.advise.advice import advise as search
from loadgen.studies.advise.advice import confirm
from loadgen.studies.advise.goal import Goal
from loadgen.studies.advise.limits import KEYS, Setting, limits_of
from loadgen.studies.advise.namespaces import (
    shapes_of_cluster,
    shapes_of_file,
    shapes_of_topics,
)
from loadgen.studies.advise.obstacles import latest_polite_seconds
from loadgen.studies.advise.question import LOOKUP_KEYS, MORE_KEYS, Question, listing_groups
from loadgen.studies.advise.report import heads, rows, sure, verdict, write
from loadgen.virtual.servers import refusals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.documents.model import Document, Topics
    from loadgen.places.launcher import ServerFiles
    from loadgen.plan.group import Group
    from loadgen.studies.advise.advice import Advice
    from loadgen.studies.advise.goal import Outcome
    from loadgen.studies.advise.question import NamespaceShape

_MESSAGE_KEY, _LOOKUPS_KEY = "maxMessageSize", LOOKUP_KEYS["broker"]
_BEHIND_POLITE = 10.0
_SEARCH_SHARE, _ALONE_SHARE = 0.6, 0.9
"""Share of the time for the search in virtual time; the rest is for storms, or for clean-up."""
_MEGABYTES = re.compile(r"(\d{1,9})\s*MB")


def advise(  # noqa: PLR0913 (each parameter is an option of the command)
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|FILE]",
            help="Scenario with the clients, and topics, of the question. Default: --family.",
            autocompletion=complete_target,
            show_default=False,
        ),
    ] = None,
    *,
    settings: Settings = None,
    topics: Path | None = None,
    admin_url: str = "",
    namespace: list[str] | None = None,
    family: list[str] | None = None,
    network: str = "128KiB",
    broker_conf: BrokerConf = None,
    proxy_conf: ProxyConf = None,
    back_within: str = "",
    refused: str = "0.1%",
    pulsar_mem: str = "",
    accounted: str = "512MB",
    profile: Profile = "pulsar",
    no_confirm: bool = False,
    confirm_at: str = "",
    minutes: float = 5.0,
    out: Path = Path("out/advice"),
    as_json: AsJson = False,
    is_own: Confirmed = False,
) -> None:
    r"""Find the topic-list limits that your topics and clients need.

    Simulates restart storms with the servers' own code, confirms the result by
    a real storm on this machine, and prints fragments of broker.conf and
    proxy.conf: the eight limits, and the backpressure switch of PIP-434 with its
    cooldown. advice.md in --out is a report for a ticket, advice.yaml a scenario
    that checks the limits (loadgen run out/advice/advice.yaml).

    Families are clients with their retries: java-watch, java-poll, cpp (Python
    and Node.js too), go; polite is Floodgate's own client. Reading speed, starts
    and timeout are values of the group named after the family.

    Exit code 0: the limits meet the goal; 99: no limits do, or none do surely,
    or the advised limits were not tried in time, or a real storm missed the goal.

    Examples:
      loadgen advise --topics topics.txt --broker-conf broker.conf

      loadgen advise --topics topics.txt --broker-conf broker.conf \
        --family java-watch=600 --family cpp=400 \
        --back-within 60s --refused 0.1% --accounted 512MB

      loadgen advise --admin-url http://127.0.0.1:8080 --no-confirm \
        --set clients.java-watch.read.rate=1MB/s

    Options:
        topics (PATH): Your topics: one full name a line, Parquet, or a folder of
            `loadgen topics`.
        admin_url (URL): http://host:port of a running cluster, whose topics are counted.
        namespace (NAME): Namespace that clients list; may be repeated. Default: all.
        family (NAME=COUNT): Clients of a family; may be repeated. Default: 1,000 java-watch.
        network (SIZE): Bytes of an answer that socket buffers and network hold, outside the
            server's memory: the more, the less memory slow readers cost.
        back_within (TIME): Goal: all clients recover within this time. Default: 60 s, or 100 s
            with polite clients.
        refused (SHARE): Goal: at most this share of requests is refused.
        pulsar_mem (OPTIONS): PULSAR_MEM of the broker, to show the memory beside the limits:
            "-Xmx2g -XX:MaxDirectMemorySize=4g".
        accounted (SIZE): Goal: at most this much heap and direct memory in each limiter.
        profile (NAME): pulsar: as Pulsar 4.2.4; floodgate: with Floodgate's fixes.
        no_confirm: Skip the real storm on this machine.
        confirm_at (URL): Storm your own cluster instead, pulsar://host:port: with the same
            namespaces, and with the limits to confirm.
        minutes: Time limit of the whole command.
        out (DIR): Directory for the report, the fragments and the scenario.
    """
    _require_possible(minutes, confirm_at, out, no_confirm=no_confirm)
    begun, seconds = time.monotonic(), 60 * minutes
    if target and family:
        raise UsageError(f"--family excludes a scenario: leave it or {target[:80]} out")
    asked = wanted(target, settings) if target else families_document(family, settings or ())
    for url in filter(None, (admin_url, confirm_at)):
        require_own_cluster(url, confirmed=is_own)
    shapes = namespaces_of(topics, admin_url, namespace or (), asked.topics if target else None)
    within = _back_within(back_within, listing_groups(asked))
    goal = Goal(within, parsed("--refused", refused, Share), _megabytes(accounted))
    question = replace(
        question_of(
            asked, shapes, goal, profile, own_files(broker_conf, proxy_conf, as_json=as_json)
        ),
        network_bytes=int(parsed("--network", network, Bytes)),
        jvm=parse_jvm_options("--pulsar-mem", pulsar_mem) if pulsar_mem else None,
        seconds=seconds * (_ALONE_SHARE if no_confirm else _SEARCH_SHARE),
    )
    note = (lambda sentence: None) if as_json else say

    def on_try(number: int, asked: Question, setting: Setting, found: Outcome) -> None:
        tried = ", ".join(filter(None, (str(setting), asked.strain)))
        note(f"  try {number}: {tried}: {goal.told(found)}")

    with termination_interrupts():
        note(f"searching in virtual time: {goal}")
        advice = search(question, on_try=on_try)
        if not no_confirm and advice.setting is not None:
            urls = {"broker": admin_url} if admin_url and confirm_at else {}
            at = RunOptions(service_url=confirm_at, admin_urls=urls)
            advice = confirm(advice, out, seconds - (time.monotonic() - begun), note, at=at)
    paths = write(advice, out)
    if as_json:
        sys.stdout.write((out / "advice.json").read_text(encoding="utf-8"))
    else:
        _show_advice(advice, paths)
    if not advice.met:
        raise LoadgenError(_unmet(advice), ExitCode.THRESHOLDS)


def _unmet(advice: Advice) -> str:
    """Return the reason why the advised limits may miss the goal."""
    if not advice.complete:
        return "the time was over before limits were sure to meet the goal: use more --minutes"
    if advice.setting is None and advice.passes_today:
        return "no limits within --accounted meet the goal, as today's do; the report says why"
    if advice.setting is None:
        return "no setting meets the goal; the report says why, and what would help"
    if not advice.promised:
        return "the advised limits are not sure to meet the goal; the report says what would help"
    if advice.confirmations and not advice.confirmations[-1].met:
        return "a real storm with the advised limits missed the goal; the report has its figures"
    return "the advised limits miss the goal; the report has the figures"


def _require_possible(minutes: float, confirm_at: str, out: Path, *, no_confirm: bool) -> None:
    if not minutes > 0:
        raise UsageError(f"--minutes {minutes:g}: must be above 0")
    if confirm_at and no_confirm:
        raise UsageError("--confirm-at and --no-confirm exclude each other: leave one out")
    if confirm_at and not confirm_at.startswith(("pulsar://", "pulsar+ssl://")):
        raise UsageError(f"--confirm-at {confirm_at[:80]}: write it as pulsar://host:6650")
    with writing(out), tempfile.TemporaryFile(dir=out):
        pass  # A search takes minutes, and its advice must not be lost.


def _back_within(text: str, groups: Sequence[Group]) -> float:
    if text:
        return float(parsed("--back-within", text, Duration))
    latest = latest_polite_seconds(groups)
    return latest + _BEHIND_POLITE if latest else Goal().back_within_seconds


def _megabytes(text: str) -> int:
    if found := _MEGABYTES.fullmatch(text.strip()):
        return int(found[1])
    raise UsageError(f"--accounted {text[:40]!r} is not a size such as 512MB")


def _show_advice(advice: Advice, paths: Sequence[Path]) -> None:
    print_sentences(verdict(advice), advice.obstacles)
    if advice.setting is not None:
        console().print(table_of(heads(advice), rows(advice)))
    print_sentences(sure(advice), advice.warnings)
    print_sentences([f"In {paths[0].parent}: {', '.join(each.name for each in paths)}"])


def families_document(families: Sequence[str] | None, settings: Sequence[str]) -> Document:
    """Return a scenario with the clients that ``--family`` names, changed by ``--set`` options.

    Raises:
        UsageError: The name of a family, or a number of clients, is invalid.
    """
    groups, option = [], "--family"
    for text in families or ("java-watch=1000",):
        name, _, count = text.partition("=")
        if name not in FAMILIES:
            known = ", ".join(FAMILIES)
            form = "cpp is Python and Node.js, too; write NAME=COUNT, as cpp=400"
            raise UsageError(f"{option} {name[:40]!r} is no family; families are {known}: {form}")
        groups.append(f"{{name: {name}, do: discover, library: {name}, count: {count or '?'}}}")
    text = f"name: families\nclients: [{', '.join(groups)}]\n"
    try:
        return parse_document(text, Path(option), settings, parse_expectation)
    except UsageError as error:
        if not str(error).startswith(option):
            raise  # The fault is a setting's.
        raise UsageError(f"write {option} NAME=COUNT, as cpp=400: {error}") from None


def namespaces_of(
    file: Path | None, admin_url: str, names: Sequence[str], scenario: Topics | None = None
) -> tuple[NamespaceShape, ...]:
    """Return the sizes of the namespaces in a file, in a running cluster, or in a scenario.

    Raises:
        UsageError: No option names a source, or two options do.
    """
    if file is not None and admin_url:
        raise UsageError("--topics and --admin-url both name the topics: leave one out")
    if admin_url:
        return shapes_of_cluster(admin_url, names)
    if file is not None:
        return shapes_of_file(file, names)
    if names:
        raise UsageError("--namespace needs --topics or --admin-url: add one of them")
    if scenario is None:
        raise UsageError(
            "say whose topics: --topics PATH or --admin-url URL; advise takes a scenario, too"
        )
    return shapes_of_topics(scenario)


def question_of(
    document: Document,
    shapes: tuple[NamespaceShape, ...],
    goal: Goal,
    profile: Profile,
    files: ServerFiles,
) -> Question:
    """Return the question that ``advise`` answers, made of a scenario and the operator's files.

    Raises:
        UsageError: No group of clients lists topics, or a server would not start with its file.
    """
    own, decide = (files.broker, files.proxy), {*KEYS.values(), _MESSAGE_KEY, _LOOKUPS_KEY}
    kept = [{key: said for key, said in each.keys.items() if key in decide} for each in own]
    for server, keys in zip(own, kept, strict=True):
        server.require(refusals(server.role, keys))
    broker, proxy = (limits_of(keys, pause=profile == "floodgate") for keys in kept)
    checked, servers = known_keys("broker").check(kept[0]), document.servers
    named = SERVICE_TIMES_KEY in servers.model_fields_set
    return Question(
        listing_groups(document),
        shapes,
        goal,
        profile,
        Setting(broker, proxy if files.proxy.file else None),
        max_message_bytes=checked.integer(_MESSAGE_KEY),
        lookups=checked.integer(_LOOKUPS_KEY),
        times=servers.service_times if named else SERVICE_TIMES[profile],
        seed=document.seed,
        more={
            each.role: {key: each.keys[key] for key in MORE_KEYS[each.role] if key in each.keys}
            for each in own
        },
    )
