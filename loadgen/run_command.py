"""``loadgen run``: drive a storm of clients against a broker or proxy."""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console

from loadgen.failures import ExitCode, LoadgenError, UsageError
from loadgen.live import progress_display
from loadgen.loopback import require_own_cluster
from loadgen.manifest import MANIFEST_NAME, read_manifest
from loadgen.processes import termination_interrupts
from loadgen.report_data import parse_summary
from loadgen.report_words import late_start_sentence
from loadgen.scenario import NamespaceExpectation, StormScenario
from loadgen.storm_run import RunOptions, RunResult, execute
from loadgen.tables import TERMINAL_COLUMNS, summary_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.manifest import NamespaceEntry

__all__ = ["RunOptions", "RunResult", "execute", "run"]

_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([kmg]i?)?b?\s*$", re.IGNORECASE)
_FACTORS = {None: 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}

EXAMPLES = """
Examples:

  loadgen run --service-url pulsar://127.0.0.1:6650 --corpus out/topics

  loadgen run --service-url pulsar://127.0.0.1:6650
  --namespace public/default --clients 200 --read-rate 0 --executor process

  loadgen run --service-url pulsar://127.0.0.1:6650 --corpus out/topics
  --spread-seconds 30 --broker-admin-url http://127.0.0.1:8080 --json

Exit code 0: measured, whether answered or refused; 97: an answer was wrong;
98: this machine started the clients too late; 130: interrupted.
"""


def run(  # noqa: PLR0913 (each parameter is an option of the command)
    service_url: Annotated[
        str, typer.Option(help="Binary address of the broker or proxy: pulsar://host:port.")
    ],
    corpus: Annotated[
        Path | None,
        typer.Option(
            help="Directory that `loadgen topics` wrote: its manifest names the namespaces and "
            "what a right answer holds.",
            show_default=False,
        ),
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            help="Namespace to ask for (tenant/namespace); repeat for more. Without a corpus "
            "answers are checked against their own hash and each other.",
            show_default=False,
        ),
    ] = None,
    clients: Annotated[int, typer.Option(help="Connections.")] = 1000,
    read_rate: Annotated[
        str, typer.Option(help="How fast each client reads, bytes a second; 0 is unlimited.")
    ] = "100kB/s",
    receive_buffer: Annotated[
        str, typer.Option(help="SO_RCVBUF of each connection, bytes; 0 leaves the kernel's.")
    ] = "64KiB",
    requests_per_client: Annotated[
        int, typer.Option(help="Listings per client, one after the other.")
    ] = 1,
    spread_seconds: Annotated[
        float, typer.Option(help="Spread the starts evenly over this time; 0: all at once.")
    ] = 0.0,
    pattern: Annotated[
        str | None,
        typer.Option(help="Topics pattern that the server evaluates.", show_default=False),
    ] = None,
    timeout_seconds: Annotated[
        float, typer.Option(help="How long a client waits for its answer.")
    ] = 120.0,
    seed: Annotated[int, typer.Option(help="Decides who starts when starts are spread.")] = 1,
    executor: Annotated[
        str, typer.Option(help="spark, or process: the same schedule without Spark and Java.")
    ] = "spark",
    tasks: Annotated[
        int | None,
        typer.Option(help="Tasks (processes) that share the clients.", show_default="2"),
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Spark master; default: local.", show_default=False)
    ] = None,
    broker_admin_url: Annotated[
        str | None,
        typer.Option(help="http://host:port of the broker, to watch it.", show_default=False),
    ] = None,
    proxy_admin_url: Annotated[
        str | None,
        typer.Option(help="http://host:port of the proxy, to watch it.", show_default=False),
    ] = None,
    broker_pid: Annotated[
        int | None,
        typer.Option(help="The broker's process id, to measure its memory.", show_default=False),
    ] = None,
    proxy_pid: Annotated[
        int | None,
        typer.Option(help="The proxy's process id, to measure its memory.", show_default=False),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the run.", show_default="storm-<time>")
    ] = None,
    label: Annotated[
        str, typer.Option(help="What reports call the run.", show_default="the name")
    ] = "",
    out: Annotated[Path, typer.Option(help="Where run directories are.")] = Path("out/runs"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as JSON on standard output.")
    ] = False,
    yes_this_is_my_cluster: Annotated[
        bool,
        typer.Option("--yes-this-is-my-cluster", help="Allow an address beyond the loopback."),
    ] = False,
) -> None:
    """Drive clients against a broker or proxy, all at the same moment, and check every answer."""
    require_own_cluster(service_url, confirmed=yes_this_is_my_cluster)
    scenario = make_scenario(
        service_url=service_url,
        namespaces=wanted_namespaces(corpus, namespace or []),
        clients=clients,
        read_rate_bytes_per_second=parse_read_rate(read_rate),
        receive_buffer_bytes=int(parse_size("--receive-buffer", receive_buffer)),
        requests_per_client=requests_per_client,
        spread_seconds=spread_seconds,
        pattern=pattern,
        timeout_seconds=timeout_seconds,
        seed=seed,
    )
    with termination_interrupts(), progress_display(clients, sys.stderr) as on_progress:
        options = RunOptions(
            name=name or f"storm-{datetime.now():%Y%m%d-%H%M%S}",
            label=label,
            out=out,
            executor=executor,
            tasks=min(2, clients) if tasks is None else tasks,
            master=master,
            broker_admin_url=broker_admin_url,
            proxy_admin_url=proxy_admin_url,
            broker_pid=broker_pid,
            proxy_pid=proxy_pid,
            on_progress=on_progress,
        )
        result = execute(scenario, options)
    show(result, as_json=as_json)
    fail_if_invalid(result)


