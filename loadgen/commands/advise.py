"""``loadgen advise``: the limits that meet a goal; ``loadgen demo``: the faults and their fixes."""

from __future__ import annotations

import re
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError

from loadgen.commands.options import (
    AsJson,
    BrokerConf,
    Confirmed,
    ProxyConf,
    Settings,
    complete_target,
    own_files,
    wanted,
)
from loadgen.commands.shown import console, print_sentences, say, table_of
from loadgen.documents.faults import fault_of
from loadgen.documents.model import Profile  # noqa: TC001 (evaluated by Typer)
from loadgen.documents.reading import parse_document
from loadgen.documents.server_keys import known_keys
from loadgen.documents.service_times import KEY as SERVICE_TIMES_KEY
from loadgen.documents.service_times import SERVICE_TIMES, ServiceTimes
from loadgen.errors import ExitCode, LoadgenError, UsageError, require_spark
from loadgen.jvm_options import parse_jvm_options
from loadgen.loopback import require_own_cluster
from loadgen.places.operator_files import read_own_server
from loadgen.places.options import Place, RunOptions
from loadgen.places.server_process import termination_interrupts
from loadgen.plan.fields import Bytes, Duration, Share, Speed
from loadgen.report.page import comparison_page, write_page
from loadgen.report.pictures import picture_of, write_picture
from loadgen.report.run_charts import labels_of
from loadgen.report.sections import beside
from loadgen.results.expectations import parse_expectation
from loadgen.results.results import Results
from loadgen.studies.advise.advice import advise as search
from loadgen.studies.advise.advice import confirm
from loadgen.studies.advise.findings import heads, rows
from loadgen.studies.advise.goal import Goal
from loadgen.studies.advise.limits import KEYS, Setting, limits_of
from loadgen.studies.advise.namespaces import (
    shapes_of_cluster,
    shapes_of_file,
    shapes_of_topics,
)
from loadgen.studies.advise.obstacles import latest_polite_seconds
from loadgen.studies.advise.question import MORE_KEYS, Question, listing_groups
from loadgen.studies.advise.report import sure, verdict, write
from loadgen.studies.advise.sentences import said
from loadgen.studies.demo import run_demo
from loadgen.studies.demo_storms import STORMS, DemoOptions
from loadgen.units import parse_size
from loadgen.virtual.servers import refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.documents.model import Document, Topics
    from loadgen.places.launcher import ServerFiles
    from loadgen.plan.group import Group
    from loadgen.studies.advise.advice import Advice
    from loadgen.studies.advise.question import NamespaceShape
    from loadgen.studies.demo import DemoResult

_MESSAGE_KEY, _LOOKUPS_KEY = "maxMessageSize", "maxConcurrentLookupRequest"
_BEHIND_POLITE = 10.0
_SEARCH_SHARE, _ALONE_SHARE = 0.6, 0.9
"""Of the time, for the search in virtual time: the rest is for real storms, or clearing up."""
_NUMBER = re.compile(r"[\d.]{1,20}[kKmM]?")
_MEGABYTES = re.compile(r"(\d{1,9})\s*MB")


