"""``loadgen rehearse``: simulates a restart or deploy of your cluster, with your own clients."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.alerts.rules import SHIPPED_RULES, read_rules
from loadgen.alerts.told import alert_rows, alert_sentences, seen_rows
from loadgen.commands.advise import families_document, namespaces_of, question_of
from loadgen.commands.options import (
    AsJson,
    BrokerConf,
    Confirmed,
    ProxyConf,
    Settings,
    own_files,
    parsed,
)
from loadgen.commands.run import watched
from loadgen.commands.shown import (
    console,
    fail_if_not_fine,
    print_object,
    print_sentences,
    table_of,
)
from loadgen.documents.model import Profile  # noqa: TC001 (evaluated by Typer)
from loadgen.documents.reading import parse_document
from loadgen.errors import write_text
from loadgen.loopback import require_own_cluster
from loadgen.places.directory import RUN_NAME, write_json
from loadgen.places.options import Place, RunOptions
from loadgen.plan.fields import Duration, Share
from loadgen.report.page import write_run
from loadgen.results.expectations import parse_expectation
from loadgen.results.results import Results
from loadgen.results.units import Unit, in_words
from loadgen.studies.advise.goal import Goal
from loadgen.studies.dry_run import dry_run
from loadgen.studies.rehearsal import Event, Rehearsal, rehearsal_text, rehearsed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from loadgen.studies.rehearsal import Rehearsed

_REASONS_SHOWN = 5


def rehearse(  # noqa: PLR0913 (each parameter is an option of the command)
    *,
    topics: Path | None = None,
    admin_url: str = "",
    namespace: list[str] | None = None,
    family: list[str] | None = None,
    settings: Settings = None,
    broker_conf: BrokerConf = None,
    proxy_conf: ProxyConf = None,
    event: Event = "restart",
    brokers: int = 1,
    away: str = "30s",
    back_within: str = "60s",
    refused: str = "0.1%",
    profile: Profile = "pulsar",
    place: Place = "virtual",
    alerts: Path | None = None,
    write_document: Path | None = None,
    out: Path = Path("out/rehearse"),
    as_json: AsJson = False,
    is_own: Confirmed = False,
) -> None:
    r"""Play a restart or a deploy of your cluster, and predict the outcome.

    With your topics, your clients, the limits of your files: when clients are
    back, which requests are refused and why, the memory of servers, and the
    alerts that Prometheus fires. The storm is that of `loadgen advise`, simulated
    with the servers' own code.

    Events: restart of one broker; rolling: brokers one after the other; proxy: a
    restart of the proxy; deploy: a mass restart, all consumers start at the same
    moment. Of several brokers the fullest one is played.

    Exit code 0: all are back in time; 99: some are not, or too many were refused;
    97: an answer was wrong, or a server kept memory of clients that have left;
    98: not to be relied on; 130: interrupted.

    Examples:
      loadgen rehearse --topics topics.txt --broker-conf broker.conf \
        --family java-watch=600 --family cpp=100 --event deploy

      loadgen rehearse --topics topics.txt --event rolling --brokers 3

      loadgen rehearse --admin-url http://127.0.0.1:8080 --event restart \
        --set clients.java-watch.read.rate=1MB/s

    Options:
        topics (PATH): Your topics: one full name a line, Parquet, or a folder of
            `loadgen topics`.
        admin_url (URL): http://host:port of a running cluster, whose topics are counted.
        namespace (NAME): Namespace that clients list; may be repeated. Default: all.
        family (NAME=COUNT): Clients of a family: java-watch, java-poll, cpp (Python and Node.js
            too), go, polite; may be repeated. Default: 1,000 java-watch.
        event (EVENT): restart, rolling, proxy or deploy (a mass restart of consumers).
        brokers: Brokers that share namespaces and clients.
        away (TIME): How long a restarted server is away.
        back_within (TIME): Time for all clients to be back, from the server's return.
        refused (SHARE): At most this share of lists and watches may be refused.
        profile (NAME): pulsar: as Pulsar 4.2.4; floodgate: with Floodgate's fixes.
        place (PLACE): virtual: simulated; processes: real servers and sockets on this machine.
        alerts (FILE): Prometheus' rules. Default: those of deploy/alerts.yml.
        write_document (FILE): Write the scenario for `loadgen run`, without playing it.
        out (DIR): Directory of run directories.
    """
    if admin_url:
        require_own_cluster(admin_url, confirmed=is_own)
    asked = families_document(family, settings or ())
    shapes = namespaces_of(topics, admin_url, namespace or ())
    files = own_files(broker_conf, proxy_conf, as_json=as_json)
    goal = Goal(parsed("--back-within", back_within, Duration), parsed("--refused", refused, Share))
    question = question_of(asked, shapes, goal, profile, files)
    notes = tuple(files.notes())
    rehearsal = Rehearsal(question, event, brokers, parsed("--away", away, Duration), notes)
    if write_document is None:
        _play(rehearsal, RunOptions(out=out, place=place), alerts or SHIPPED_RULES, as_json=as_json)
        return
    write_text(write_document, rehearsal_text(rehearsal))
    print_sentences([f"Play it with: loadgen run {write_document} --place {place}"])


def _play(rehearsal: Rehearsal, options: RunOptions, rules: Path, *, as_json: bool) -> None:
    """Run the scenario of a rehearsal, and print its outcome."""
    read_rules(rules)
    document = parse_document(
        rehearsal_text(rehearsal), Path("rehearse.yaml"), (), parse_expectation
    )
    options = replace(options, name=document.name)
    dry_run(document, options).require_fit()
    directory = watched(document, options, as_json=as_json)
    with Results.open(directory) as results:
        found = rehearsed(rehearsal, results, rules)
        write_json(directory / RUN_NAME, {**results.run, "missed": found.missed})
    with Results.open(directory) as results:
        verdict = write_run(results)
    missed = [each.sentence for each in verdict.failed]
    if as_json:
        alerts = {**vars(found.alerts), "found": [each._asdict() for each in found.alerts.found]}
        said = {"assumed": [*rehearsal.assumed()], "told": [*rehearsal.told()]}
        where = {"directory": directory, **said}
        print_object(2, {**where, **vars(found), "alerts": alerts, "missed": missed})
    else:
        _show(rehearsal, found)
        print_sentences((), missed)
        print_sentences([f"Page, tables and document are in {directory}"])
    fail_if_not_fine(verdict)


def _show(rehearsal: Rehearsal, found: Rehearsed) -> None:
    print_sentences([f"Assumed: {'; '.join(rehearsal.assumed())}."])
    _table(
        {
            "clients": row["group"],
            "back": f"{row['back']:,} of {row['clients']:,}",
            "due within": in_words(Unit.SECONDS, row["due_seconds"]),
            "half back after": in_words(Unit.SECONDS, row["half_seconds"]),
            "last back after": in_words(Unit.SECONDS, row["last_seconds"]),
            "lists, watches refused": f"{row['refused']:,} of {row['asked']:,}",
        }
        for row in found.back
    )
    _table(
        {
            "requests": f"{row['requests']:,}",
            "without an answer": row["outcome"],
            "reason": row["reason"] or "-",
        }
        for row in found.reasons[:_REASONS_SHOWN]
    )
    _table(seen_rows(found.seen))
    at = ", ".join(f"{each:g} s" for each in rehearsal.moments)
    print_sentences([*alert_sentences(found.alerts), f"Times count from 0 s; event: {at}."])
    _table(alert_rows(found.alerts))
    print_sentences([*rehearsal.told()])


def _table(rows: Iterable[Mapping[str, str]]) -> None:
    if told := [*rows]:
        console().print(table_of([*told[0]], [[*row.values()] for row in told]))
        print_sentences([""])
