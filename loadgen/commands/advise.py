"""``loadgen advise``: the limits that meet a goal, as fragments of configuration files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer
from rich.console import Console
from rich.table import Table

from loadgen.advice.advice import Request
from loadgen.advice.advisor import confirmed, searched
from loadgen.advice.fragments import fragment
from loadgen.advice.goal import Goal, parse_megabytes, parse_refused, parse_seconds, parse_share
from loadgen.advice.limits import KEYS, Setting, limits_of
from loadgen.advice.report import verdict, write
from loadgen.advice.shapes import chosen, shapes_of_cluster, shapes_of_corpus, shapes_of_file
from loadgen.advice.workload import NEVER, Readers, Workload
from loadgen.documents.server_keys import known_keys
from loadgen.errors import ExitCode, LoadgenError, UsageError
from loadgen.live.steps import StepDisplay
from loadgen.loopback import require_own_cluster
from loadgen.places.operator_files import read_own_server
from loadgen.places.server_process import termination_interrupts
from loadgen.report.tables import summary_console
from loadgen.scenarios.discovery.scenario import Family
from loadgen.units import parse_rate, parse_size
from loadgen.virtual.servers import refusals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.advice.advice import Advice
    from loadgen.advice.workload import NamespaceShape

_MOST_CLIENTS = 100_000
_FAMILIES: tuple[str, ...] = get_args(Family)
_MESSAGE_KEY = "maxMessageSize"
_MOST_NETWORK_BYTES = 1 << 30
_SEARCH_SHARE = 0.6
"""Of the time, for the search in virtual time; the rest is for real storms."""
_ALONE_SHARE = 0.9
"""Without them; the rest is for clearing a storm of many clients away that was cut."""


def advise(  # noqa: PLR0913 - one parameter for each option
    topics: Annotated[
        Path | None,
        typer.Option(help="Your topics: one full name a line, or Parquet.", show_default=False),
    ] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="Topics that `loadgen topics` has made.", show_default=False)
    ] = None,
    admin_url: Annotated[
        str | None,
        typer.Option(
            help="http://host:port of a running cluster, whose topics are counted.",
            show_default=False,
        ),
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(help="Namespace that clients list; may be repeated.", show_default="all"),
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COUNT",
            help=f"Number of clients of a family ({', '.join(_FAMILIES)}); may be repeated.",
            show_default="1,000 java-watch",
        ),
    ] = None,
    read_rate: Annotated[
        str, typer.Option(help="Bytes a second that each client reads; 0: no limit.")
    ] = "0",
    slow_share: Annotated[str, typer.Option(help="Share of clients that read slowly.")] = "0%",
    slow_rate: Annotated[
        str, typer.Option(help="Bytes a second of the slow clients; never: they read nothing.")
    ] = "10kB/s",
    network: Annotated[
        str,
        typer.Option(
            help="Bytes of an answer that socket buffers and network hold, outside the server's "
            "memory: the more, the less memory slow readers cost."
        ),
    ] = "128KiB",
    spread: Annotated[
        str, typer.Option(help="Time over which client starts are spread; 0s: all at once.")
    ] = "0s",
    operation_timeout: Annotated[
        str, typer.Option("--timeout", help="Timeout of a client for one request.")
    ] = "30s",
    period: Annotated[str, typer.Option(help="Polling interval of clients.")] = "60s",
    broker_conf: Annotated[
        Path | None,
        typer.Option(help="Your broker.conf; without it Pulsar's defaults.", show_default=False),
    ] = None,
    proxy_conf: Annotated[
        Path | None,
        typer.Option(help="Your proxy.conf; without it there is no proxy.", show_default=False),
    ] = None,
    back_within: Annotated[
        str, typer.Option(help="Goal: all clients recover within this time.")
    ] = "60s",
    refused: Annotated[
        str, typer.Option(help="Goal: at most this share of requests is refused.")
    ] = "0.1%",
    accounted: Annotated[
        str, typer.Option(help="Goal: at most this much heap and direct memory in each limiter.")
    ] = "512MB",
    profile: Annotated[
        str, typer.Option(help="pulsar: as Pulsar 4.2.4; floodgate: with Floodgate's fixes.")
    ] = "pulsar",
    confirm: Annotated[
        bool, typer.Option(help="Try the advised limits in a real storm on this machine.")
    ] = True,
    minutes: Annotated[
        float, typer.Option(min=0.05, max=60, help="Time limit of the whole command, in minutes.")
    ] = 5.0,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="Seed of all random choices.")
    ] = 1,
    out: Annotated[
        Path, typer.Option(help="Directory for the report, the fragments and the scenario.")
    ] = Path("out/advice"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the advice as JSON on standard output.")
    ] = False,
    yes_this_is_my_cluster: Annotated[
        bool,
        typer.Option(
            "--yes-this-is-my-cluster",
            help="Allow an address other than this machine's loopback.",
            rich_help_panel="Remote clusters",
        ),
    ] = False,
) -> None:
    r"""Find the topic-list limits that your topics and clients need.

    Simulates restart storms with the servers' own code, confirms the result by
    a real storm on this machine, and prints fragments of broker.conf and
    proxy.conf: the eight limits, and the backpressure switch of PIP-434 with its
    cooldown. advice.md in --out is a report for a ticket, advice.yaml a scenario
    that checks the limits (loadgen run out/advice/advice.yaml).

    Families are clients with their retries: java-watch, java-poll, cpp (Python
    and Node.js too), go; once never retries; polite is Floodgate's own client.

    Exit code 0: the limits meet the goal; 99: no limits do, or the real storm
    missed it.

    Examples:
      loadgen advise --topics topics.txt --broker-conf broker.conf

      loadgen advise --topics topics.txt --broker-conf broker.conf \
        --family java-watch=600 --family cpp=400 \
        --back-within 60s --refused 0.1% --accounted 512MB

      loadgen advise --admin-url http://127.0.0.1:8080 \
        --read-rate 1MB/s --no-confirm
    """
    if profile not in ("pulsar", "floodgate"):
        raise UsageError(f"--profile {profile[:40]} is neither pulsar nor floodgate")
    if admin_url is not None:
        require_own_cluster(admin_url, confirmed=yes_this_is_my_cluster)
    broker, pause = deciding("broker", broker_conf), profile == "floodgate"
    today = Setting(
        limits_of(broker, pause=pause),
        limits_of(deciding("proxy", proxy_conf), pause=pause) if proxy_conf else None,
    )
    workload = Workload(
        namespaces=_shapes(topics, corpus, admin_url, namespace or []),
        families=parse_families(family or ["java-watch=1000"]),
        readers=Readers(
            rate=parse_rate("--read-rate", read_rate),
            slow_share=parse_share("--slow-share", slow_share),
            slow_rate=_slow_rate(slow_rate),
            network_bytes=_network_bytes(network),
        ),
        operation_timeout_seconds=parse_seconds("--timeout", operation_timeout),
        spread_seconds=parse_seconds("--spread", spread, least=0.0),
        period_seconds=parse_seconds("--period", period),
        max_message_bytes=known_keys("broker").check(broker).integer(_MESSAGE_KEY),
        seed=seed,
    )
    goal = Goal(
        parse_seconds("--back-within", back_within),
        parse_refused("--refused", refused),
        parse_megabytes("--accounted", accounted),
    )
    seconds = 60 * minutes
    request = Request(
        workload,
        goal,
        "pulsar" if profile == "pulsar" else "floodgate",
        today,
        seconds=seconds * (_SEARCH_SHARE if confirm else _ALONE_SHARE),
    )
    console = summary_console()
    with termination_interrupts(), _steps(console, as_json=as_json).shown() as steps:
        advice = searched(request, steps)
        if confirm and advice.setting is not None:
            advice = confirmed(advice, steps, out, seconds - steps.elapsed_seconds)
    paths = write(advice, out)
    if as_json:
        sys.stdout.write((out / "advice.json").read_text(encoding="utf-8"))
    else:
        show(console, advice, paths)
    if not advice.met:
        raise LoadgenError(_not_met(advice), ExitCode.THRESHOLDS)


def show(console: Console, advice: Advice, paths: Sequence[Path]) -> None:
    """Print the verdict, the fragments and where everything is."""

    def say(text: str, style: str | None = None) -> None:
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    say(verdict(advice))
    for each in (*advice.obstacles, *advice.warnings):
        say(f"! {each}", "yellow")
    if advice.setting is not None:
        for server in advice.setting.servers:
            say(f"\n--- {server}.conf\n{fragment(advice, server)}")
        console.print(_table(advice))
    say(f"The report is {paths[0]}; beside it are {', '.join(each.name for each in paths[1:])}.")


def _table(advice: Advice) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for head in ("", "limit", "value", "one step below", "one step above"):
        table.add_column(head)
    for each in advice.findings:
        if each.key.endswith("SizeMB"):
            short = each.key.removeprefix("maxTopicListInFlight")
            table.add_row(each.server, short, each.value, each.below, each.above)
    return table


def _steps(console: Console, *, as_json: bool) -> StepDisplay:
    return StepDisplay(Console(quiet=True) if as_json else console)


def _not_met(advice: Advice) -> str:
    if advice.setting is None:
        return "no setting meets the goal; the report says why, and what would help"
    return "a real storm with the advised limits missed the goal; the report has its figures"


def parse_families(texts: Sequence[str]) -> dict[Family, int]:
    """Return the clients of each family of ``java-watch=600``.

    Raises:
        UsageError: A text is not of this form, or names no family, or one twice.
    """
    found: dict[Family, int] = {}
    for text in texts:
        name, _, count = text.partition("=")
        family = next((each for each in get_args(Family) if each == name), None)
        if family is None:
            raise UsageError(
                f"--family {text[:40]!r} is not a family: there are {', '.join(_FAMILIES)}"
            )
        if not count.isdecimal() or not 1 <= int(count) <= _MOST_CLIENTS:
            raise UsageError(
                f"--family {text[:40]!r} has no number of clients from 1 to {_MOST_CLIENTS:,}: "
                f"write {name}=600"
            )
        if family in found:
            raise UsageError(f"--family {name} is given twice: give it once, with all its clients")
        found[family] = int(count)
    if sum(found.values()) > _MOST_CLIENTS:
        raise UsageError(f"--family: {sum(found.values()):,} clients are too many for one advice")
    return found


def _shapes(
    topics: Path | None, corpus: Path | None, admin_url: str | None, names: Sequence[str]
) -> tuple[NamespaceShape, ...]:
    given = [each for each in (topics, corpus, admin_url) if each is not None]
    if len(given) != 1:
        raise UsageError(
            "the topics come from --topics FILE, --corpus DIRECTORY or --admin-url URL: give one "
            f"of these, not {len(given)}"
        )
    if admin_url is not None:
        return chosen(shapes_of_cluster(admin_url, names), names, admin_url)
    if corpus is not None:
        return chosen(shapes_of_corpus(corpus), names, corpus)
    assert topics is not None
    if not topics.exists():
        raise UsageError(
            f"--topics {topics} does not exist; save your topics with: pulsar-admin topics list "
            "my-tenant/my-namespace > topics.txt"
        )
    return chosen(shapes_of_file(topics), names, topics)


def deciding(role: str, file: Path | None) -> dict[str, str]:
    """Return what a server's file says of the keys that decide, if it starts with them.

    Raises:
        UsageError: It does not.
    """
    server = read_own_server(role, file)
    wanted = (*KEYS.values(), _MESSAGE_KEY)
    keys = {key: value for key, value in server.keys.items() if key in wanted}
    server.require(refusals(role, keys))
    return keys


def _network_bytes(text: str) -> int:
    size = parse_size("--network", text)
    if size > _MOST_NETWORK_BYTES:
        raise UsageError(f"--network {text[:40]} is more than 1GiB, the largest socket buffer")
    return int(size)


def _slow_rate(text: str) -> float:
    if text == "never":
        return NEVER
    rate = parse_rate("--slow-rate", text)
    if not rate:
        raise UsageError("--slow-rate 0 would be unlimited: give bytes a second, or never")
    return rate