def advise(  # noqa: PLR0913 (each parameter is an option of the command)
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|FILE]",
            help="Scenario whose clients, and topics, are advised for; without it --family.",
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
    and Node.js too), go; polite is Floodgate's own client. How they read, start
    and wait is a value of their group, which has their name.

    Exit code 0: the limits meet the goal; 99: no limits do, or the real storm
    missed it.

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
        namespace (NAME): Namespace that clients list; may be repeated. Without it all.
        family (NAME=COUNT): Clients of a family; may be repeated. Without it 1,000 java-watch.
        network (SIZE): Bytes of an answer that socket buffers and network hold, outside the
            server's memory: the more, the less memory slow readers cost.
        back_within (TIME): Goal: all clients recover within this time. Without it 60 s, or 100 s
            where clients are polite.
        refused (SHARE): Goal: at most this share of requests is refused.
        pulsar_mem (OPTIONS): PULSAR_MEM of the broker, to say what the limits leave of it:
            "-Xmx2g -XX:MaxDirectMemorySize=4g".
        accounted (SIZE): Goal: at most this much heap and direct memory in each limiter.
        profile (NAME): pulsar: as Pulsar 4.2.4; floodgate: with Floodgate's fixes.
        no_confirm: Try them in no real storm on this machine.
        confirm_at (URL): Storm your own cluster instead, pulsar://host:port: its namespaces must
            be these, and its limits those that you want confirmed.
        minutes: Time limit of the whole command.
        out (DIR): Directory for the report, the fragments and the scenario.
    """
    _require_possible(minutes, confirm_at, no_confirm=no_confirm)
    begun, seconds = time.monotonic(), 60 * minutes
    asked = _asked(target, settings or (), family or ())
    groups, topics_of_scenario = listing_groups(asked), asked.topics if target else None
    for url in filter(None, (admin_url, confirm_at)):
        require_own_cluster(url, confirmed=is_own)
    broker, pause = deciding("broker", broker_conf), profile == "floodgate"
    proxy = limits_of(deciding("proxy", proxy_conf), pause=pause) if proxy_conf else None
    question = Question(
        groups,
        namespaces_of(topics, admin_url, namespace or (), topics_of_scenario),
        Goal(
            _back_within(back_within, groups),
            parsed("--refused", refused, Share),
            _megabytes(accounted),
        ),
        profile,
        Setting(limits_of(broker, pause=pause), proxy),
        int(parsed("--network", network, Bytes)),
        known_keys("broker").check(broker).integer(_MESSAGE_KEY),
        known_keys("broker").check(broker).integer(_LOOKUPS_KEY),
        times_of(asked, profile),
        parse_jvm_options("--pulsar-mem", pulsar_mem) if pulsar_mem else None,
        seconds=seconds * (_ALONE_SHARE if no_confirm else _SEARCH_SHARE),
        more=more_of(own_files(broker_conf, proxy_conf)),
    )
    note = (lambda sentence: None) if as_json else say
    told = question.goal.told
    with termination_interrupts():
        note("searching in virtual time")
        advice = search(
            question, on_try=lambda number, found: note(f"  try {number}: {told(found)}")
        )
        if not no_confirm and advice.setting is not None:
            at = _place(question, confirm_at, admin_url, note)
            advice = confirm(advice, out, seconds - (time.monotonic() - begun), note, at=at)
    paths = write(advice, out)
    if as_json:
        sys.stdout.write((out / "advice.json").read_text(encoding="utf-8"))
    else:
        _show_advice(advice, paths)
    if not advice.met:
        why = "a real storm with the advised limits missed the goal; the report has its figures"
        if advice.setting is None:
            why = "no setting meets the goal; the report says why, and what would help"
        raise LoadgenError(why, ExitCode.THRESHOLDS)


def _require_possible(minutes: float, confirm_at: str, *, no_confirm: bool) -> None:
    if not minutes > 0:
        raise UsageError(f"--minutes {minutes:g}: must be above 0")
    if confirm_at and no_confirm:
        raise UsageError("--confirm-at is a storm, and --no-confirm is none: leave one out")
    if confirm_at and not confirm_at.startswith(("pulsar://", "pulsar+ssl://")):
        raise UsageError(f"--confirm-at {confirm_at[:80]}: write it as pulsar://host:6650")


def _place(
    question: Question, confirm_at: str, admin_url: str, note: Callable[[str], None]
) -> RunOptions:
    """Return where a real storm takes place; that of a cluster is announced."""
    if not confirm_at:
        return RunOptions()
    figures = {"clients": question.clients, "listed": len(question.listed)}
    seconds = question.storm_seconds
    note(said("storms-a-cluster", url=confirm_at, seconds=seconds, **figures))
    urls = {"broker": admin_url} if admin_url else {}
    return RunOptions(service_url=confirm_at, admin_urls=urls)


def _back_within(text: str, groups: Sequence[Group]) -> float:
    if text:
        seconds: float = parsed("--back-within", text, Duration)
        return seconds
    latest = latest_polite_seconds(groups)
    return latest + _BEHIND_POLITE if latest else Goal().back_within_seconds


def _megabytes(text: str) -> int:
    found = _MEGABYTES.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"--accounted {text[:40]!r} is not a size such as 512MB")
    return int(found[1])


def _show_advice(advice: Advice, paths: Sequence[Path]) -> None:
    print_sentences([verdict(advice)], advice.obstacles)
    if advice.setting is not None:
        console().print(table_of(heads(advice), rows(advice)))
    files = ", ".join(each.name for each in paths[1:])
    print_sentences([*sure(advice), f"Files: {paths[0]}; beside it {files}."], advice.warnings)


def parsed(option: str, text: str, kind: Any) -> Any:  # noqa: ANN401 - as its kind is
    """Return a value as a document would read it.

    Raises:
        UsageError: It is none.
    """
    try:
        return TypeAdapter(kind).validate_python(text)
    except ValidationError as error:
        fault = fault_of(error.errors(include_url=False)[0])
        raise UsageError(f"{option} {text[:40]!r} {fault.sentence}") from None


def _asked(target: str | None, settings: Sequence[str], families: Sequence[str]) -> Document:
    """Return the scenario whose clients are asked about, or one of the families."""
    if target is None:
        return families_document(families or ("java-watch=1000",), settings, "--family")
    if families:
        raise UsageError(f"--family is for no scenario: leave it or {target[:80]} out")
    return wanted(target, settings)


def families_document(families: Sequence[str], settings: Sequence[str], option: str) -> Document:
    """Return a document with clients of families, each ``NAME=COUNT``, and settings laid over it.

    Raises:
        UsageError: They are none; it names the option.
    """
    groups = []
    for text in families:
        name, _, count = text.partition("=")
        groups.append(f"{{name: {name}, do: discover, library: {name}, count: {count or '?'}}}")
    text = f"name: families\nclients: [{', '.join(groups)}]\n"
    try:
        return parse_document(text, Path(option), settings, parse_expectation)
    except UsageError as error:
        if not str(error).startswith(option):
            raise  # It is of a setting.
        raise UsageError(f"write {option} NAME=COUNT, as cpp=400: {error}") from None


def times_of(document: Document, profile: Profile) -> ServiceTimes:
    """Return the service times that a document names, or those of a profile."""
    named = SERVICE_TIMES_KEY in document.servers.model_fields_set
    return document.servers.service_times if named else SERVICE_TIMES[profile]


def namespaces_of(
    file: Path | None, admin_url: str, names: Sequence[str], scenario: Topics | None = None
) -> tuple[NamespaceShape, ...]:
    """Return the namespaces of a file, of a cluster, or of a scenario.

    Raises:
        UsageError: Nobody says whose, or two do.
    """
    if file is not None and admin_url:
        raise UsageError("--topics and --admin-url are two places of topics: leave one out")
    if admin_url:
        return shapes_of_cluster(admin_url, names)
    if file is not None:
        return shapes_of_file(file, names)
    if names:
        raise UsageError("--namespace is of --topics or --admin-url: add one of them")
    if scenario is None:
        raise UsageError(
            "say whose topics: --topics PATH or --admin-url URL; advise takes a scenario, too"
        )
    return shapes_of_topics(scenario)


def more_of(files: ServerFiles) -> dict[str, dict[str, str]]:
    """Return what the servers' files say of further keys that decide."""
    return {
        role: {key: own.keys[key] for key in MORE_KEYS[role] if key in own.keys}
        for role, own in (("broker", files.broker), ("proxy", files.proxy))
    }