run.__doc__ = f"{run.__doc__}\n{EXAMPLES}"


def make_scenario(**parameters: Any) -> StormScenario:  # noqa: ANN401
    """Return a scenario; a wrong parameter becomes one sentence with its option.

    Raises:
        UsageError: A parameter is out of its range.
    """
    try:
        return StormScenario(**parameters)
    except ValidationError as error:
        first = error.errors()[0]
        option = _option_of(first["loc"])
        reason = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{option} {first['input']!r}: {reason}") from None


def _option_of(location: Sequence[int | str]) -> str:
    field = str(location[0]) if location else "scenario"
    names = {
        "namespaces": "--namespace",
        "read_rate_bytes_per_second": "--read-rate",
        "receive_buffer_bytes": "--receive-buffer",
    }
    return names.get(field, f"--{field.replace('_', '-')}")


def parse_read_rate(text: str) -> float:
    """Return bytes a second of ``100kB/s``, ``1MiB/s`` or a plain number.

    Raises:
        UsageError: The text is none of these.
    """
    return parse_size("--read-rate", text.strip().removesuffix("/s"), " a second", "/s")


def parse_size(option: str, text: str, each: str = "", suffix: str = "") -> float:
    """Return bytes of ``100kB`` (1,000 each), ``64KiB`` (1,024 each) or a plain number.

    Raises:
        UsageError: The text is none of these.
    """
    found = _SIZE.match(text)
    if found is None:
        raise UsageError(
            f"{option} {text + suffix!r} is not a number of bytes{each} such as 100kB{suffix} or "
            f"1MiB{suffix}"
        )
    number, unit = found.groups()
    return float(number) * _FACTORS[unit.lower() if unit else None]


def wanted_namespaces(
    corpus: Path | None, names: Sequence[str]
) -> tuple[NamespaceExpectation, ...]:
    """Return what to ask for: the corpus's namespaces, those named, or those named of a corpus.

    Raises:
        UsageError: Nothing is named, or the corpus does not hold it.
    """
    if corpus is None:
        if not names:
            raise UsageError("name what to ask for: --corpus DIR, or --namespace tenant/namespace")
        return tuple(_expectation(name, None) for name in names)
    known = read_manifest(corpus).namespaces
    missing = [name for name in names if name not in known]
    if missing:
        raise UsageError(f"--namespace {missing[0]} is not in {corpus / MANIFEST_NAME}")
    return tuple(_expectation(name, known[name]) for name in names or known)


def _expectation(name: str, entry: NamespaceEntry | None) -> NamespaceExpectation:
    try:
        if entry is None:
            return NamespaceExpectation(name=name)
        return NamespaceExpectation(name=name, topics=entry.topics, hash=entry.hash)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UsageError(reason) from None


def show(result: RunResult, *, as_json: bool) -> None:
    """Print the figures: a table for people, the summary for programs."""
    if as_json:
        sys.stdout.write(json.dumps(result.summary, indent=2, ensure_ascii=False) + "\n")
        return
    console = Console(file=sys.stdout)
    if not console.is_terminal:
        console = Console(file=sys.stdout, width=TERMINAL_COLUMNS)
    for table in summary_tables([parse_summary(result.summary)]):
        console.print(table)
    console.print(f"Everything about this run is in {result.directory}", highlight=False)


def fail_if_invalid(result: RunResult) -> None:
    """End with a sentence and an exit code if the run's figures are not to be relied on.

    Raises:
        LoadgenError: An answer was wrong, nobody was connected, the generator was late, or there
            was a Ctrl-C.
    """
    summary = result.summary
    if result.exit_code is ExitCode.INTERRUPTED:
        raise LoadgenError(
            "interrupted: the figures are those of the requests that had ended",
            ExitCode.INTERRUPTED,
        )
    if not any(summary[each] for each in ("answered", "refused", "wrong", "timeout")):
        raise LoadgenError(
            f"no request was answered: {summary['unreachable']} unreachable, "
            f"{summary['disconnected']} disconnected; {result.directory / 'requests.parquet'} "
            "says why"
        )
    if result.exit_code is ExitCode.CORRECTNESS:
        raise LoadgenError(
            f"{summary['wrong']} answers are wrong; {'; '.join(result.problems)}",
            ExitCode.CORRECTNESS,
        )
    if result.exit_code is ExitCode.GENERATOR_LIMITED:
        sentence = late_start_sentence(parse_summary(summary))
        raise LoadgenError(
            f"{sentence} Use fewer clients per task, more cores, or --spread-seconds.",
            ExitCode.GENERATOR_LIMITED,
        )