def deciding(role: str, file: Path | None) -> dict[str, str]:
    """Return what a server's file says of the keys that decide, if it starts with them.

    Raises:
        UsageError: It does not.
    """
    server = read_own_server(role, file)
    decide = {*KEYS.values(), _MESSAGE_KEY, _LOOKUPS_KEY}
    keys = {key: value for key, value in server.keys.items() if key in decide}
    server.require(refusals(role, keys))
    return keys


# -- demo -----------------------------------------------------------------------------------------


def demo(
    *,
    topics: str = "1M",
    namespaces: int | None = None,
    clients: int = 1000,
    read_rate: str = "100kB/s",
    place: Place = "processes",
    out: Path = Path("out/demo"),
) -> None:
    r"""Show a restart storm: without limits, with Pulsar's limits, with Floodgate.

    Makes topics, starts a broker and a proxy for each of three runs, and has all
    clients list topics at the same moment and read slowly. In two more runs, as
    in Pulsar and with Floodgate, one client requests many lists and reads none.
    Prints tables, writes report.html, demo.svg and summary.json.

    It assumes more than `loadgen rehearse`, which plays your own topics, clients
    and files: each client lists once, reads slowly, comes through a proxy and
    never tries again.

    Exit code 0: all checks passed; 97: an answer was wrong; 99: a check failed.

    Examples:
      loadgen demo

      loadgen demo --topics 50000 --clients 100 --out out/small

    Options:
        topics (NUMBER): Number of topics to make (50000, 1M).
        namespaces: Namespaces of the made topics; without it one for 10,000 topics.
        clients: Clients, which all list topics at the same moment.
        read_rate (RATE): Bytes a second that each client reads of its list.
        place (PLACE): Where storms run: processes, spark, or virtual (simulated).
        out (DIR): Directory for all results.
    """
    number = _topics_of_demo(topics, namespaces)
    if place == "spark":
        require_spark()
    rate, begun = parsed("--read-rate", read_rate, Speed), time.monotonic()
    run = RunOptions(place=place)
    options = DemoOptions(number, namespaces, clients, rate, out, run)
    with termination_interrupts():
        result = run_demo(options, say)
    _show_demo(result, out)
    print_sentences([f"\n{time.monotonic() - begun:.0f} s in all."])
    raise typer.Exit(int(result.exit_code))


def _show_demo(result: DemoResult, out: Path) -> None:
    """Write page and picture; print tables, checks and last words."""
    words = [*result.last_words, *result.notes]
    with ExitStack() as stack:
        runs = [stack.enter_context(Results.open(each.directory)) for each in result.runs]
        storms, stuck = runs[: len(STORMS)], runs[len(STORMS) :]
        told = [*(f"{each.mark} {each.sentence}" for each in result.checks), *words]
        page = comparison_page(runs, "Floodgate demo", told, result)
        write_page(out / "report.html", page)
        # In virtual time no process has a memory of its own.
        memory = [] if storms[0].run["place"] == "virtual" else ["servers.over-idle"]
        write_picture(out / "demo.svg", picture_of(storms, [*memory, "outcomes"]))
        _show_part("Restart storm: every client lists topics at the same moment", storms)
        _show_part("One client requests 64 lists and reads none, beside healthy ones", stuck)
    print_sentences(["Checks (✓ passed, ! a fault of Pulsar reproduced, ✗ failed)"])
    console().print(table_of(("", ""), [(each.mark, each.sentence) for each in result.checks]))
    print_sentences(result.last_words, result.notes)
    print_sentences(
        [f"Open {out / 'report.html'} in a browser; all figures are in {out / 'summary.json'}."]
    )


def _show_part(heading: str, runs: Sequence[Results]) -> None:
    if runs:
        print_sentences([f"\n{heading}"])
        rows = [[*row.values()] for row in beside(runs, labels_of(runs))]
        console().print(table_of(["", "", *labels_of(runs)], rows))


def _topics_of_demo(topics: str, namespaces: int | None) -> int:
    """Return how many ``--topics`` says.

    Raises:
        UsageError: It says none, or fewer than there are namespaces.
    """
    if not _NUMBER.fullmatch(topics):
        raise UsageError(
            f"--topics {topics[:200]} is no number (50000, 1M); your own topics are for: loadgen "
            "rehearse --topics FILE"
        )
    number = parse_size("--topics", topics)
    if number < 1 or number % 1:
        raise UsageError(f"--topics {topics} is not a whole number of topics above 0")
    if number < (namespaces or 1):
        raise UsageError(f"--topics {topics}: one a namespace at least")
    return int(number)
